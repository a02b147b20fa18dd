// AcquireMachine when a policy says when to ask again.
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/retry_policy.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;
using test::play;
using test::Player;
using test::resultOf;
using test::text;
using Kind = AcquireResult::Kind;

Player<AcquireMachine> playerOf(Wait wait, const RetryPolicy& retry)
{
    AcquireMachine::Settings settings;
    settings.lease = 30s;
    settings.wait = wait;
    settings.retry = &retry;
    return {.machine = AcquireMachine(settings)};
}

Replied<LockAnswer> busy(milliseconds now, std::optional<milliseconds> timeToLive = 20s)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::busy, timeToLive}};
}

Replied<LockAnswer> granted(milliseconds now)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::granted}};
}

TEST(AcquireRetry, AsksAfterEachPauseAndNeverSubscribes)
{
    const auto retry = RetryPolicy::fixed(64ms);
    auto player = playerOf(20s, retry);
    const auto result = resultOf<AcquireResult>(play(player, {{Start{at(0ms)}, "send, until 10000 ms"},
                                                              {busy(2ms), "sleep until 66 ms"},
                                                              {TimerFired{at(66ms)}, "send, until 10002 ms"},
                                                              {busy(68ms), "sleep until 132 ms"},
                                                              {TimerFired{at(132ms)}, "send, until 10068 ms"},
                                                              {granted(134ms), "done"}}));
    EXPECT_EQ(result.kind, Kind::granted);
    EXPECT_FALSE(result.pushMissed) << "nobody was to tell it";
    EXPECT_EQ(result.attempts, 3U);
}

TEST(AcquireRetry, APauseEndsWithTheWait)
{
    const auto retry = RetryPolicy::fixed(1h);
    auto player = playerOf(100ms, retry);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until 100 ms");
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(TimerFired{at(100ms)})).kind, Kind::contended);
}

TEST(AcquireRetry, WhoIsToldAllTheSameAsksAtOnce)
{
    const auto retry = RetryPolicy::fixed(1h);
    auto player = playerOf(waitForever, retry);
    player.resume(Start{at(0ms)});
    player.resume(busy(2ms));
    EXPECT_EQ(text(player.resume(Notified{at(5ms)})), "send, until 10002 ms");
}

TEST(AcquireRetry, APolicyThatGivesUpEndsItAsContended)
{
    for (const Wait wait : {Wait(0ms), Wait(20s), waitForever}) {
        const auto retry = RetryPolicy::none();
        auto player = playerOf(wait, retry);
        player.resume(Start{at(0ms)});
        const auto result = resultOf<AcquireResult>(player.resume(busy(2ms)));
        EXPECT_EQ(result.kind, Kind::contended);
        EXPECT_FALSE(result.mayBeHeld);
        EXPECT_EQ(result.attempts, 1U);
    }
}

TEST(AcquireRetry, OnlyRefusalsCountAsAttemptsForThePolicy)
{
    const RetryPolicy retry(
        [](std::uint32_t attempt, Random&) { return std::optional<RetryPolicy::Pause>(attempt * 1ms); });
    auto player = playerOf(20s, retry);
    player.resume(Start{at(0ms)});
    player.resume(Failed{at(1ms), {Failure::lostReply, Errc::unreachable}});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until 3 ms");
    player.resume(TimerFired{at(3ms)});
    EXPECT_EQ(text(player.resume(busy(4ms))), "sleep until 6 ms");
}

TEST(AcquireRetry, SpinningSleepsForNoTimeAtAll)
{
    const auto retry = RetryPolicy::spin();
    auto player = playerOf(20s, retry);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until 2 ms");
}

TEST(AcquireRetry, TheLongestPauseDoesNotOverflow)
{
    const auto retry = RetryPolicy::fixed(RetryPolicy::Pause::max());
    auto player = playerOf(waitForever, retry);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until never");
}

} // namespace
} // namespace redislock::detail
