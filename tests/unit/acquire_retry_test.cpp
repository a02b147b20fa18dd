// AcquireMachine when a policy says when to ask again.
#include "core/machine/acquire_machine.hpp"
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

Player<AcquireMachine> playerOf(Wait wait, const RetryPolicy& retry)
{
    AcquireMachine::Settings settings;
    settings.lease = 30s;
    settings.wait = wait;
    settings.byPolicy = true;
    return {.machine = AcquireMachine(settings), .policy = &retry};
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
    EXPECT_EQ(result.kind, AcquireResult::Kind::granted);
    EXPECT_FALSE(result.pushMissed) << "nobody was to tell it";
    EXPECT_EQ(result.attempts, 3U);
}

TEST(AcquireRetry, APauseEndsWithTheWait)
{
    const auto retry = RetryPolicy::fixed(1h);
    auto player = playerOf(100ms, retry);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until 100 ms");
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(TimerFired{at(100ms)})).kind, AcquireResult::Kind::contended);
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
        EXPECT_EQ(result.kind, AcquireResult::Kind::contended);
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

TEST(AcquireRetry, ThePolicyIsAskedBetweenTwoStepsAndThePauseCountsFromItsAnswer)
{
    const auto retry = RetryPolicy::fixed(64ms);
    auto player = playerOf(20s, retry);
    player.policy = nullptr;
    play(player, {{Start{at(0ms)}, "send, until 10000 ms"},
                  {busy(2ms), "ask the policy after attempt 1"},
                  {Pause{at(500ms), 64ms}, "sleep until 564 ms"},
                  {TimerFired{at(564ms)}, "send, until 10002 ms"},
                  {busy(566ms), "ask the policy after attempt 2"}});
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::choosing);
    auto late = player;
    EXPECT_EQ(resultOf<AcquireResult>(late.resume(Pause{at(20s), 64ms})).kind, AcquireResult::Kind::contended)
        << "the wait is over";
    auto threw = player;
    const auto result = resultOf<AcquireResult>(threw.resume(Cancelled{at(567ms), Errc::invalidArgument}));
    EXPECT_EQ(result.kind, AcquireResult::Kind::failed);
    EXPECT_EQ(result.error, Errc::invalidArgument);
    EXPECT_FALSE(result.mayBeHeld) << "nothing was under way";
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(Pause{at(567ms), std::nullopt})).kind,
              AcquireResult::Kind::contended);
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
    const auto retry = RetryPolicy::fixed(milliseconds::max());
    auto player = playerOf(waitForever, retry);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms))), "sleep until never");
}

} // namespace
} // namespace redislock::detail
