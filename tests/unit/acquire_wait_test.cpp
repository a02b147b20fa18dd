// An acquire that waits: what wakes it, and when its wait is over.
#include "unit/acquire_machine_test.hpp"

namespace redislock::test::acquire {
namespace {

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

TEST(AcquireMachine, TheFirstRequestIsWaitedForNoLongerThanTheWait)
{
    auto player = playerOf(waiting(100ms));
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 100 ms");
    auto late = player;
    const auto unanswered = resultOf<AcquireResult>(player.resume(failed(100ms, Failure::lostReply)));
    EXPECT_EQ(unanswered.error, Errc::unreachable) << "nobody said that another holds it";
    EXPECT_TRUE(unanswered.mayBeHeld);
    EXPECT_EQ(resultOf<AcquireResult>(late.resume(busy(100ms, 1s))).kind, Kind::contended);
}

TEST(AcquireMachine, PatienceThatEndsBeforeTheWaitIsUnreachableThoughAnotherHeldTheLockAMomentAgo)
{
    auto settings = waiting(10s);
    settings.unreachableAfter = 300ms; // less than a command's time
    auto player = playerOf(settings);
    player.resume(Start{at(0ms)});
    player.resume(busy(1ms, 60s));
    EXPECT_EQ(text(player.resume(Notified{at(2ms)})), "send, until 301 ms");
    const auto result = resultOf<AcquireResult>(player.resume(failed(302ms, Failure::lostReply)));
    EXPECT_EQ(result.kind, Kind::failed) << "or lock() would return without a lock";
    EXPECT_EQ(result.error, Errc::unreachable);
}

TEST(AcquireMachine, TheFirstRequestEndsWithTheWaitHoweverShort)
{
    auto player = playerOf(waiting(1ms));
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 1 ms");

    auto refused = playerOf(waiting(10ms));
    refused.resume(Start{at(0ms)});
    EXPECT_EQ(text(refused.resume(failed(1ms, Failure::notConnected))), "send, until 10 ms") << "nobody listens";
}

TEST(AcquireMachine, WhoCameWhileAnotherWasKnownToHoldTheLockIsNotToldOfSilence)
{
    auto settings = waiting(10ms);
    settings.contended = true;
    auto player = playerOf(settings);
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 10 ms");
    const auto result = resultOf<AcquireResult>(player.resume(failed(10ms, Failure::lostReply)));
    EXPECT_EQ(result.kind, Kind::contended);
    EXPECT_TRUE(result.mayBeHeld);
}

TEST(AcquireMachine, AWaitThatEndsBeforeItsRequestIsWrittenIsContendedIfTheServerAnsweredAMomentAgo)
{
    auto player = playerOf(waiting(100ms));
    player.resume(Start{at(0ms)});
    player.resume(busy(2ms, 20s));
    player.resume(Notified{at(50ms)});
    EXPECT_EQ(resultOf<AcquireResult>(player.resume(failed(100ms, Failure::notConnected))).kind, Kind::contended);
}

TEST(AcquireMachine, TheWaitEndsAsContendedHoweverItsLastStepEnds)
{
    const Story begin{
        {Start{at(0ms)}, "send, until 100 ms"},
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

    // a message at the last moment: another thread may have sent the request for it, so it waits for the answer
    EXPECT_EQ(text(told.resume(Notified{at(100ms)})), "send, until 100 ms");
    EXPECT_EQ(resultOf<AcquireResult>(told.resume(failed(100ms, Failure::lostReply))).kind, Kind::contended);
}

TEST(AcquireMachine, TheTimeAsleepIsNoSilenceOfTheServerWhenTheWaitEnds)
{
    const auto endAt4sWhenToldAt = [](milliseconds told) {
        auto player = playerOf(waiting(4s));
        play(player, Story{
                         {Start{at(0ms)}, "send, until 4000 ms"},
                         {busy(2ms, 20s), "subscribe, until 1002 ms"},
                         {TimerFired{at(500ms)}, "send, until 4000 ms"},
                         {busy(501ms, 20s), "sleep until 1501 ms"},
                         {Notified{at(told)}, "send, until 4000 ms"},
                     });
        return resultOf<AcquireResult>(player.resume(failed(4s, Failure::lostReply, Errc::unreachable)));
    };
    EXPECT_EQ(endAt4sWhenToldAt(1001ms).kind, Kind::contended) << "nobody asked for longer than a command's time";
    const auto silent = endAt4sWhenToldAt(1000ms);
    EXPECT_EQ(silent.kind, Kind::failed) << "asked a command's time ago";
    EXPECT_EQ(silent.error, Errc::unreachable);
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

} // namespace
} // namespace redislock::test::acquire
