// Requests whose answers Redis keeps, at a client's end.
#include "logic/counter/counter_requests.hpp"
#include "logic/counter/latch_requests.hpp"
#include "logic/counter/permit_requests.hpp"
#include "logic/counter/semaphore_requests.hpp"
#include "runtime/engine/engine.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

// A call that began before the end may make its request after it: nobody would wait for the record of its answer.
TEST(CounterRequests, WithARecordAreRefusedWhenTheirClientHasEnded)
{
    const auto engine = Engine::make(Config());
    const auto semaphore = engine->counter(CounterKind::semaphore, "permits");
    const auto permits = engine->counter(CounterKind::permitExpirableSemaphore, "leased");
    const auto latch = engine->counter(CounterKind::countDownLatch, "latch");
    EXPECT_EQ(releaseRequest(*semaphore, 1, AddTo::existingCounter).refused, std::nullopt);
    engine->shutdown(std::chrono::milliseconds(0));
    EXPECT_EQ(releaseRequest(*semaphore, 1, AddTo::existingCounter).refused, Errc::shutdown);
    EXPECT_EQ(drainRequest(*semaphore).refused, Errc::shutdown);
    EXPECT_EQ(trySetForRequest(*semaphore, 1, std::chrono::seconds(1)).refused, Errc::shutdown);
    EXPECT_EQ(deleteRequest(*semaphore).refused, Errc::shutdown);
    EXPECT_EQ(setPermitsRequest(*permits, 1).refused, Errc::shutdown);
    EXPECT_EQ(countDownRequest(*latch).refused, Errc::shutdown);
    EXPECT_EQ(getRequest(*semaphore).refused, std::nullopt) << "it leaves nothing";
}

/// Keeps the requests that it is asked to send.
class KeepingPort final : public Port {
public:
    void enter() noexcept override {}
    void exit() noexcept override {}
    [[nodiscard]] TimePoint now() const noexcept override { return time; }
    [[nodiscard]] bool isForked() const noexcept override { return false; }
    HolderId nextHolder() noexcept override { return HolderId{1}; }
    std::uint64_t nextRequest() noexcept override { return 1; }
    bool submit(Lane /*lane*/, std::shared_ptr<Call> call, std::shared_ptr<Call> /*behind*/) override
    {
        sent = std::move(call);
        return true;
    }
    void submitIfConnected(std::vector<std::shared_ptr<Call>> /*calls*/) override {}
    bool withdraw(Call& /*call*/) override { return false; }
    bool leave(Call& /*call*/) noexcept override { return false; }
    void fail(const std::shared_ptr<Call>& /*call*/, Errc /*why*/) override {}
    void want(std::string /*channel*/, ChannelListener /*listener*/) override {}
    void drop(std::string /*channel*/, ChannelListener /*listener*/) override {}
    void wake(Call& /*call*/) noexcept override {}
    void alarm(TimePoint /*when*/) noexcept override {}
    void after(TimePoint /*when*/, std::function<void()> /*what*/) override {}
    void post(std::function<void()> /*what*/) override {}
    void tell(std::function<void(Observer&)> /*what*/) override {}
    void ended() noexcept override {}

    TimePoint time = TimePoint(std::chrono::hours(1));
    std::shared_ptr<Call> sent;
};

// A connection may come long after the request was queued for it.
TEST(CounterRequests, ThatAreRepeatedAreNotSentWhenTheirRecordMayBeGone)
{
    const auto port = std::make_shared<KeepingPort>();
    const Config config;
    Core core(*port, config, "client", 1);
    const auto latch = NamedCounter::of(port, core, CounterKind::countDownLatch, "latch");
    latch->askUnawaited(countDownRequest(*latch).call, {});
    ASSERT_NE(port->sent, nullptr);
    EXPECT_TRUE(port->sent->isWanted(port->time + std::chrono::milliseconds(59'999)));
    EXPECT_FALSE(port->sent->isWanted(port->time + std::chrono::milliseconds(60'000)));
    std::static_pointer_cast<ScriptCall>(std::exchange(port->sent, nullptr))->whenFinished = nullptr;
}

} // namespace
} // namespace redislock::detail
