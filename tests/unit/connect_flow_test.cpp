#include "keeping_port.hpp"

#include "core/operation/query_flow.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

TEST(ConnectFlow, AsksOnceMoreWhatWasLostButNotWhatIsStillOnAConnection)
{
    const auto port = std::make_shared<KeepingPort>();
    const Config config;
    Core core(*port, config, "client", 1);
    Outcome lost;
    lost.fault = {Failure::lostReply, Errc::unreachable};
    for (const bool isOnConnection : {false, true}) {
        ConnectFlow flow(core, nullptr);
        EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer);
        port->sent->pending = isOnConnection; // a request that is given up may stay there
        EXPECT_EQ(flow.answered(lost).kind, isOnConnection ? WaitStep::Kind::done : WaitStep::Kind::awaitAnswer);
        EXPECT_EQ(flow.error(), isOnConnection ? std::error_code(Errc::unreachable) : std::error_code());
        port->sent->pending = false;
        port->sent = nullptr;
    }
}

} // namespace
} // namespace redislock::detail
