// GroupMachine, step by step.
#include "core/group/group_machine.hpp"
#include "redislock/retry_policy.hpp"
#include "unit/machine_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace redislock::detail {

// found by argument-dependent look-up from test::text(variant)
inline std::string text(const AskMembers& ask)
{
    return "round " + std::to_string(ask.round) + ", until " + test::text(ask.until);
}
inline std::string text(const AwaitMember& await)
{
    return "round " + std::to_string(await.round) + ": wait for " + std::to_string(await.member) + ", until " +
           test::text(await.until);
}
inline std::string text(const AskOthers& others)
{
    const auto wait = others.wait.isOneAttempt() ? "" : " for " + std::to_string(others.wait.span().count()) + " ms";
    return "all but " + std::to_string(others.member) + wait + ", until " + test::text(others.until);
}
inline std::string text(const AwaitMembers& await)
{
    return "await, until " + test::text(await.until);
}
inline std::string text(const Retreat& retreat)
{
    return "retreat from round " + std::to_string(retreat.attempt);
}

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;
using test::play;
using test::Player;
using test::resultOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RetryPolicy pauseOf64ms = RetryPolicy::fixed(64ms);

Player<GroupMachine> playerOf(std::size_t members, std::size_t needed, Wait wait = 20s,
                              const RetryPolicy& retry = pauseOf64ms, bool byPolicy = true)
{
    GroupMachine::Settings settings;
    settings.members = members;
    settings.needed = needed;
    settings.wait = wait;
    settings.byPolicy = byPolicy;
    settings.memberTimeout = 500ms;
    settings.unreachableAfter = 5s;
    return {.machine = GroupMachine(settings), .policy = &retry};
}

/// A group without a policy of the caller's, with only the pauses between waits.
Player<GroupMachine> waiterFor(std::size_t members, std::size_t needed, Wait wait = 20s)
{
    return playerOf(members, needed, wait, pauseOf64ms, false);
}

MemberAnswered granted(milliseconds now, std::size_t member, milliseconds validUntil = 10s, std::uint32_t round = 1)
{
    return {at(now), round, member, {.kind = MemberAnswer::Kind::granted, .validUntil = at(validUntil)}};
}

MemberAnswered busy(milliseconds now, std::size_t member, std::uint32_t round = 1)
{
    return {at(now), round, member, {.kind = MemberAnswer::Kind::busy}};
}

MemberAnswered failed(milliseconds now, std::size_t member, Errc error = Errc::unreachable, std::uint32_t round = 1)
{
    return {at(now), round, member, {.kind = MemberAnswer::Kind::failed, .error = error}};
}

TEST(GroupMachine, OfAllIsHeldWithTheLastGrantAndValidAsLongAsTheFirstThatEnds)
{
    auto player = playerOf(3, 3);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {granted(2ms, 1, 9s), "await, until 500 ms"},
                                                            {granted(3ms, 0, 8s), "await, until 500 ms"},
                                                            {granted(4ms, 2, 7s), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::granted);
    EXPECT_EQ(result.validUntil, at(7s));
    EXPECT_EQ(result.rounds, 1U);
    EXPECT_EQ(player.machine.state(), GroupMachine::State::done);
}

TEST(GroupMachine, OfAMajorityIsHeldWithTheGrantThatMakesItAndDoesNotWaitForTheOthers)
{
    auto player = playerOf(5, 3);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {granted(2ms, 4, 9s), "await, until 500 ms"},
                                                            {failed(3ms, 0), "await, until 500 ms"},
                                                            {granted(3ms, 3, 8s), "await, until 500 ms"},
                                                            {granted(4ms, 1, 7s), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::granted);
    EXPECT_EQ(result.validUntil, at(7s));
    EXPECT_THAT(player.machine.open(), ElementsAre(1, 2, 3, 4)) << "the one that has not answered may join it";
}

TEST(GroupMachine, IsValidUntilSoManyAsAreNeededAre)
{
    EXPECT_EQ(validityOf({at(3s), at(1s), at(2s)}, 3), at(1s));
    EXPECT_EQ(validityOf({at(3s), at(1s), at(2s)}, 2), at(2s));
    EXPECT_EQ(validityOf({at(3s), at(1s), at(2s)}, 1), at(3s));
    EXPECT_EQ(validityOf({at(3s), at(1s)}, 3), TimePoint{});
    EXPECT_EQ(validityOf(std::vector<TimePoint>(), 1), TimePoint{});
    EXPECT_EQ(validityOf({at(1s)}, 0), TimePoint{});
}

TEST(GroupMachine, GivesAMemberATwentiethOfTheLeaseButNeitherTooLittleNorTooMuch)
{
    EXPECT_EQ(memberTimeoutOf(10s, 3s), 500ms);
    EXPECT_EQ(memberTimeoutOf(10ms, 3s), 50ms);
    EXPECT_EQ(memberTimeoutOf(maxLease, 3s), 3s);
    EXPECT_EQ(memberTimeoutOf(10s, 20ms), 20ms);
}

TEST(GroupMachine, OneRefusalEndsTheRoundAtOnceAndEverythingIsGivenBack)
{
    auto player = playerOf(3, 3);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {granted(2ms, 1), "await, until 500 ms"},
                  {busy(3ms, 0), "sleep until 67 ms"}});
    EXPECT_THAT(player.machine.open(), ElementsAre(1, 2)) << "the granted one and the one that may be";
    EXPECT_EQ(player.machine.state(), GroupMachine::State::pausing);
}

TEST(GroupMachine, TriesAllAgainAfterThePause)
{
    auto player = playerOf(2, 2);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {busy(3ms, 0), "sleep until 67 ms"},
                                                            {TimerFired{at(67ms)}, "round 2, until 567 ms"},
                                                            {granted(68ms, 0, 10s, 2), "await, until 567 ms"},
                                                            {granted(69ms, 1, 10s, 2), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::granted);
    EXPECT_EQ(result.rounds, 2U);
}

TEST(GroupMachine, AnswersOfAnEarlierRoundCountForNothing)
{
    auto player = playerOf(2, 2);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {busy(3ms, 0), "sleep until 67 ms"},
                  {granted(4ms, 1), "await, until 67 ms"},
                  {TimerFired{at(67ms)}, "round 2, until 567 ms"},
                  {granted(68ms, 1), "await, until 567 ms"},
                  {granted(68ms, 0, 10s, 2), "await, until 567 ms"},
                  {granted(69ms, 0, 10s, 2), "await, until 567 ms"}});
    EXPECT_THAT(player.machine.open(), ElementsAre(0, 1));
}

TEST(GroupMachine, ATimerThatGoesOffTooEarlyChangesNothing)
{
    auto player = playerOf(2, 2);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {TimerFired{at(499ms)}, "await, until 500 ms"},
                  {busy(499ms, 0), "sleep until 563 ms"},
                  {TimerFired{at(500ms)}, "await, until 563 ms"}});
}

TEST(GroupMachine, AMemberThatDoesNotAnswerInItsTimeCountsAsUnreachableAndIsGivenBack)
{
    auto player = playerOf(3, 2, 0ms);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {granted(3ms, 0), "await, until 500 ms"},
                                                            {TimerFired{at(500ms)}, "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::failed);
    EXPECT_EQ(result.error, Errc::unreachable);
    EXPECT_THAT(player.machine.open(), ElementsAre(0, 1, 2));
}

TEST(GroupMachine, EnoughAnswersOfWhichTooFewAreGrantsAreContention)
{
    auto player = playerOf(5, 3, 0ms);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {failed(1ms, 0), "await, until 500 ms"},
                                                            {failed(1ms, 1), "await, until 500 ms"},
                                                            {granted(2ms, 2), "await, until 500 ms"},
                                                            {busy(2ms, 3), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::contended) << "three servers are there";
    EXPECT_THAT(player.machine.open(), ElementsAre(2, 4));
}

TEST(GroupMachine, TooFewServersAreAnError)
{
    auto player = playerOf(5, 3, 0ms);
    const auto result =
        resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                            {failed(1ms, 0, Errc::serverRefused), "await, until 500 ms"},
                                            {failed(1ms, 1), "await, until 500 ms"},
                                            {failed(2ms, 2), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::failed);
    EXPECT_EQ(result.error, Errc::serverRefused) << "the first of them";
}

TEST(GroupMachine, WhatNoRepetitionWouldChangeEndsItAtOnceWhenTooFewAreLeft)
{
    auto all = playerOf(3, 3, waitForever);
    all.resume(Start{at(0ms)});
    const auto result = resultOf<GroupResult>(all.resume(failed(1ms, 2, Errc::wrongType)));
    EXPECT_EQ(result.error, Errc::wrongType);
    EXPECT_THAT(all.machine.open(), ElementsAre(0, 1));

    auto majority = playerOf(3, 2, waitForever);
    majority.resume(Start{at(0ms)});
    majority.resume(failed(1ms, 0, Errc::shutdown));
    majority.resume(granted(2ms, 1));
    EXPECT_EQ(resultOf<GroupResult>(majority.resume(granted(2ms, 2))).kind, GroupResult::Kind::granted);
}

TEST(GroupMachine, PatienceEndsWhenTooFewHaveAnsweredForTooLong)
{
    auto player = playerOf(3, 2, waitForever);
    milliseconds now{0};
    auto action = player.resume(Start{at(now)});
    std::uint32_t round = 1;
    while (test::text(action) != "done") {
        ASSERT_LT(now, 6s);
        player.resume(failed(now + 1ms, 0, Errc::unreachable, round));
        action = player.resume(failed(now + 1ms, 1, Errc::unreachable, round));
        now += 65ms;
        if (std::holds_alternative<SleepUntil>(action)) {
            action = player.resume(TimerFired{at(now)});
            ++round;
        }
    }
    EXPECT_GE(now, 5s);
    EXPECT_EQ(resultOf<GroupResult>(action).error, Errc::unreachable);
}

TEST(GroupMachine, ContentionIsNoOutageHoweverLongItLasts)
{
    auto player = playerOf(3, 3, waitForever);
    milliseconds now{0};
    player.resume(Start{at(now)});
    for (std::uint32_t round = 1; round < 1000; ++round) {
        ASSERT_TRUE(std::holds_alternative<SleepUntil>(player.resume(busy(now + 1ms, 1, round))));
        now += 65ms;
        ASSERT_TRUE(std::holds_alternative<AskMembers>(player.resume(TimerFired{at(now)})));
    }
}

TEST(GroupMachine, TheWaitEndsAPauseAndEveryRound)
{
    auto player = playerOf(2, 2, 100ms);
    play(player, {{Start{at(0ms)}, "round 1, until 100 ms"},
                  {busy(3ms, 0), "sleep until 67 ms"},
                  {TimerFired{at(67ms)}, "round 2, until 100 ms"}});
    auto inRound = player;
    EXPECT_EQ(resultOf<GroupResult>(inRound.resume(TimerFired{at(100ms)})).kind, GroupResult::Kind::contended);
    EXPECT_THAT(inRound.machine.open(), ElementsAre(0, 1));
    EXPECT_EQ(test::text(player.resume(busy(70ms, 0, 2))), "sleep until 100 ms");
    EXPECT_EQ(resultOf<GroupResult>(player.resume(TimerFired{at(100ms)})).kind, GroupResult::Kind::contended);
}

TEST(GroupMachine, AFirstRoundThatTheWaitCutsShortIsUnreachableWhereTooFewHaveAnswered)
{
    auto silent = playerOf(3, 2, 100ms);
    play(silent, {{Start{at(0ms)}, "round 1, until 100 ms"}, {granted(1ms, 0), "await, until 100 ms"}});
    auto answered = silent;
    EXPECT_EQ(resultOf<GroupResult>(silent.resume(TimerFired{at(100ms)})).error, Errc::unreachable);
    EXPECT_EQ(test::text(answered.resume(busy(2ms, 1))), "await, until 100 ms");
    EXPECT_EQ(resultOf<GroupResult>(answered.resume(TimerFired{at(100ms)})).kind, GroupResult::Kind::contended);
}

TEST(GroupMachine, AFirstRoundEndsWithTheWaitAndHasItsTimeWhereThereIsNone)
{
    auto brief = playerOf(2, 2, 1ms);
    EXPECT_EQ(test::text(brief.resume(Start{at(0ms)})), "round 1, until 1 ms");
    auto once = playerOf(2, 2, oneAttempt);
    EXPECT_EQ(test::text(once.resume(Start{at(0ms)})), "round 1, until 500 ms");
}

TEST(GroupMachine, ARoundThatTheWaitCutsShortEndsAsTheOneBefore)
{
    auto player = playerOf(3, 2, 600ms);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                                            {granted(1ms, 0), "await, until 500 ms"},
                                                            {TimerFired{at(500ms)}, "sleep until 564 ms"},
                                                            {TimerFired{at(564ms)}, "round 2, until 600 ms"},
                                                            {TimerFired{at(600ms)}, "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::failed);
    EXPECT_EQ(result.error, Errc::unreachable);
}

TEST(GroupMachine, ARoundThatIsLateIsGivenBackAndTriedAgain)
{
    auto player = playerOf(2, 2);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {granted(10ms, 0, 40ms), "await, until 500 ms"},
                  {granted(50ms, 1, 80ms), "sleep until 114 ms"}});
    EXPECT_THAT(player.machine.open(), ElementsAre(0, 1));
}

TEST(GroupMachine, ALeaseThatIsShorterThanTheWayEndsInTime)
{
    auto player = playerOf(1, 1, waitForever);
    milliseconds now{0};
    auto action = player.resume(Start{at(now)});
    for (std::uint32_t round = 1; test::text(action) != "done"; ++round) {
        ASSERT_LT(now, 6s);
        action = player.resume(granted(now + 1ms, 0, now, round));
        now += 65ms;
        if (std::holds_alternative<SleepUntil>(action)) {
            action = player.resume(TimerFired{at(now)});
        }
    }
    EXPECT_EQ(resultOf<GroupResult>(action).error, Errc::unreachable);
}

TEST(GroupMachine, APolicyThatGivesUpEndsItAsContended)
{
    const auto once = RetryPolicy::none();
    auto player = playerOf(2, 2, waitForever, once);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(resultOf<GroupResult>(player.resume(busy(1ms, 0))).kind, GroupResult::Kind::contended);
}

TEST(GroupMachine, ThePolicyIsAskedWhileNothingIsHeld)
{
    auto player = playerOf(2, 2);
    player.policy = nullptr;
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {granted(2ms, 0), "await, until 500 ms"},
                  {busy(3ms, 1), "retreat from round 1"},
                  {granted(4ms, 1), "await, until never"},
                  {TimerFired{at(500ms)}, "await, until never"},
                  {Pause{at(600ms), 64ms}, "sleep until 664 ms"},
                  {TimerFired{at(664ms)}, "round 2, until 1164 ms"}});
    player.resume(busy(665ms, 1, 2));
    const auto result = resultOf<GroupResult>(player.resume(Cancelled{at(666ms), Errc::invalidArgument}));
    EXPECT_EQ(result.kind, GroupResult::Kind::failed);
    EXPECT_EQ(result.error, Errc::invalidArgument);
}

TEST(GroupMachine, NoPauseIsLongerThanASecond)
{
    const auto long_ = RetryPolicy::fixed(1h);
    auto player = playerOf(2, 2, waitForever, long_);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(test::text(player.resume(busy(1ms, 0))), "sleep until 1001 ms");
}

TEST(GroupMachine, CancelledAnywhereEndsWithItsReasonAndSaysWhatIsOpen)
{
    auto player = playerOf(3, 3);
    auto fresh = player;
    EXPECT_EQ(resultOf<GroupResult>(fresh.resume(Cancelled{at(0ms), Errc::shutdown})).error, Errc::shutdown);
    EXPECT_THAT(fresh.machine.open(), IsEmpty());
    player.resume(Start{at(0ms)});
    player.resume(granted(1ms, 2));
    EXPECT_EQ(resultOf<GroupResult>(player.resume(Cancelled{at(2ms), Errc::shutdown})).error, Errc::shutdown);
    EXPECT_THAT(player.machine.open(), ElementsAre(0, 1, 2));
}

/// Every mixture of answers of three members, in one round: the group is granted exactly when enough members are, and
/// then at once.
TEST(GroupMachine, EveryMixtureOfAnswersEndsAsItsCountsSay)
{
    const MemberAnswer::Kind kinds[] = {MemberAnswer::Kind::granted, MemberAnswer::Kind::busy,
                                        MemberAnswer::Kind::failed};
    for (int mixture = 0; mixture < 27; ++mixture) {
        for (const std::size_t needed : {std::size_t{2}, std::size_t{3}}) {
            auto player = playerOf(3, needed, 0ms);
            auto action = player.resume(Start{at(0ms)});
            std::size_t grants = 0;
            std::size_t failures = 0;
            int rest = mixture;
            for (std::size_t member = 0; member < 3 && test::text(action) != "done"; ++member, rest /= 3) {
                const auto kind = kinds[rest % 3];
                grants += kind == MemberAnswer::Kind::granted ? 1 : 0;
                failures += kind == MemberAnswer::Kind::failed ? 1 : 0;
                action = player.resume(MemberAnswered{at(1ms), 1, member, {kind, at(1s), Errc::unreachable}});
            }
            const auto expected = grants >= needed        ? GroupResult::Kind::granted
                                  : failures > 3 - needed ? GroupResult::Kind::failed
                                                          : GroupResult::Kind::contended;
            EXPECT_EQ(resultOf<GroupResult>(action).kind, expected) << "mixture " << mixture << ", needed " << needed;
        }
    }
}

TEST(GroupMachine, WaitsForTheFirstMemberThatIsHeldAndThenTriesTheOthers)
{
    auto player = waiterFor(3, 3);
    const auto result =
        resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                            {granted(2ms, 0), "await, until 500 ms"},
                                            {busy(3ms, 2), "round 2: wait for 2, until 20000 ms"},
                                            {busy(4ms, 1), "await, until 20000 ms"}, // a late one of round 1
                                            {granted(9000ms, 2, 19s, 2), "all but 2, until 9500 ms"},
                                            {granted(9001ms, 0, 18s, 2), "await, until 9500 ms"},
                                            {granted(9002ms, 1, 19s, 2), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::granted);
    EXPECT_EQ(result.validUntil, at(18s));
    EXPECT_EQ(result.rounds, 2U);
}

TEST(GroupMachine, PausesBeforeTheNextWaitWhereTheOthersCouldNotBeHad)
{
    auto player = waiterFor(2, 2);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {busy(1ms, 0), "round 2: wait for 0, until 20000 ms"},
                  {granted(10ms, 0, 10s, 2), "all but 0, until 510 ms"},
                  {busy(11ms, 1, 2), "sleep until 75 ms"},
                  {TimerFired{at(75ms)}, "round 3: wait for 1, until 20000 ms"},
                  {granted(80ms, 1, 10s, 3), "all but 1, until 580 ms"},
                  {granted(81ms, 0, 10s, 3), "done"}});
    EXPECT_THAT(player.machine.open(), ElementsAre(0, 1));
}

TEST(GroupMachine, WaitsForTheOthersTooAfterFourRoundsInVain)
{
    auto player = waiterFor(2, 2);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {busy(1ms, 0), "round 2: wait for 0, until 20000 ms"},
                  {granted(10ms, 0, 10s, 2), "all but 0, until 510 ms"},
                  {busy(11ms, 1, 2), "sleep until 75 ms"},
                  {TimerFired{at(75ms)}, "round 3: wait for 1, until 20000 ms"},
                  {granted(80ms, 1, 10s, 3), "all but 1, until 580 ms"},
                  {busy(81ms, 0, 3), "sleep until 145 ms"},
                  {TimerFired{at(145ms)}, "round 4: wait for 0, until 20000 ms"},
                  {granted(146ms, 0, 10s, 4), "all but 0, until 646 ms"},
                  {busy(147ms, 1, 4), "sleep until 211 ms"},
                  {TimerFired{at(211ms)}, "round 5: wait for 1, until 20000 ms"},
                  {granted(212ms, 1, 10s, 5), "all but 1 for 2 ms, until 712 ms"},
                  {granted(213ms, 0, 10s, 5), "done"}});
}

TEST(GroupMachine, TriesAllAgainWhereTheMemberItWaitsForCannotBeReached)
{
    auto player = waiterFor(3, 2);
    const auto result =
        resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                                            {busy(1ms, 0), "await, until 500 ms"},
                                            {busy(1ms, 1), "round 2: wait for 0, until 20000 ms"},
                                            {failed(900ms, 0, Errc::unreachable, 2), "sleep until 964 ms"},
                                            {TimerFired{at(964ms)}, "round 3, until 1464 ms"},
                                            {granted(965ms, 1, 10s, 3), "await, until 1464 ms"},
                                            {granted(966ms, 2, 10s, 3), "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::granted);
}

TEST(GroupMachine, WaitForAMemberEndsWithTheWaitAndIsContended)
{
    auto player = waiterFor(2, 2, 300ms);
    const auto result = resultOf<GroupResult>(play(player, {{Start{at(0ms)}, "round 1, until 300 ms"},
                                                            {busy(1ms, 1), "round 2: wait for 1, until 300 ms"},
                                                            {TimerFired{at(300ms)}, "done"}}));
    EXPECT_EQ(result.kind, GroupResult::Kind::contended);
}

TEST(GroupMachine, OfOneNeededMemberIsHeldWhenThatIsGranted)
{
    auto player = waiterFor(1, 1);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {busy(1ms, 0), "round 2: wait for 0, until 20000 ms"},
                  {granted(5ms, 0, 10s, 2), "done"}});
}

TEST(GroupMachine, LongWaitForAHolderIsNoSilenceOfTheServers)
{
    auto player = waiterFor(2, 2, waitForever);
    play(player, {{Start{at(0ms)}, "round 1, until 500 ms"},
                  {busy(1ms, 0), "round 2: wait for 0, until never"},
                  {granted(60'000ms, 0, 70s, 2), "all but 0, until 60500 ms"},
                  {failed(60'001ms, 1, Errc::unreachable, 2), "sleep until 60065 ms"}});
}

} // namespace
} // namespace redislock::detail
