// How an acquire reacts to a grant, and to a hold that is gone.
#include "unit/acquire_machine_test.hpp"

namespace redislock::test::acquire {
namespace {

TEST(AcquireMachine, ANestedAttemptThatMeetsItsHoldGoneIsLost)
{
    auto settings = waiting(waitForever);
    settings.holdDeadline = at(20s);
    auto player = playerOf(settings);
    player.resume(Start{at(0ms)});
    player.resume(failed(1ms, Failure::lostReply));
    const auto result = resultOf<AcquireResult>(player.resume(gone(2ms)));
    EXPECT_EQ(result.kind, Kind::lost);
    EXPECT_EQ(result.attempts, 2U);
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::done);
}

// ------------------------------------------------------------------------------------------ Late answers

TEST(AcquireMachine, AGrantCountsFromBeforeTheRequestAndOnlyWhileItLasts)
{
    auto settings = waiting(20s);
    settings.lease = 1000ms; // valid for 988 ms
    auto player = playerOf(settings);
    player.resume(Start{at(0ms)});
    auto inTime = player;
    auto justOver = player;
    const LockAnswer answer{LockAnswer::Kind::granted};
    const auto good = resultOf<AcquireResult>(inTime.resume(Replied<LockAnswer>{at(988ms - 1ns), at(0ms), answer}));
    EXPECT_EQ(good.kind, Kind::granted);
    EXPECT_EQ(text(good.validUntil), "988 ms");
    EXPECT_EQ(text(justOver.resume(Replied<LockAnswer>{at(988ms), at(0ms), answer})), "send, until 10988 ms");
}

TEST(AcquireMachine, AGrantThatCameTooLateIsAskedForAgainAndMayBeHeld)
{
    auto settings = waiting(2s);
    settings.lease = 100ms;
    auto player = playerOf(settings);
    player.resume(Start{at(0ms)});
    const LockAnswer answer{LockAnswer::Kind::granted};
    EXPECT_EQ(text(player.resume(Replied<LockAnswer>{at(1000ms), at(0ms), answer})), "send, until 2000 ms");
    auto again = player;
    const auto failedAtLast =
        resultOf<AcquireResult>(player.resume(Replied<LockAnswer>{at(2000ms), at(1000ms), answer}));
    EXPECT_EQ(failedAtLast.kind, Kind::failed);
    EXPECT_EQ(failedAtLast.error, Errc::unreachable);
    EXPECT_TRUE(failedAtLast.mayBeHeld);
    const auto good = resultOf<AcquireResult>(again.resume(Replied<LockAnswer>{at(1010ms), at(1000ms), answer}));
    EXPECT_EQ(good.kind, Kind::granted);
    EXPECT_EQ(text(good.validUntil), "1097 ms");
    EXPECT_FALSE(good.mayBeHeld);
}

// ------------------------------------------------------------------------------------- Grants by releases

/// A machine whose request at 0 ms was refused, and which sleeps.
Player<AcquireMachine> refusedAtBegin(milliseconds lease, Wait wait = waitForever)
{
    auto settings = waiting(wait);
    settings.lease = lease;
    auto player = playerOf(settings);
    player.resume(Start{at(0ms)});
    player.resume(Replied<LockAnswer>{at(1ms), at(0ms), {LockAnswer::Kind::busy, 20s}});
    return player;
}

TEST(AcquireMachine, AGrantByAReleaseCountsFromTheLastRequestThatWasRefused)
{
    auto player = refusedAtBegin(30s);
    const auto result = resultOf<AcquireResult>(player.resume(GrantHeard{at(700ms), at(0ms), 4000ms}));
    EXPECT_EQ(result.kind, Kind::granted);
    EXPECT_TRUE(result.isGiven);
    EXPECT_FALSE(result.mayBeHeld);
    EXPECT_EQ(text(result.sentAt), "0 ms");
    EXPECT_EQ(text(result.validUntil), "3958 ms") << "less the drift of what it lasts";
    EXPECT_EQ(result.attempts, 1U);
}

TEST(AcquireMachine, AGrantByAReleaseIsAskedForWhereLessThanHalfOfItMayBeLeft)
{
    const auto atLast = refusedAtBegin(30s);
    auto inTime = atLast;
    auto justOver = atLast;
    EXPECT_EQ(text(inTime.resume(GrantHeard{at(1958ms), at(0ms), 4000ms})), "done");
    EXPECT_EQ(text(justOver.resume(GrantHeard{at(1959ms), at(0ms), 4000ms})), "send, until 10001 ms");
    const auto result = resultOf<AcquireResult>(justOver.resume(granted(1961ms)));
    EXPECT_FALSE(result.isGiven) << "it has the whole lease";
    EXPECT_EQ(text(result.validUntil), text(deadlineOf(at(1960ms), 30s)));
    auto shortLease = refusedAtBegin(300ms);
    EXPECT_EQ(text(shortLease.resume(GrantHeard{at(200ms), at(0ms), 300ms})), "send, until 10001 ms");
}

TEST(AcquireMachine, AGrantByAReleaseIsAskedForWhereTheLastRequestWasNotAnsweredWithARefusal)
{
    auto player = refusedAtBegin(30s);
    player.resume(TimerFired{at(1001ms)});
    player.resume(refused(1002ms)); // by the server
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::backingOff);
    EXPECT_EQ(text(player.resume(GrantHeard{at(1003ms), at(1001ms), 4000ms})), "send, until 11002 ms");
}

// ---------------------------------------------------------------------------------------------- Refusals

} // namespace
} // namespace redislock::test::acquire
