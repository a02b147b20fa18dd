#include "core/machine/query_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

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
using Result = std::optional<Reason>;

Player<QueryMachine> playerOf(milliseconds patience)
{
    return {.machine = QueryMachine(patience)};
}

Replied<Answered> replied(milliseconds now)
{
    return {at(now), at(now - 1ms), {}};
}

TEST(QueryMachine, AnAnswerEndsIt)
{
    auto player = playerOf(10s);
    EXPECT_EQ(player.machine.state(), QueryMachine::State::idle);
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 10000 ms");
    EXPECT_EQ(player.machine.state(), QueryMachine::State::asking);
    EXPECT_EQ(resultOf<Result>(player.resume(replied(1ms))), std::nullopt);
    EXPECT_EQ(player.machine.state(), QueryMachine::State::done);
    EXPECT_FALSE(player.machine.repeated());
}

TEST(QueryMachine, EndsAtItsLimitThoughItsPatienceIsLonger)
{
    Player<QueryMachine> player{.machine = QueryMachine(60s, at(5s))};
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 5000 ms");
    EXPECT_EQ(resultOf<Result>(player.resume(failed(5s, Failure::lostReply))), Errc::unreachable);
}

TEST(QueryMachine, AsksNothingWhenItBeginsAfterItsLimit)
{
    Player<QueryMachine> player{.machine = QueryMachine(60s, at(5s))};
    EXPECT_EQ(resultOf<Result>(player.resume(Start{at(5s)})), Errc::unreachable);
    EXPECT_EQ(player.machine.state(), QueryMachine::State::done);
}

TEST(QueryMachine, TimeInWhichTheProcessStoodStillIsNoSilenceOfTheServer)
{
    Player<QueryMachine> player{.machine = QueryMachine(10s, at(50s))};
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(Failed{at(40s), {Failure::lostReply, Errc::unreachable}, 35s})),
              "send, until 45000 ms");
    EXPECT_EQ(resultOf<Result>(player.resume(Failed{at(60s), {Failure::lostReply, Errc::unreachable}, 15s})),
              Errc::unreachable)
        << "its limit is fixed";
}

TEST(QueryMachine, AFatalAnswerEndsItForACallerOnly)
{
    auto caller = playerOf(10s);
    caller.resume(Start{at(0ms)});
    EXPECT_EQ(resultOf<Result>(caller.resume(failed(1ms, Failure::fatal, Errc::authFailed))), Errc::authFailed);
    Player<QueryMachine> nobody{.machine = QueryMachine(10s, TimePoint::max(), Asker::background)};
    nobody.resume(Start{at(0ms)});
    EXPECT_TRUE(sleepsBetween(nobody.resume(failed(1ms, Failure::fatal, Errc::authFailed)), at(41ms), at(61ms)));
    EXPECT_EQ(text(nobody.resume(TimerFired{at(61ms)})), "send, until 10000 ms");
    for (const Errc last : {Errc::shutdown, Errc::wrongType}) {
        auto ended = nobody;
        EXPECT_EQ(resultOf<Result>(ended.resume(failed(62ms, Failure::fatal, last))), last);
    }
    EXPECT_EQ(resultOf<Result>(nobody.resume(failed(10s, Failure::fatal, Errc::authFailed))), Errc::authFailed);
}

TEST(QueryMachine, KnowsWhetherAnEarlierTryMayHaveBeenExecuted)
{
    for (const Failure failure : {Failure::notConnected, Failure::lostReply}) {
        auto player = playerOf(10s);
        player.resume(Start{at(0ms)});
        EXPECT_EQ(text(player.resume(failed(1ms, failure))), "send, until 10000 ms");
        EXPECT_EQ(player.machine.repeated(), failure == Failure::lostReply);
        EXPECT_EQ(resultOf<Result>(player.resume(replied(2ms))), std::nullopt);
        EXPECT_EQ(player.machine.repeated(), failure == Failure::lostReply);
    }
}

TEST(QueryMachine, ARefusalIsToldThoughTheTryBehindItHasNoTimeToBeAnswered)
{
    for (const bool isSilentBefore : {false, true}) {
        auto player = playerOf(200ms);
        player.resume(Start{at(0ms)});
        player.resume(failed(10ms, Failure::refused, Errc::serverRefused));
        player.resume(TimerFired{at(70ms)});
        if (isSilentBefore) {
            player.resume(failed(150ms, Failure::lostReply));
        }
        EXPECT_EQ(resultOf<Result>(player.resume(failed(200ms, Failure::lostReply))),
                  isSilentBefore ? Errc::unreachable : Errc::serverRefused);
    }
}

TEST(QueryMachine, ARefusedTryMayHaveBeenExecutedOnlyIfTheErrorIsNotKnown)
{
    for (const Reason error : {Reason(Errc::serverRefused), Reason(Cause::outOfMemory)}) {
        auto player = playerOf(10s);
        player.resume(Start{at(0ms)});
        player.resume(Failed{at(1ms), {Failure::refused, error}});
        EXPECT_EQ(player.machine.repeated(), error == Reason(Errc::serverRefused));
    }
}

TEST(QueryMachine, ARefusalIsTriedAgainAfterPausesThatEndWithThePatience)
{
    auto player = playerOf(200ms);
    player.resume(Start{at(0ms)});
    EXPECT_TRUE(sleepsBetween(player.resume(failed(10ms, Failure::refused)), at(50ms), at(70ms)));
    EXPECT_EQ(player.machine.state(), QueryMachine::State::backingOff);
    EXPECT_EQ(text(player.resume(TimerFired{at(70ms)})), "send, until 200 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(71ms, Failure::refused)), at(151ms), at(191ms)));
    player.resume(TimerFired{at(191ms)});
    EXPECT_EQ(text(player.resume(failed(192ms, Failure::refused, Errc::serverRefused))), "sleep until 200 ms");
    EXPECT_EQ(resultOf<Result>(player.resume(TimerFired{at(200ms)})), Errc::serverRefused) << "not: unreachable";
}

TEST(QueryMachine, EndsWhenItsPatienceIsOver)
{
    auto player = playerOf(10s);
    const test::Script<QueryMachine> story{
        {Start{at(0ms)}, "send, until 10000 ms"},
        {failed(9999ms, Failure::lostReply), "send, until 10000 ms"},
        {failed(10000ms, Failure::notConnected), "done"},
    };
    EXPECT_EQ(resultOf<Result>(play(player, story)), Errc::unreachable);
}

TEST(QueryMachine, ZeroPatienceAsksOnceAndTheLongestNeverEnds)
{
    auto once = playerOf(0ms);
    EXPECT_EQ(text(once.resume(Start{at(0ms)})), "send, until 0 ms");
    EXPECT_EQ(resultOf<Result>(once.resume(failed(0ms, Failure::notConnected))), Errc::unreachable);
    EXPECT_EQ(text(playerOf(milliseconds::max()).resume(Start{at(0ms)})), "send, until never");
}

test::Script<QueryMachine> troubledQuery()
{
    return {
        {Start{at(0ms)}, "send, until 10000 ms"},
        {failed(10ms, Failure::lostReply), "send, until 10000 ms"},
        {failed(20ms, Failure::notConnected), "send, until 10000 ms"},
        {replied(30ms), "done"},
    };
}

TEST(QueryMachine, ADemotedServerIsLeftAtOnceAndASecondTimeARefusal)
{
    auto player = playerOf(10s);
    player.resume(Start{at(0ms)});
    EXPECT_EQ(text(player.resume(failed(1ms, Failure::demoted, Errc::serverRefused))), "send, until 10000 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(2ms, Failure::demoted, Errc::serverRefused)), at(42ms), at(62ms)));
    EXPECT_EQ(text(player.resume(TimerFired{at(62ms)})), "send, until 10000 ms");
    EXPECT_EQ(resultOf<Result>(player.resume(failed(10s, Failure::notConnected))), Errc::serverRefused);
}

TEST(QueryMachine, FatalErrorsAndCancellationEndItAtEveryStep)
{
    test::forEachStepFail(playerOf(10s), troubledQuery(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint) {
                              if (isEnd(trouble)) {
                                  EXPECT_EQ(resultOf<Result>(action), errorOf(trouble));
                                  EXPECT_EQ(player.machine.state(), QueryMachine::State::done);
                              }
                          });
}

TEST(QueryMachine, TroubleThatStaysEndsWithThePatienceAndItsOwnError)
{
    test::forEachStepFail(playerOf(10s), troubledQuery(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint now) {
                              FakeClock clock(now);
                              const auto error = resultOf<Result>(persist(player, action, trouble, clock));
                              EXPECT_EQ(error, errorOf(trouble));
                              EXPECT_LE(clock.now(), at(10010ms));
                          });
}

TEST(QueryMachine, EveryStepThatFailsOnceIsOvercome)
{
    test::forEachStepFail(playerOf(10s), troubledQuery(),
                          [](Trouble trouble, bool, auto& player, auto action, TimePoint) {
                              if (isEnd(trouble) || trouble == Trouble::timedOut) {
                                  return;
                              }
                              if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
                                  action = player.resume(TimerFired{sleep->until});
                              }
                              EXPECT_EQ(text(action), "send, until 10000 ms");
                              EXPECT_EQ(resultOf<Result>(player.resume(replied(100ms))), std::nullopt);
                          });
}

} // namespace
} // namespace redislock::detail
