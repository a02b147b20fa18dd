// A client's own thread.
#include "client/background.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

TEST(BackgroundThread, DoesFirstWhatWasPostedFirstByWhomever)
{
    const Config config;
    const auto background = std::make_shared<Background>(config, "client", Node::Listener{});
    ASSERT_FALSE(background->start(background));
    std::vector<std::string> order;
    background->post([&] {
        background->post([&] { order.emplace_back("by the thread itself"); });
        std::thread([&] { background->post([&] { order.emplace_back("by another"); }); }).join();
    });
    std::promise<void> ended;
    background->end([&] { ended.set_value(); });
    ended.get_future().wait();
    background->join(BootClock::now() + 10s);
    EXPECT_THAT(order, ::testing::ElementsAre("by the thread itself", "by another"));
}

} // namespace
} // namespace redislock::detail
