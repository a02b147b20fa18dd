#include "core/machine/lock_answer.hpp"
#include "core/machine/renew_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;
using test::FakeClock;
using test::Player;
using test::resultOf;
using test::sleepsBetween;
using test::text;
using test::Trouble;

Replied<RenewAnswer> renewed(TimePoint now, TimePoint sentAt)
{
    return {now, sentAt, {RenewAnswer::Kind::renewed}};
}

Failed failedAt(TimePoint now, Failure failure, Errc error = Errc::unreachable)
{
    return {now, {failure, error}};
}

/// The hold is granted at the beginning and due for its first renewal. @return the time of the renewal.
TimePoint askFirst(Player<RenewMachine>& player)
{
    const TimePoint due = std::get<SleepUntil>(player.resume(Start{at(0ms)})).until;
    EXPECT_EQ(text(player.resume(TimerFired{due})), "send, until never");
    return due;
}

TEST(RenewMachine, RenewsAThirdOfTheLeaseAfterTheLastRequestThatWon)
{
    Player<RenewMachine> player; // lease 30 s
    EXPECT_EQ(player.machine.state(), RenewMachine::State::idle);
    EXPECT_TRUE(sleepsBetween(player.resume(Start{at(0ms)}), at(9500ms), at(10500ms)));
    EXPECT_EQ(player.machine.state(), RenewMachine::State::sleeping);
    EXPECT_EQ(text(player.resume(TimerFired{at(10s)})), "send, until never");
    EXPECT_EQ(player.machine.state(), RenewMachine::State::asking);
    // the interval counts from the request, however long the answer took
    EXPECT_TRUE(sleepsBetween(player.resume(renewed(at(12s), at(10s))), at(19500ms), at(20500ms)));
}

TEST(RenewMachine, DueTimesAreSpreadByFivePerCent)
{
    auto least = TimePoint::max();
    auto most = TimePoint{};
    Player<RenewMachine> player{.lease = 3s};
    for (int i = 0; i < 1000; ++i) {
        player.machine = {};
        const auto action = player.resume(Start{at(0ms)});
        ASSERT_TRUE(sleepsBetween(action, at(950ms), at(1050ms)));
        least = std::min(least, std::get<SleepUntil>(action).until);
        most = std::max(most, std::get<SleepUntil>(action).until);
    }
    EXPECT_LT(least, at(955ms));
    EXPECT_GT(most, at(1045ms));
}

TEST(RenewMachine, FollowsALeaseThatChanges)
{
    Player<RenewMachine> player;
    player.resume(Start{at(0ms)});
    player.resume(TimerFired{at(10s)});
    player.lease = 300ms;
    EXPECT_TRUE(sleepsBetween(player.resume(renewed(at(10s), at(10s))), at(10095ms), at(10105ms)));
}

TEST(RenewMachine, AHoldThatIsGoneIsLost)
{
    Player<RenewMachine> player;
    const TimePoint now = askFirst(player);
    auto wrongType = player;
    EXPECT_EQ(resultOf<RenewalEnd>(player.resume(Replied<RenewAnswer>{now, now, {RenewAnswer::Kind::gone}})),
              RenewalEnd::lost);
    EXPECT_EQ(player.machine.state(), RenewMachine::State::done);
    EXPECT_EQ(resultOf<RenewalEnd>(wrongType.resume(Replied<RenewAnswer>{now, now, {RenewAnswer::Kind::wrongType}})),
              RenewalEnd::lost);
}

TEST(RenewMachine, ARenewalWithoutAnswerIsSentAgainAtOnce)
{
    Player<RenewMachine> player;
    const TimePoint now = askFirst(player);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(text(player.resume(failedAt(now + i * 1s, Failure::lostReply))), "send, until never");
    }
    EXPECT_TRUE(sleepsBetween(player.resume(renewed(now + 100s, now + 99s)), now + 108s, now + 110s));
}

TEST(RenewMachine, ARenewalThatADemotedServerRefusedIsSentToAnotherAtOnce)
{
    Player<RenewMachine> player;
    const TimePoint now = askFirst(player);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(text(player.resume(failedAt(now + i * 1s, Failure::demoted))), "send, until never");
    }
}

TEST(RenewMachine, AFailedRenewalIsTriedAgainSoonWhateverFailed)
{
    for (const Failure failure : {Failure::notConnected, Failure::refused, Failure::fatal}) {
        Player<RenewMachine> player;
        FakeClock clock(askFirst(player));
        for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
            const auto action = player.resume(failedAt(clock.now(), failure));
            ASSERT_TRUE(sleepsBetween(action, clock.now() + pause * 4 / 5, clock.now() + pause * 6 / 5));
            ASSERT_EQ(player.machine.state(), RenewMachine::State::sleeping);
            clock.advanceTo(std::get<SleepUntil>(action).until);
            ASSERT_EQ(text(player.resume(TimerFired{clock.now()})), "send, until never");
        }
        player.resume(renewed(clock.now(), clock.now())); // the next failure begins with a small pause
        player.resume(TimerFired{clock.now()});
        EXPECT_TRUE(
            sleepsBetween(player.resume(failedAt(clock.now(), failure)), clock.now() + 40ms, clock.now() + 60ms));
    }
}

TEST(RenewMachine, AShortLeaseHasShortPauses)
{
    Player<RenewMachine> player{.lease = 100ms};
    const TimePoint now = askFirst(player);
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(sleepsBetween(player.resume(failedAt(now, Failure::refused)), now + 1ms, now + 5ms));
        player.resume(TimerFired{now});
    }
}

TEST(RenewMachine, TriesAtLeastThreeTimesBeforeTheHoldIsAtRisk)
{
    for (const milliseconds lease : {100ms, 300ms, 1000ms, 30000ms, 3600000ms}) {
        const TimePoint risk = deadlineOf(at(0ms), lease) - riskMarginOf(lease, std::min(lease / 6, 3000ms));
        for (std::uint64_t seed = 0; seed < 100; ++seed) {
            Player<RenewMachine> player{.random = Random(seed), .lease = lease};
            FakeClock clock(at(0ms));
            auto action = player.resume(Start{clock.now()});
            int tries = 0;
            while (clock.now() < risk) {
                const auto* sleep = std::get_if<SleepUntil>(&action);
                clock.advanceTo(sleep != nullptr ? sleep->until : clock.now());
                tries += sleep != nullptr && clock.now() < risk ? 1 : 0;
                action = sleep != nullptr ? player.resume(TimerFired{clock.now()})
                                          : player.resume(failedAt(clock.now(), Failure::refused));
            }
            EXPECT_GE(tries, 3) << "lease " << lease.count() << " ms, seed " << seed;
        }
    }
}

test::Script<RenewMachine> story()
{
    Player<RenewMachine> player;
    const auto first = player.resume(Start{at(0ms)});
    const TimePoint due = std::get<SleepUntil>(first).until;
    player.resume(TimerFired{due});
    const auto second = player.resume(renewed(due + 1ms, due));
    const TimePoint dueAgain = std::get<SleepUntil>(second).until;
    return {
        {Start{at(0ms)}, text(first)},
        {TimerFired{due}, "send, until never"},
        {renewed(due + 1ms, due), text(second)},
        {TimerFired{dueAgain}, "send, until never"},
        {Replied<RenewAnswer>{dueAgain + 1ms, dueAgain, {RenewAnswer::Kind::gone}}, "done"},
    };
}

TEST(RenewMachine, CancellationEndsItAtEveryStepAndNothingElseDoes)
{
    test::forEachStepFail(Player<RenewMachine>{}, story(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint) {
                              if (trouble == Trouble::cancelled) {
                                  EXPECT_EQ(resultOf<RenewalEnd>(action), RenewalEnd::cancelled);
                                  EXPECT_EQ(player.machine.state(), RenewMachine::State::done);
                              } else {
                                  EXPECT_NE(text(action), "done");
                              }
                          });
}

TEST(RenewMachine, EveryStepThatFailsOnceIsOvercome)
{
    test::forEachStepFail(Player<RenewMachine>{}, story(),
                          [](Trouble trouble, bool, auto& player, auto action, TimePoint now) {
                              if (trouble == Trouble::cancelled) {
                                  return;
                              }
                              FakeClock clock(now);
                              if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
                                  EXPECT_LE(sleep->until, now + 60ms);
                                  clock.advanceTo(sleep->until);
                                  action = player.resume(TimerFired{clock.now()});
                              }
                              EXPECT_EQ(text(action), "send, until never");
                              EXPECT_TRUE(sleepsBetween(player.resume(renewed(clock.now() + 1s, clock.now())),
                                                        clock.now() + 9500ms, clock.now() + 10500ms));
                          });
}

TEST(RenewMachine, GoesOnForeverUntilItIsToldThatTheHoldIsOver)
{
    for (const Trouble trouble :
         {Trouble::notConnected, Trouble::lostReply, Trouble::refused, Trouble::fatal, Trouble::badReply}) {
        Player<RenewMachine> player;
        FakeClock clock(at(0ms));
        auto action = player.resume(Start{clock.now()});
        for (int i = 0; i < 10'000; ++i) {
            auto event = test::eventOf<RenewMachine>(trouble, action, clock.now());
            if (!event) {
                event = test::eventOf<RenewMachine>(Trouble::timedOut, action, clock.now());
            }
            clock.advanceTo(test::timeOf(*event));
            action = player.resume(*event);
            ASSERT_NE(text(action), "done");
        }
        EXPECT_EQ(resultOf<RenewalEnd>(player.resume(Cancelled{clock.now(), Errc::lost})), RenewalEnd::cancelled);
    }
}

TEST(RenewMachine, FollowsARedirectionAtOnceAndAfterAPauseIfThereIsAnother)
{
    Player<RenewMachine> player;
    const TimePoint now = askFirst(player);
    EXPECT_EQ(text(player.resume(failedAt(now, Failure::moved))), "send, until never");
    EXPECT_TRUE(sleepsBetween(player.resume(failedAt(now, Failure::moved)), now + 80ms, now + 120ms));
    EXPECT_EQ(text(player.resume(TimerFired{now + 120ms})), "send, until never");
    (void)player.resume(renewed(now + 121ms, now + 120ms));
    (void)player.resume(TimerFired{now + 11s});
    EXPECT_EQ(text(player.resume(failedAt(now + 11s, Failure::moved))), "send, until never") << "another time";
}

} // namespace
} // namespace redislock::detail
