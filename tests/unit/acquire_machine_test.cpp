#include "redislock/detail/logic/acquire_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;
using test::FakeClock;
using test::Player;
using test::resultOf;
using test::Script;
using test::sleepsBetween;
using test::text;
using test::Trouble;
using Kind = AcquireResult::Kind;
using Settings = AcquireMachine::Settings;
using Story = Script<AcquireMachine>;

Settings waiting(Wait wait)
{
    Settings settings;
    settings.lease = 30s;
    settings.wait = wait;
    return settings;
}

Player<AcquireMachine> playerOf(const Settings& settings)
{
    return {.machine = AcquireMachine(settings)};
}

/// The answers of Redis, a millisecond after the request.
Replied<LockAnswer> granted(milliseconds now)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::granted}};
}

Replied<LockAnswer> busy(milliseconds now, std::optional<milliseconds> timeToLive)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::busy, timeToLive}};
}

Replied<LockAnswer> gone(milliseconds now)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::gone}};
}

Failed failed(milliseconds now, Failure failure, Errc error = Errc::unreachable)
{
    return {at(now), {failure, error}};
}

Failed refused(milliseconds now)
{
    return failed(now, Failure::refused, Errc::serverRefused);
}

/// Tries, subscribes, tries again, polls, is told, is granted.
Story contendedStory()
{
    return {
        {Start{at(0ms)}, "send, until 10000 ms"},         {busy(2ms, 20s), "subscribe, until 1002 ms"},
        {Notified{at(3ms)}, "send, until 10002 ms"},      {busy(5ms, 20s), "sleep until 1005 ms"},
        {TimerFired{at(1005ms)}, "send, until 10005 ms"}, {busy(1007ms, 19s), "sleep until 2007 ms"},
        {Notified{at(1500ms)}, "send, until 11007 ms"},   {granted(1502ms), "done"},
    };
}

TEST(AcquireMachine, AFreeLockIsGrantedAtTheFirstAttempt)
{
    auto player = playerOf(waiting(20s));
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::idle);
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 10000 ms");
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::asking);
    const auto result = resultOf<AcquireResult>(player.resume(granted(5ms)));
    EXPECT_EQ(player.machine.state(), AcquireMachine::State::done);
    EXPECT_EQ(result.kind, Kind::granted);
    EXPECT_EQ(text(result.sentAt), "4 ms");
    EXPECT_EQ(text(result.validUntil), "29702 ms"); // 4 + 30 000 − 302
    EXPECT_FALSE(result.mayBeHeld);
    EXPECT_FALSE(result.pushMissed);
    EXPECT_EQ(result.attempts, 1U);
}

TEST(AcquireMachine, AHeldLockIsAskedForAgainAfterSubscribingAndWhenTold)
{
    auto player = playerOf(waiting(20s));
    const auto result = resultOf<AcquireResult>(play(player, contendedStory()));
    EXPECT_EQ(result.kind, Kind::granted);
    EXPECT_EQ(text(result.sentAt), "1501 ms");
    EXPECT_FALSE(result.mayBeHeld);
    EXPECT_FALSE(result.pushMissed);
    EXPECT_EQ(result.attempts, 4U);
}

TEST(AcquireMachine, SleepsUntilThePollOrTheHoldersTimeOrTheDeadlineWhicheverIsFirst)
{
    struct Case {
        const char* name;
        Wait wait;
        std::optional<milliseconds> timeToLive;
        const char* until;
    };
    const Case cases[] = {
        {"the poll", waitForever, 20s, "1002 ms"},
        {"a millisecond after the holder's time", waitForever, 500ms, "503 ms"},
        {"the holder's last millisecond", waitForever, 0ms, "3 ms"},
        {"the deadline", 100ms, 500ms, "100 ms"},
        {"the poll, for a key without time to live", waitForever, std::nullopt, "1002 ms"},
        {"the deadline, for a key without time to live", 100ms, std::nullopt, "100 ms"},
        {"the poll, for a very long lease", waitForever, maxLease, "1002 ms"},
    };
    for (const Case& c : cases) {
        auto player = playerOf(waiting(c.wait));
        player.resume(Start{at(0ms)});
        EXPECT_EQ(text(player.resume(busy(2ms, c.timeToLive))), std::string("subscribe, until ") + c.until) << c.name;
        EXPECT_EQ(player.machine.state(), AcquireMachine::State::waiting) << c.name;
        player.resume(Notified{at(2ms)});
        EXPECT_EQ(text(player.resume(busy(2ms, c.timeToLive))), std::string("sleep until ") + c.until) << c.name;
    }
}

TEST(AcquireMachine, KeyWithoutTimeToLiveIsPolledAndNeverWaitedForWithoutBound)
{
    auto player = playerOf(waiting(waitForever));
    player.resume(Start{at(0ms)});
    player.resume(busy(0ms, std::nullopt));
    FakeClock clock(at(1000ms));
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(text(player.resume(TimerFired{clock.now()})), "send, until " + text(clock.now() - 1s + 10s));
        ASSERT_EQ(text(player.resume(Replied<LockAnswer>{clock.now(), clock.now(), {LockAnswer::Kind::busy}})),
                  "sleep until " + text(clock.now() + 1s));
        clock.advance(1s);
    }
}

TEST(AcquireMachine, AGrantFoundByThePollAloneIsAMissedMessage)
{
    struct Case {
        const char* name;
        Story lastSleep;
        bool missed;
    };
    const Case cases[] = {
        {"woken by the poll",
         {{busy(5ms, 20s), "sleep until 1005 ms"}, {TimerFired{at(1005ms)}, "send, until 10005 ms"}},
         true},
        {"woken by a message",
         {{busy(5ms, 20s), "sleep until 1005 ms"}, {Notified{at(999ms)}, "send, until 10005 ms"}},
         false},
        {"woken when the holder's time was over",
         {{busy(5ms, 500ms), "sleep until 506 ms"}, {TimerFired{at(506ms)}, "send, until 10005 ms"}},
         false},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        auto player = playerOf(waiting(20s));
        player.resume(Start{at(0ms)});
        player.resume(busy(2ms, 20s));
        player.resume(Notified{at(3ms)});
        play(player, c.lastSleep);
        EXPECT_EQ(resultOf<AcquireResult>(player.resume(granted(1010ms))).pushMissed, c.missed);
    }
}

TEST(AcquireMachine, NoMessageIsMissedBeforeTheSubscriptionIsConfirmed)
{
    auto player = playerOf(waiting(20s));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(busy(2ms, 20s))), "subscribe, until 1002 ms");
    player.resume(TimerFired{at(1002ms)});
    EXPECT_FALSE(resultOf<AcquireResult>(player.resume(granted(1003ms))).pushMissed);
}

// ------------------------------------------------------------------------------------------------ Waits

TEST(AcquireMachine, WaitZeroAsksOnceAndNeverSleeps)
{
    auto player = playerOf(waiting(0ms));
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 3000 ms");
    const auto result = resultOf<AcquireResult>(player.resume(busy(2ms, 20s)));
    EXPECT_EQ(result.kind, Kind::contended);
    EXPECT_EQ(result.attempts, 1U);
    EXPECT_FALSE(result.mayBeHeld);
}

TEST(AcquireMachine, WaitZeroFailsAtOnceWithoutAConnectionOrWhenRefused)
{
    for (const Failure failure : {Failure::notConnected, Failure::refused, Failure::fatal}) {
        auto player = playerOf(waiting(0ms));
        player.resume(Start{at(0ms)});
        const auto result = resultOf<AcquireResult>(player.resume(failed(1ms, failure, Errc::serverRefused)));
        EXPECT_EQ(result.kind, Kind::failed);
        EXPECT_EQ(result.error, Errc::serverRefused);
        EXPECT_EQ(result.attempts, 1U);
        EXPECT_EQ(result.mayBeHeld, failure == Failure::refused);
    }
}

TEST(AcquireMachine, WaitZeroSendsALostRequestAgainWithinACommandsTime)
{
    auto player = playerOf(waiting(0ms));
    const auto result =
        resultOf<AcquireResult>(play(player, Story{
                                                 {Start{at(0ms)}, "send, until 3000 ms"},
                                                 {failed(10ms, Failure::lostReply), "send, until 3000 ms"},
                                                 {failed(2999ms, Failure::lostReply), "send, until 3000 ms"},
                                                 {failed(3000ms, Failure::lostReply), "done"},
                                             }));
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_EQ(result.error, Errc::unreachable);
    EXPECT_EQ(result.attempts, 3U);
    EXPECT_TRUE(result.mayBeHeld);
}

TEST(AcquireMachine, TheFirstRequestHasACommandsTimeThoughTheWaitIsShorter)
{
    auto player = playerOf(waiting(100ms));
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 3000 ms");
    auto late = player;
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(granted(2000ms))).kind, Kind::granted);
    EXPECT_EQ(resultOf<AcquireResult>(late.resume(busy(100ms, 1s))).kind, Kind::contended);
}

TEST(AcquireMachine, TheWaitEndsAsContendedHoweverItsLastStepEnds)
{
    const Story begin{
        {Start{at(0ms)}, "send, until 3000 ms"},
        {busy(2ms, 20s), "subscribe, until 100 ms"},
    };
    auto asleep = playerOf(waiting(100ms));
    play(asleep, begin);
    auto asking = asleep;
    auto told = asleep;
    const auto byTimer = resultOf<AcquireResult>(asleep.resume(TimerFired{at(100ms)}));
    EXPECT_EQ(byTimer.kind, Kind::contended);
    EXPECT_FALSE(byTimer.mayBeHeld);
    EXPECT_EQ(byTimer.attempts, 1U);

    EXPECT_EQ(text(asking.resume(Notified{at(99ms)})), "send, until 100 ms");
    const auto unanswered = resultOf<AcquireResult>(asking.resume(failed(100ms, Failure::lostReply)));
    EXPECT_EQ(unanswered.kind, Kind::contended);
    EXPECT_TRUE(unanswered.mayBeHeld);
    EXPECT_EQ(unanswered.attempts, 2U);

    // told at the last moment: somebody may have asked on its behalf, which only the answer settles
    EXPECT_EQ(text(told.resume(Notified{at(100ms)})), "send, until 100 ms");
    EXPECT_EQ(resultOf<AcquireResult>(told.resume(failed(100ms, Failure::lostReply))).kind, Kind::contended);
}

TEST(AcquireMachine, WaitForeverEndsOnlyWhenNoServerAnswers)
{
    auto player = playerOf(waiting(waitForever));
    const auto result =
        resultOf<AcquireResult>(play(player, Story{
                                                 {Start{at(0ms)}, "send, until 10000 ms"},
                                                 {failed(9999ms, Failure::notConnected), "send, until 10000 ms"},
                                                 {busy(9999ms, 1h), "subscribe, until 10999 ms"},
                                                 {TimerFired{at(10999ms)}, "send, until 19999 ms"},
                                                 {busy(11000ms, 1h), "sleep until 12000 ms"},
                                                 {Notified{at(11500ms)}, "send, until 21000 ms"},
                                                 {failed(20999ms, Failure::lostReply), "send, until 21000 ms"},
                                                 {failed(21000ms, Failure::notConnected), "done"},
                                             }));
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_EQ(result.error, Errc::unreachable);
    EXPECT_TRUE(result.mayBeHeld);
    EXPECT_EQ(text(player.machine.lastAnswer()), "11000 ms");
}

TEST(AcquireMachine, SilenceThatOthersFoundCountsFromItsBeginning)
{
    auto settings = waiting(waitForever);
    settings.silentSince = at(-9s);
    auto player = playerOf(settings);
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 1000 ms");
    auto answered = player;
    EXPECT_EQ(text(player.resume(failed(999ms, Failure::notConnected))), "send, until 1000 ms");
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(failed(1000ms, Failure::notConnected))).error, Errc::unreachable);
    EXPECT_EQ(text(player.machine.lastAnswer()), "-9000 ms");
    answered.resume(busy(500ms, 1h));
    EXPECT_EQ(text(answered.resume(Notified{at(501ms)})), "send, until 10500 ms");
}

TEST(AcquireMachine, AWaitThatIsOverWhileTheServerIsSilentSaysSo)
{
    auto player = playerOf(waiting(5s));
    player.resume(Start{at(0ms)});
    player.resume(busy(2ms, 20s));
    player.resume(TimerFired{at(1002ms)});
    const auto result = resultOf<AcquireResult>(player.resume(failed(5000ms, Failure::lostReply)));
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_EQ(result.error, Errc::unreachable);
    EXPECT_TRUE(result.mayBeHeld);
}

TEST(AcquireMachine, NoWaitOverflows)
{
    for (const Wait wait :
         {Wait(milliseconds::max()), Wait(milliseconds::max() - 1ms), Wait(std::chrono::hours(1'000'000))}) {
        auto settings = waiting(wait);
        settings.unreachableAfter = milliseconds::max();
        settings.commandTimeout = milliseconds::max();
        settings.pollInterval = milliseconds::max();
        auto player = playerOf(settings);
        EXPECT_GT(std::get<Send>(player.resume(Start{at(0ms)})).until, at(std::chrono::hours(100'000)));
        EXPECT_GT(std::get<Subscribe>(player.resume(busy(2ms, std::nullopt))).until, at(std::chrono::hours(100'000)));
    }
}

// ---------------------------------------------------------------------------------------- Nested in a hold

TEST(AcquireMachine, ANestedAttemptLastsNoLongerThanTheHoldAroundIt)
{
    auto settings = waiting(waitForever);
    settings.holdDeadline = at(2s);
    auto player = playerOf(settings);
    const auto result =
        resultOf<AcquireResult>(play(player, Story{
                                                 {Start{at(0ms)}, "send, until 2000 ms"},
                                                 {failed(1999ms, Failure::notConnected), "send, until 2000 ms"},
                                                 {failed(2000ms, Failure::notConnected), "done"},
                                             }));
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_FALSE(result.mayBeHeld);
}

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
    EXPECT_EQ(text(player.resume(Replied<LockAnswer>{at(1000ms), at(0ms), answer})), "send, until 3000 ms");
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

// ---------------------------------------------------------------------------------------------- Refusals

TEST(AcquireMachine, ARefusalIsTriedAgainAfterGrowingPauses)
{
    auto player = playerOf(waiting(waitForever));
    player.resume(Start{at(0ms)});
    FakeClock clock(at(0ms));
    for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
        const auto action = player.resume(Failed{clock.now(), {Failure::refused, Errc::serverRefused}});
        EXPECT_TRUE(sleepsBetween(action, clock.now() + pause * 4 / 5, clock.now() + pause * 6 / 5));
        EXPECT_EQ(player.machine.state(), AcquireMachine::State::backingOff);
        clock.advanceTo(std::get<SleepUntil>(action).until);
        EXPECT_TRUE(std::holds_alternative<Send>(player.resume(TimerFired{clock.now()})));
        clock.advance(1ms);
    }
}

TEST(AcquireMachine, RefusalsEndTheCallWhenTheyHaveLastedTooLong)
{
    auto player = playerOf(waiting(waitForever));
    player.resume(Start{at(0ms)});
    player.resume(refused(5s));
    player.resume(TimerFired{at(5100ms)});
    auto answered = player;
    EXPECT_TRUE(sleepsBetween(player.resume(refused(14990ms)), at(15s), at(15s)));
    const auto result = resultOf<AcquireResult>(player.resume(TimerFired{at(15s)}));
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_EQ(result.error, Errc::serverRefused);
    EXPECT_TRUE(result.mayBeHeld);
    EXPECT_EQ(text(player.machine.lastAnswer()), "14990 ms");

    // an answer in between begins a new count, with small pauses
    answered.resume(busy(14990ms, 1h));
    answered.resume(Notified{at(14995ms)});
    EXPECT_TRUE(sleepsBetween(answered.resume(refused(15s)), at(15040ms), at(15060ms)));
    answered.resume(TimerFired{at(15060ms)});
    EXPECT_TRUE(sleepsBetween(answered.resume(refused(24900ms)), at(24980ms), at(25s)));
}

TEST(AcquireMachine, RefusalsEndWithTheWait)
{
    auto player = playerOf(waiting(100ms));
    player.resume(Start{at(0ms)});
    player.resume(refused(50ms));
    player.resume(TimerFired{at(99ms)});
    EXPECT_TRUE(sleepsBetween(player.resume(refused(99ms)), at(100ms), at(100ms)));
    player.resume(TimerFired{at(100ms)});
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(refused(101ms))).error, Errc::serverRefused);
}

// -------------------------------------------------------------------------------------- Every step failing

TEST(AcquireMachine, FatalErrorsAndCancellationEndItAtOnceAtEveryStep)
{
    test::forEachStepFail(playerOf(waiting(20s)), contendedStory(),
                          [](Trouble trouble, bool asked, auto& player, const auto& action, TimePoint) {
                              if (!isEnd(trouble)) {
                                  return;
                              }
                              const auto result = resultOf<AcquireResult>(action);
                              EXPECT_EQ(result.kind, Kind::failed);
                              EXPECT_EQ(result.error, errorOf(trouble));
                              EXPECT_EQ(result.mayBeHeld, asked && leavesOpen(trouble));
                              EXPECT_EQ(player.machine.state(), AcquireMachine::State::done);
                          });
}

TEST(AcquireMachine, EveryStepThatFailsOnceIsOvercomeAndThenNothingMayBeHeld)
{
    test::forEachStepFail(
        playerOf(waiting(20s)), contendedStory(),
        [](Trouble trouble, bool asked, auto& player, auto action, TimePoint now) {
            if (isEnd(trouble) || (trouble == Trouble::timedOut && asked)) {
                return;
            }
            FakeClock clock(now);
            for (int i = 0; i < 10 && text(action) != "done"; ++i) {
                if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
                    clock.advanceTo(sleep->until);
                    action = player.resume(TimerFired{clock.now()});
                } else {
                    action = player.resume(Replied<LockAnswer>{clock.now(), clock.now(), {LockAnswer::Kind::granted}});
                }
            }
            const auto result = resultOf<AcquireResult>(action);
            EXPECT_EQ(result.kind, Kind::granted);
            EXPECT_EQ(result.sentAt, clock.now());
            EXPECT_FALSE(result.mayBeHeld);
        });
}

TEST(AcquireMachine, TroubleThatStaysEndsItInTimeAndMayBeHeldTellsWhatIsOpen)
{
    for (const Wait wait : {Wait(0ms), Wait(20s), waitForever}) {
        const Story story = wait.isOneAttempt() ? Story{{Start{at(0ms)}, "send, until 3000 ms"}, {granted(1ms), "done"}}
                                                : contendedStory();
        test::forEachStepFail(playerOf(waiting(wait)), story,
                              [&](Trouble trouble, bool asked, auto& player, const auto& action, TimePoint now) {
                                  FakeClock clock(now);
                                  const auto result = resultOf<AcquireResult>(persist(player, action, trouble, clock));
                                  EXPECT_NE(result.kind, Kind::granted);
                                  // a sleep that ends is followed by a request that meets the same trouble
                                  const bool met = asked || trouble != Trouble::cancelled;
                                  EXPECT_EQ(result.mayBeHeld, met && leavesOpen(trouble));
                                  // the last answer came at 1007 ms; a last request may take 10 ms
                                  EXPECT_LE(clock.now(), at(12s));
                              });
    }
}

TEST(AcquireMachine, NeverBreaksItsRulesWhateverHappens)
{
    Random random(4711);
    const auto upTo = [&random](std::uint64_t n) { return random.next() % n; };
    for (int run = 0; run < 5000; ++run) {
        SCOPED_TRACE(run);
        auto settings = waiting(upTo(4) == 0 ? waitForever : Wait(milliseconds(upTo(4) * 1000)));
        settings.lease = milliseconds(10 + upTo(2000));
        if (upTo(4) == 0) {
            settings.holdDeadline = at(milliseconds(1 + upTo(5000)));
        }
        auto player = playerOf(settings);
        FakeClock clock(at(0ms));
        TimePoint sentAt = clock.now();
        auto action = player.resume(Start{clock.now()});
        std::uint32_t requests = 1;
        bool open = false;
        int steps = 0;
        for (; steps < 400 && text(action) != "done"; ++steps) {
            AcquireMachine::Event event = Cancelled{clock.now(), Errc::shutdown};
            if (std::holds_alternative<Send>(action)) {
                clock.advance(milliseconds(upTo(300)));
                const TimePoint now = clock.now();
                switch (upTo(8)) {
                case 0:
                    event = failed(0ms, Failure::lostReply);
                    open = true;
                    break;
                case 1:
                    event = refused(0ms);
                    open = true;
                    break;
                case 2:
                    event = failed(0ms, Failure::notConnected);
                    break;
                case 3:
                    event = Replied<LockAnswer>{now, sentAt, {LockAnswer::Kind::granted}};
                    open = open || now >= deadlineOf(sentAt, settings.lease);
                    break;
                case 4:
                    open = true; // cancelled
                    break;
                default:
                    event = Replied<LockAnswer>{now, sentAt, {LockAnswer::Kind::busy, milliseconds(upTo(3000))}};
                    break;
                }
                if (auto* failure = std::get_if<Failed>(&event)) {
                    failure->now = now;
                } else if (auto* cancelled = std::get_if<Cancelled>(&event)) {
                    cancelled->now = now;
                }
            } else {
                const TimePoint until = test::wakesAt(action);
                ASSERT_GT(until, clock.now()) << "asleep until a moment in the past";
                if (upTo(3) == 0) {
                    event = Notified{clock.now()};
                } else {
                    clock.advanceTo(until);
                    event = TimerFired{clock.now()};
                }
            }
            action = player.resume(event);
            if (const auto* send = std::get_if<Send>(&action)) {
                sentAt = clock.now();
                ++requests;
                ASSERT_LE(send->until, settings.holdDeadline);
            }
        }
        ASSERT_LT(steps, 400);
        const auto result = resultOf<AcquireResult>(action);
        ASSERT_EQ(result.attempts, requests);
        if (result.kind == Kind::granted) {
            ASSERT_LT(clock.now(), result.validUntil);
            ASSERT_EQ(result.validUntil, deadlineOf(sentAt, settings.lease));
            ASSERT_FALSE(result.mayBeHeld);
        } else {
            ASSERT_EQ(result.mayBeHeld, open);
        }
    }
}

} // namespace
} // namespace redislock::detail
