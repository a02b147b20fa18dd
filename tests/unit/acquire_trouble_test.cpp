// An acquire that is refused, gets no answer, or is cancelled.
#include "unit/acquire_machine_test.hpp"

namespace redislock::test::acquire {
namespace {

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
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(TimerFired{at(100ms)})).error, Errc::serverRefused);
}

TEST(AcquireMachine, AWaitThatEndsWithoutAnAnswerEndsAsTheLastOneToldIfThatCameAMomentAgo)
{
    auto settings = waiting(10s);
    settings.commandTimeout = 1s;
    auto player = playerOf(settings);
    player.resume(Start{at(0s)});
    player.resume(refused(5s));
    player.resume(TimerFired{at(9s)});
    auto late = player;
    EXPECT_EQ(resultOf<AcquireResult>(late.resume(failed(10s, Failure::lostReply))).error, Errc::unreachable);
    player.resume(refused(9500ms));
    player.resume(TimerFired{at(9600ms)});
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(failed(10s, Failure::lostReply))).error, Errc::serverRefused);
}

TEST(AcquireMachine, ADemotedServerIsLeftAtOnceAndASecondTimeARefusal)
{
    auto player = playerOf(waiting(20s));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(demoted(5ms))), "send, until 10005 ms") << "over the next connection";
    auto found = player;
    EXPECT_TRUE(sleepsBetween(player.resume(demoted(10ms)), at(50ms), at(70ms)));
    player.resume(TimerFired{at(70ms)});
    EXPECT_TRUE(sleepsBetween(player.resume(demoted(80ms)), at(160ms), at(200ms)));

    found.resume(busy(10ms, 1h));
    found.resume(Notified{at(15ms)});
    EXPECT_EQ(text(found.resume(demoted(20ms))), "send, until 10020 ms") << "another time";
}

TEST(AcquireMachine, WhoAsksOnceIsToldOfADemotedServerAfterOneRetry)
{
    auto player = playerOf(waiting(oneAttempt));
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(demoted(5ms))), "send, until 3000 ms");
    auto next = player;
    const auto result = resultOf<AcquireResult>(player.resume(demoted(10ms)));
    EXPECT_EQ(result.error, Errc::serverRefused);
    EXPECT_FALSE(result.mayBeHeld) << "a replica does nothing";
    EXPECT_EQ(resultOf<AcquireResult>(next.resume(failed(10ms, Failure::notConnected))).error, Errc::serverRefused);
}

TEST(AcquireMachine, TimeInWhichTheProcessStoodStillIsNoSilenceOfTheServer)
{
    const Failed stopped{at(60s), {Failure::lostReply, Errc::unreachable}, 55s};
    auto patient = playerOf(waiting(waitForever));
    patient.resume(Start{at(0ms)});
    EXPECT_EQ(text(patient.resume(stopped)), "send, until 65000 ms");
    EXPECT_EQ(resultOf<AcquireResult>(patient.resume(failed(65s, Failure::lostReply))).error, Errc::unreachable);
    auto once = playerOf(waiting(oneAttempt));
    once.resume(Start{at(0ms)});
    EXPECT_EQ(text(once.resume(Failed{at(57s), {Failure::lostReply, Errc::unreachable}, 55s})), "send, until 58000 ms");
    EXPECT_EQ(resultOf<AcquireResult>(once.resume(failed(58s, Failure::lostReply))).error, Errc::unreachable);
    auto over = playerOf(waiting(20s));
    over.resume(Start{at(0ms)});
    EXPECT_EQ(resultOf<AcquireResult>(over.resume(stopped)).error, Errc::unreachable) << "the wait is over";
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
                                  // after a sleep comes a request that meets the same trouble
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

TEST(AcquireMachine, FollowsFiveRedirectionsAtOnceBeforeEachPause)
{
    auto player = playerOf(waiting(waitForever));
    player.resume(Start{at(0ms)});
    const auto moved = [](milliseconds now) { return test::failed(now, Failure::moved, Errc::serverRefused); };
    for (int round = 0; round < 3; ++round) {
        const auto now = round * 1s;
        for (int i = 0; i < 5; ++i) {
            EXPECT_TRUE(std::holds_alternative<Send>(player.resume(moved(now + i * 1ms)))) << round << ' ' << i;
        }
        ASSERT_TRUE(std::holds_alternative<SleepUntil>(player.resume(moved(now + 5ms))));
        EXPECT_TRUE(std::holds_alternative<Send>(player.resume(TimerFired{at(now + 999ms)})));
    }
    EXPECT_FALSE(player.machine.mayBeHeld()) << "none of these nodes did anything";
}

} // namespace
} // namespace redislock::test::acquire
