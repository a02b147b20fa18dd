#include "redislock/detail/logic/query_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

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
using Result = std::optional<Errc>;
using State = QueryMachine::State;
using Story = test::Script<QueryMachine>;

Player<QueryMachine> playerOf(milliseconds patience)
{
    return {.machine = QueryMachine(patience)};
}

Replied<Answered> replied(milliseconds now)
{
    return {at(now), at(now - 1ms), {}};
}

Failed failed(milliseconds now, Failure failure, Errc error = Errc::unreachable)
{
    return {at(now), {failure, error}};
}

TEST(QueryMachine, AnAnswerEndsIt)
{
    auto player = playerOf(10s);
    EXPECT_EQ(player.machine.state(), State::idle);
    EXPECT_EQ(text(player.resume(Start{at(0ms)})), "send, until 10000 ms");
    EXPECT_EQ(player.machine.state(), State::asking);
    EXPECT_EQ(resultOf<Result>(player.resume(replied(1ms))), std::nullopt);
    EXPECT_EQ(player.machine.state(), State::done);
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
    EXPECT_EQ(player.machine.state(), State::done);
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

TEST(QueryMachine, ARefusalIsTriedAgainAfterPausesThatEndWithThePatience)
{
    auto player = playerOf(200ms);
    player.resume(Start{at(0ms)});
    EXPECT_TRUE(sleepsBetween(player.resume(failed(10ms, Failure::refused)), at(50ms), at(70ms)));
    EXPECT_EQ(player.machine.state(), State::backingOff);
    EXPECT_EQ(text(player.resume(TimerFired{at(70ms)})), "send, until 200 ms");
    EXPECT_TRUE(sleepsBetween(player.resume(failed(71ms, Failure::refused)), at(151ms), at(191ms)));
    player.resume(TimerFired{at(191ms)});
    EXPECT_EQ(text(player.resume(failed(192ms, Failure::refused, Errc::serverRefused))), "sleep until 200 ms");
    EXPECT_EQ(resultOf<Result>(player.resume(TimerFired{at(200ms)})), Errc::serverRefused) << "not: unreachable";
}

TEST(QueryMachine, EndsWhenItsPatienceIsOver)
{
    auto player = playerOf(10s);
    const Story story{
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

Story troubledStory()
{
    return {
        {Start{at(0ms)}, "send, until 10000 ms"},
        {failed(10ms, Failure::lostReply), "send, until 10000 ms"},
        {failed(20ms, Failure::notConnected), "send, until 10000 ms"},
        {replied(30ms), "done"},
    };
}

TEST(QueryMachine, FatalErrorsAndCancellationEndItAtEveryStep)
{
    test::forEachStepFail(playerOf(10s), troubledStory(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint) {
                              if (isEnd(trouble)) {
                                  EXPECT_EQ(resultOf<Result>(action), errorOf(trouble));
                                  EXPECT_EQ(player.machine.state(), State::done);
                              }
                          });
}

TEST(QueryMachine, TroubleThatStaysEndsWithThePatienceAndItsOwnError)
{
    test::forEachStepFail(playerOf(10s), troubledStory(),
                          [](Trouble trouble, bool, auto& player, const auto& action, TimePoint now) {
                              FakeClock clock(now);
                              const auto error = resultOf<Result>(persist(player, action, trouble, clock));
                              EXPECT_EQ(error, errorOf(trouble));
                              EXPECT_LE(clock.now(), at(10010ms));
                          });
}

TEST(QueryMachine, EveryStepThatFailsOnceIsOvercome)
{
    test::forEachStepFail(playerOf(10s), troubledStory(),
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
