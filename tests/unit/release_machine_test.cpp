#include "core/machine/release_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;
using test::failed;
using test::FakeClock;
using test::Player;
using test::resultOf;
using test::sleepsBetween;
using test::text;
using test::Trouble;

Player<ReleaseMachine> playerOf(TimePoint validUntil, TimePoint giveUpAfter = TimePoint::max(),
                                Level level = Level::outermost)
{
    return {.machine = ReleaseMachine({.validUntil = validUntil, .giveUpAfter = giveUpAfter, .level = level})};
}

Replied<UnlockAnswer> replied(milliseconds now, UnlockAnswer::Kind kind)
{
    return {at(now), at(now - 1ms), {kind}};
}

TEST(ReleaseMachine, TheFirstAnswerEndsIt)
{
    struct Case {
        const char* name;
        UnlockAnswer::Kind answer;
        Unlocked result;
    };
    const Case cases[] = {
        {"freed", UnlockAnswer::Kind::freed, Unlocked::released},
        {"still held", UnlockAnswer::Kind::stillHeld, Unlocked::stillHeld},
        {"absent", UnlockAnswer::Kind::absent, Unlocked::alreadyLost},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        auto player = playerOf(at(30s), at(10s));
        EXPECT_EQ(player.machine.state(), ReleaseMachine::State::idle);
        EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 10000 ms");
        EXPECT_EQ(player.machine.state(), ReleaseMachine::State::asking);
        EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(1ms, c.answer))), c.result);
        EXPECT_EQ(player.machine.state(), ReleaseMachine::State::done);
    }
}

TEST(ReleaseMachine, TriesNoLongerThanTheLeaseAndNoLongerThanItMay)
{
    EXPECT_EQ(text(playerOf(at(2s), at(10s)).resume(Start{at(0ms)})), "send, until 2000 ms");
    EXPECT_EQ(text(playerOf(at(20s), at(10s)).resume(Start{at(0ms)})), "send, until 10000 ms");
    EXPECT_EQ(text(playerOf(at(2s)).resume(Start{at(0ms)})), "send, until 2000 ms");
}

TEST(ReleaseMachine, ADemotedServerIsLeftAtOnceAndASecondTimeARefusal)
{
    auto player = playerOf(at(30s), at(10s));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(failed(1ms, Failure::demoted, Errc::serverRefused))), "send, until 10000 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(2ms, Failure::demoted, Errc::serverRefused)), at(42ms), at(62ms)));
    EXPECT_EQ(text(player.resume(TimerFired{at(62ms)})), "send, until 10000 ms");
}

TEST(ReleaseMachine, AbsentAfterAnUnansweredTryWasOursWhileTheLeaseLasted)
{
    struct Case {
        const char* name;
        Failure first;
        Level level;
        milliseconds answeredAt;
        Unlocked result;
    };
    const Case cases[] = {
        {"reply lost", Failure::lostReply, Level::outermost, 4999ms, Unlocked::released},
        {"answered when the lease was just over", Failure::lostReply, Level::outermost, 5000ms, Unlocked::alreadyLost},
        {"answered long after", Failure::lostReply, Level::outermost, 9000ms, Unlocked::alreadyLost},
        {"a nested release removes no field", Failure::lostReply, Level::nested, 100ms, Unlocked::alreadyLost},
        {"the first try was not sent", Failure::notConnected, Level::outermost, 100ms, Unlocked::alreadyLost},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        auto player = playerOf(at(5s), TimePoint::max(), c.level);
        player.resume(Start{at(0ms)});
        EXPECT_EQ(text(player.resume(failed(1ms, c.first))), "send, until 5000 ms");
        EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(c.answeredAt, UnlockAnswer::Kind::absent))), c.result);
    }
}

TEST(ReleaseMachine, AbsentAfterARefusalWasOursOnlyIfTheErrorIsNotKnown)
{
    for (const Reason error : {Reason(Errc::serverRefused), Reason(Cause::outOfMemory)}) {
        auto player = playerOf(at(5s));
        player.resume(Start{at(0ms)});
        const auto pause = player.resume(Failed{at(1ms), {Failure::refused, error}});
        EXPECT_TRUE(sleepsBetween(pause, at(41ms), at(61ms)));
        player.resume(TimerFired{at(61ms)});
        EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(62ms, UnlockAnswer::Kind::absent))),
                  error == Reason(Errc::serverRefused) ? Unlocked::released : Unlocked::alreadyLost);
    }
}

TEST(ReleaseMachine, AnUnansweredTryIsRememberedThroughLaterFailures)
{
    auto player = playerOf(at(5s));
    player.resume(Start{at(0ms)});
    player.resume(failed(1ms, Failure::lostReply));
    player.resume(failed(2ms, Failure::notConnected));
    player.resume(failed(3ms, Failure::refused, Errc::serverRefused));
    player.resume(TimerFired{at(60ms)});
    EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(61ms, UnlockAnswer::Kind::absent))), Unlocked::released);
}

TEST(ReleaseMachine, AReleaseWithoutAnswerIsUnconfirmedWhenItsTimeIsOver)
{
    auto player = playerOf(at(5s));
    const test::Script<ReleaseMachine> story{
        {Start{at(0ms)}, "send, until 5000 ms"},
        {failed(3000ms, Failure::lostReply), "send, until 5000 ms"},
        {failed(3050ms, Failure::notConnected), "send, until 5000 ms"},
        {failed(4999ms, Failure::notConnected), "send, until 5000 ms"},
        {failed(5000ms, Failure::notConnected), "done"},
    };
    EXPECT_EQ(resultOf<Unlocked>(play(player, story)), Unlocked::unconfirmed);
}

TEST(ReleaseMachine, ARefusalIsTriedAgainAfterPausesThatEndWithItsTime)
{
    auto player = playerOf(at(200ms));
    player.resume(Start{at(0ms)});
    EXPECT_TRUE(sleepsBetween(player.resume(failed(10ms, Failure::refused)), at(50ms), at(70ms)));
    EXPECT_EQ(player.machine.state(), ReleaseMachine::State::backingOff);
    EXPECT_EQ(text(player.resume(TimerFired{at(70ms)})), "send, until 200 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(71ms, Failure::refused)), at(151ms), at(191ms)));
    player.resume(TimerFired{at(191ms)});
    EXPECT_EQ(text(player.resume(failed(192ms, Failure::refused))), "sleep until 200 ms");
    EXPECT_EQ(resultOf<Unlocked>(player.resume(TimerFired{at(200ms)})), Unlocked::unconfirmed);
}

TEST(ReleaseMachine, AFatalAnswerEndsItForACallerOnly)
{
    auto player = playerOf(at(30s), at(10s));
    player.resume(Start{at(0ms)});
    player.resume(failed(1ms, Failure::lostReply));
    EXPECT_EQ(resultOf<Unlocked>(player.resume(failed(2ms, Failure::fatal, Errc::authFailed))), Unlocked::unconfirmed);
    player.machine.goOnInBackground();
    EXPECT_EQ(player.machine.state(), ReleaseMachine::State::idle);
    EXPECT_EQ(text(player.resume(Start{at(3ms)})), "send, until 30000 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(4ms, Failure::fatal, Errc::permissionDenied)), at(44ms), at(64ms)));
    EXPECT_EQ(text(player.resume(TimerFired{at(64ms)})), "send, until 30000 ms");
    auto shutDown = player;
    EXPECT_EQ(resultOf<Unlocked>(shutDown.resume(failed(65ms, Failure::fatal, Errc::shutdown))), Unlocked::unconfirmed);
    EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(65ms, UnlockAnswer::Kind::absent))), Unlocked::released)
        << "by the first try";
}

TEST(ReleaseMachine, TimeInWhichTheProcessStoodStillIsNoSilenceOfTheServer)
{
    auto player = playerOf(at(50s), at(10s));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(Failed{at(40s), {Failure::lostReply, Errc::unreachable}, 35s})),
              "send, until 45000 ms");
    EXPECT_EQ(text(player.resume(Failed{at(49s), {Failure::lostReply, Errc::unreachable}, 8s})),
              "send, until 50000 ms");
    EXPECT_EQ(resultOf<Unlocked>(player.resume(Failed{at(60s), {Failure::lostReply, Errc::unreachable}, 11s})),
              Unlocked::unconfirmed)
        << "the lease is over";
}

TEST(ReleaseMachine, AKeyOfAnotherTypeMeansThatOursIsGone)
{
    auto player = playerOf(at(5s));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(resultOf<Unlocked>(player.resume(failed(1ms, Failure::fatal, Errc::wrongType))), Unlocked::alreadyLost);
}

TEST(ReleaseMachine, AHoldThatIsOverIsStillAskedForOnce)
{
    auto player = playerOf(at(-1ms));
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until -1 ms");
    auto unanswered = player;
    EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(1ms, UnlockAnswer::Kind::absent))), Unlocked::alreadyLost);
    EXPECT_EQ(resultOf<Unlocked>(unanswered.resume(failed(1ms, Failure::lostReply))), Unlocked::unconfirmed);
}

/// The release fails once, is refused once, and is then answered.
test::Script<ReleaseMachine> troubledRelease()
{
    return {
        {Start{at(0ms)}, "send, until 5000 ms"},
        {failed(10ms, Failure::lostReply), "send, until 5000 ms"},
        {failed(20ms, Failure::notConnected), "send, until 5000 ms"},
        {replied(30ms, UnlockAnswer::Kind::freed), "done"},
    };
}

TEST(ReleaseMachine, FatalErrorsAndCancellationLeaveItUnconfirmedAtEveryStep)
{
    test::forEachStepFail(playerOf(at(5s)), troubledRelease(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint) {
                              if (isEnd(trouble)) {
                                  EXPECT_EQ(resultOf<Unlocked>(action), Unlocked::unconfirmed);
                                  EXPECT_EQ(player.machine.state(), ReleaseMachine::State::done);
                              }
                          });
}

TEST(ReleaseMachine, TroubleThatStaysEndsWithTheLease)
{
    test::forEachStepFail(playerOf(at(5s)), troubledRelease(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint now) {
                              FakeClock clock(now);
                              EXPECT_EQ(resultOf<Unlocked>(persist(player, action, trouble, clock)),
                                        Unlocked::unconfirmed);
                              EXPECT_LE(clock.now(), at(5010ms));
                          });
}

TEST(ReleaseMachine, EveryStepThatFailsOnceIsOvercome)
{
    for (const UnlockAnswer::Kind last : {UnlockAnswer::Kind::freed, UnlockAnswer::Kind::absent}) {
        test::forEachStepFail(playerOf(at(5s)), troubledRelease(),
                              [last](Trouble trouble, bool, auto& player, auto action, TimePoint now) {
                                  if (isEnd(trouble) || trouble == Trouble::timedOut) {
                                      return;
                                  }
                                  if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
                                      action = player.resume(TimerFired{sleep->until});
                                  }
                                  EXPECT_EQ(text(action), "send, until 5000 ms");
                                  const bool mayBeDone = player.machine.state() == ReleaseMachine::State::asking &&
                                                         (leavesOpen(trouble) || now > at(10ms));
                                  EXPECT_EQ(resultOf<Unlocked>(player.resume(replied(100ms, last))),
                                            last == UnlockAnswer::Kind::freed || mayBeDone ? Unlocked::released
                                                                                           : Unlocked::alreadyLost);
                              });
    }
}

} // namespace
} // namespace redislock::detail
