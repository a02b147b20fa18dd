// Queues of fair locks with waiters of Redisson's among ours.
#include "scripts/fair_script_test.hpp"

#include <functional>

namespace redislock::test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

TEST_F(FairScripts, PlaceIsAsFarAheadAsFivePollsTheClocksAndTheAllowancesOfRedissonsAhead)
{
    fair(hold17);
    fair(hold18);
    expectAhead(hold18, place + clocks);
    javaWaits(java(1));
    javaWaits(java(2), 60'000);
    fair(hold19);
    javaWaits(java(3));
    fair(hold19);
    expectAhead(hold19, place + clocks + usual + 60'000);
    EXPECT_THAT(fair(hold19), Refusal(JustSet(30'000), hold17));
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_THAT(fair(hold19), Refusal(250, "")) << "it is another's turn";
    EXPECT_THAT(fair(hold18), Nil());
    EXPECT_THAT(end(hold18), Number(1));
    javaIsLetIn(java(1));
    fair(hold19);
    expectAhead(hold19, place + clocks + 60'000);
    javaIsLetIn(java(2), 60'000);
    EXPECT_THAT(fair(hold19), Nil());
    EXPECT_THAT(waiting(), ::testing::ElementsAre(java(3)));
}

TEST_F(FairScripts, PlacesDoNotDriftInAQueueThatIsNeverEmpty)
{
    fair(client + ":0");
    for (int i = 0; i < 100; ++i) { // two of each wait; one of ours and one of Redisson's are let in by turns
        javaWaits(java(i));
        fair(client + ":" + std::to_string(i + 1));
        if (i >= 2) {
            const auto first = client + ":" + std::to_string(i - 1);
            javaIsLetIn(java(i - 2));
            redis.command({"DEL", name});
            EXPECT_THAT(fair(first), Nil()) << i;
            end(first);
        } else if (i == 0) {
            end(client + ":0");
        }
        for (const auto& each : waiting()) {
            EXPECT_LE(score(each) - now(), place + clocks + 3 * usual) << i;
        }
    }
    EXPECT_EQ(waiting().size(), 4U);
    EXPECT_LE(redis.hash(places).size(), 6U) << "nothing is left of those who are gone, but of the last";
}

TEST_F(FairScripts, PlacesDoNotDriftThoughTheFirstOfRedissonsCameBehindOursEachTime)
{
    fair(hold17);
    javaWaits(java(0));
    for (int i = 0; i < 40; i += 2) {
        fair(hold18);
        expectAhead(hold18, place + clocks + usual);
        javaWaits(java(i + 1));
        javaIsLetIn(java(i));
        EXPECT_THAT(fair(hold18), Nil()) << i;
        end(hold18);
        javaWaits(java(i + 2)); // its time has what ours counted; no script of ours runs before it is the first
        javaIsLetIn(java(i + 1));
    }
}

TEST_F(FairScripts, LiveWaiterBehindRedissonsIsNotPrunedByItHoweverLongTheLockIsHeld)
{
    for (const std::int64_t skew : {std::int64_t{0}, clocks - 3000, -clocks}) {
        for (const std::int64_t allowance : {usual, std::int64_t{100'000}, std::int64_t{1'000'000}}) {
            SetUp();
            fair(hold17);
            javaWaits(java(1), 3 * usual, skew); // long enough for the rest of the test
            javaWaits(java(2), allowance, skew);
            fair(hold18);
            for (int i = 0; i < 10; ++i) { // 45 s
                setClock(4500);
                redis.command({"PEXPIRE", name, "30000"});
                fair(hold18);
            }
            javaIsLetIn(java(1), 3 * usual, skew);
            ASSERT_THAT(waiting(), ::testing::ElementsAre(java(2), hold18)) << skew << ' ' << allowance;
            javaIsLetIn(java(2), allowance, skew);
            ASSERT_THAT(waiting(), ::testing::ElementsAre(hold18)) << skew << ' ' << allowance;
            EXPECT_THAT(fair(hold18), Nil());
        }
    }
}

TEST_F(FairScripts, FirstOfRedissonsCountsForAsFarAsItsTimeIsAheadOfTheEndOfTheHold)
{
    fair(hold17);
    javaWaits(java(1), 3000);
    fair(hold18);
    expectAhead(hold18, place + clocks + 3000);
    javaIsLetIn(java(1), 3000);
    redissons.prune(now() + place + clocks);
    EXPECT_THAT(waiting(), IsEmpty()) << "and costs Redisson no more if it died";
}

TEST_F(FairScripts, WaitersThatRedissonTookOutTooEarlyAreBeforeAllThatCameLater)
{
    fair(hold17);
    javaWaits(java(1));
    setClock(200'000); // it is not known for how long the first waiter has been there
    redis.command({"PEXPIRE", name, "30000"});
    fair(hold18);
    setClock(1);
    fair(hold19);
    javaWaits(java(2));
    javaIsLetIn(java(1));
    EXPECT_THAT(waiting(), ::testing::ElementsAre(java(2))) << "it took off more than we knew";
    EXPECT_FALSE(fair(hold20).isNil());
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18, hold19, java(2), hold20));
    EXPECT_FALSE(fair(hold19).isNil());
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18, hold19, java(2), hold20)) << "sent again";
    EXPECT_THAT(fair(hold18), Nil());
}

TEST_F(FairScripts, WaitersThatRedissonTookOutTooEarlyAreThereAgainThoughNobodyElseIs)
{
    fair(hold17);
    javaWaits(java(1));
    fair(hold18);
    setClock(1);
    fair(hold19);
    redissons.giveUp(java(1), usual);
    redissons.prune(now() + place + clocks + 1000); // a clock that is further ahead than clocks may be
    EXPECT_THAT(waiting(), IsEmpty());
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18, hold19));
    EXPECT_THAT(fair(hold18), Nil());
}

TEST_F(FairScripts, WaiterWhoseTimeRedissonMadeTooShortHasItsPlaceWhenNoneOfRedissonsWaitsAnyMore)
{
    fair(hold17);
    javaWaits(java(1));
    setClock(20'000); // it has been there for longer than is known
    redis.command({"PEXPIRE", name, "30000"});
    fair(hold18);
    javaIsLetIn(java(1));
    lock(java(1), 30'000);
    fair(hold19);
    redissons.prune(now() + clocks - 2000);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18, hold19));
}

TEST_F(FairScripts, WaiterThatRedissonTookOutWhenItsPlaceWasOverIsLast)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    setClock(place + clocks + 1);
    redissons.prune(now());
    fair(hold18);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(java(1), hold18));
}

TEST_F(FairScripts, DeadOfRedissonsCostsItsAllowanceAndTwoSecondsFromWhenItIsFirstAndTheLockIsFree)
{
    fair(hold17);
    javaWaits(java(1), 60'000);
    fair(hold18);
    javaWaits(java(2), 8000);
    fair(hold19);
    EXPECT_THAT(redis.hash(places)[java(2)], ::testing::EndsWith(" 8000"));
    redissons.giveUp(java(1), 60'000);
    fair(hold18);
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_THAT(fair(hold18), Nil());
    setClock(4000);
    redis.command({"PEXPIRE", name, "30000"});
    fair(hold19);
    EXPECT_EQ(waiting().front(), java(2)) << "while another has the lock, it need not come";
    EXPECT_THAT(end(hold18), Number(1));
    EXPECT_TRUE(keepsItsTurn(java(2), 9000));
    EXPECT_FALSE(keepsItsTurn(java(2), 1100));
}

TEST_F(FairScripts, TurnOfRedissonsBeginsAnewWhenAnotherHadTheLockOrItCameAgain)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1), 8000);
    end(hold18);
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_TRUE(keepsItsTurn(java(1), 9000));
    lock(client + ":1", 30'000);
    EXPECT_TRUE(keepsItsTurn(java(1), 1));
    redis.command({"DEL", name});
    EXPECT_TRUE(keepsItsTurn(java(1), 9000));
    EXPECT_TRUE(keepsItsTurn(java(1), 9000)) << "the first look after the end of that hold began it";
    redissons.giveUp(java(1), 8000);
    lock(javaThread, 30'000);
    javaWaits(java(1), 8000);
    redis.command({"DEL", name});
    EXPECT_TRUE(keepsItsTurn(java(1), 0));
    EXPECT_TRUE(keepsItsTurn(java(1), 9000));
}

TEST_F(FairScripts, TurnOfRedissonsIsLongerWhereItsAllowanceIsConcluded)
{
    fair(hold17);
    javaWaits(java(1), 8000);
    fair(hold18);
    EXPECT_THAT(redis.hash(places)[java(1)], ::testing::EndsWith(" about"));
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_TRUE(keepsItsTurn(java(1), 8000 + clocks));
    EXPECT_FALSE(keepsItsTurn(java(1), 2001));
}

TEST_F(FairScripts, TurnOfRedissonsThatIsAwakeDoesNotDependOnItsClock)
{
    for (const std::int64_t skew : {clocks - 1000, 1000 - clocks}) {
        SetUp();
        fair(hold17);
        fair(hold18);
        javaWaits(java(1), 8000, skew);
        fair(hold18);
        end(hold18);
        setClock(8000); // it is about to give up
        EXPECT_THAT(end(hold17), Number(1));
        EXPECT_TRUE(keepsItsTurn(java(1), 1900)) << skew;
    }
}

TEST_F(FairScripts, DeadOfRedissonsWhoseTimeIsOverCostTwoSecondsTogether)
{
    fair(hold17);
    for (int i = 0; i < 10; ++i) {
        javaWaits(java(i), 8000);
    }
    fair(hold18);
    setClock(30'000 + 10 * 8000);
    redis.command({"PEXPIRE", name, "30000"});
    fair(hold18);
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_TRUE(keepsItsTurn(java(0), 1900));
    fair(hold18);
    setClock(101);
    EXPECT_THAT(fair(hold18), Nil());
    EXPECT_THAT(waiting(), IsEmpty());
}

TEST_F(FairScripts, WaiterOfRedissonsThatCameAgainHasItsNewAllowance)
{
    fair(hold17);
    javaWaits(java(1), 10'000);
    fair(hold18);
    javaIsLetIn(java(1), 10'000);
    lock(java(2), 30'000);
    fair(hold18);
    javaWaits(java(1), 70'000);
    fair(hold19);
    expectAhead(hold19, place + clocks + 70'000);
}

TEST_F(FairScripts, WaitersOfRedissonsCountForWhatTheyWereGivenThoughTheLastLeftItsRecordHereBefore)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1), 200'000);
    javaWaits(java(2), 10'000);
    fair(hold18);
    redissons.giveUp(java(1), 200'000);
    javaWaits(java(3), 20'000);
    javaWaits(java(1), 40'000);
    fair(hold19);
    expectAhead(hold19, place + clocks + 10'000 + 20'000 + 40'000);
}

TEST_F(FairScripts, WaiterOfRedissonsWithALowerTimeThanTheOneBeforeItCountsForNothing)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    fair(hold19);
    oneDiedBefore(java(1));
    javaWaits(java(2), 500);
    end(hold19);
    redis.command({"HDEL", places, java(2)});
    fair(hold20);
    expectAhead(hold20, place + clocks + usual);
    EXPECT_THAT(redis.hash(places)[java(2)], ::testing::EndsWith(" 0 about"));
}

TEST_F(FairScripts, WaiterOfRedissonsIsCountedExactlyBehindOneThatIsTheLastAgainSinceOursLeft)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    fair(hold19);
    oneDiedBefore(java(1));
    end(hold19);
    javaWaits(java(2), 5000);
    fair(hold20);
    expectAhead(hold20, place + clocks + usual + 5000);
}

TEST_F(FairScripts, WaiterOfRedissonsThatCameAgainForLongerIsNotCountedAsBefore)
{
    fair(hold17);
    javaWaits(java(1));
    fair(hold18);
    javaWaits(java(2), 500);
    fair(hold18);
    javaIsLetIn(java(1));
    redissons.giveUp(java(2), 500);
    lock(client + ":1", 30'000);
    javaWaits(java(2)); // with a lower time than before, since the waiters ahead are gone
    fair(hold19);
    redis.command({"DEL", name});
    EXPECT_THAT(fair(hold18), Nil());
    end(hold18);
    javaIsLetIn(java(2));
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold19));
}

TEST_F(FairScripts, FirstOfRedissonsCountsAsBeforeThoughOursLeftAndCameAgain)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1), 60'000);
    fair(hold18);
    EXPECT_THAT(end(hold18), Nil());
    setClock(1500);
    fair(hold18);
    expectAhead(hold18, place + clocks + 60'000);
}

TEST_F(FairScripts, FirstOfRedissonsDoesNotCountForWhatOursBeforeItLeftInItsTime)
{
    fair(hold17);
    javaWaits(java(1), 2000);
    fair(hold18);
    javaWaits(java(2));
    end(hold18);
    javaWaits(java(3), 250'000);
    redissons.giveUp(java(1), 2000);
    redissons.giveUp(java(2), usual);
    fair(hold19);
    expectAhead(hold19, place + clocks + 250'000 + place + 1000); // the time has a part of ours, which is gone
}

TEST_F(FairScripts, PlacesAreKeptWhereRedissonsClockIsThirtySecondsAheadAndItReleases)
{
    fair(hold17);
    fair(hold18);
    fair(hold19);
    setClock(place - 1000); // a poll is due
    redissons.prune(now() + clocks - 2000);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18, hold19));
}

TEST_F(FairScripts, RefusalSaysWhetherSomebodyInTheWayTellsTheHolderAlone)
{
    const auto tells = [&](const std::string& asks) { return fair(asks).elements.at(2).integer(); };
    const std::string ofOurs = "6f1c0f9e-8f1f-8f7e-9d5d-2f1f3b8a7c11:17"; // the id of a client: version 8
    fair(ofOurs);
    EXPECT_EQ(tells(hold18), 0);
    javaWaits(java(1));
    EXPECT_EQ(tells(hold18), 1) << "one of Redisson's is queued";
    redissons.giveUp(java(1), usual);
    EXPECT_EQ(tells(hold18), 0);
    redis.command({"DEL", name});
    redis.command({"HSET", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "30000"});
    EXPECT_EQ(tells(hold18), 1) << "one of Redisson's has the lock";
}

TEST_F(FairScripts, DeadOfOursCostFivePollsTogetherWhoeverElseWaits)
{
    for (const bool isMixed : {false, true}) {
        SetUp();
        fair(hold17);
        fair(client + ":100");
        if (isMixed) {
            javaWaits(java(1));
        }
        fair(client + ":101");
        end(hold17);
        EXPECT_FALSE(fair(hold18, 0).isNil());
        setClock(place + 1);
        if (isMixed) {
            EXPECT_FALSE(fair(hold18, 0).isNil()) << "it is the turn of Redisson's";
            javaIsLetIn(java(1));
        }
        EXPECT_THAT(fair(hold18), Nil()) << isMixed;
        EXPECT_THAT(redis.hash(places), ::testing::Not(::testing::Contains(::testing::Key(client + ":101"))));
    }
}

TEST_F(FairScripts, DeadOfOursCostRedissonFivePollsAndThirtySeconds)
{
    fair(hold17);
    javaWaits(java(1));
    fair(hold18);
    javaWaits(java(2));
    javaIsLetIn(java(1));
    redissons.prune(now() + place + clocks);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(java(2)));
}

TEST_F(FairScripts, KeysOfRedissonHaveNoTimeToLiveWhileOneOfItsWaitersIsQueued)
{
    fair(hold17);
    fair(hold18);
    fair(hold19);
    const auto left = [&](const std::string& key) { return redis.pttl(key).count(); };
    for (const auto& key : {queue, times, places}) {
        EXPECT_THAT(left(key), JustSet(place + clocks + 600'000)) << key;
    }
    javaWaits(java(1));
    fair(hold18);
    for (const auto& key : {queue, times}) {
        EXPECT_EQ(left(key), -1) << key;
    }
    EXPECT_THAT(left(places), JustSet(place + clocks + 600'000));
    redissons.giveUp(java(1), usual);
    fair(hold19);
    for (const auto& key : {queue, times}) {
        EXPECT_THAT(left(key), JustSet(place + clocks + 600'000)) << key;
    }
    EXPECT_EQ(redis.hash(places).size(), 2U) << "it is forgotten";
}

TEST_F(FairScripts, LastOfOursLeavesRedissonsQueueWithoutATimeToLiveHoweverItLeaves)
{
    const std::function<void()> ways[] = {
        [&] { end(hold18); },
        [&] { end(hold17); },
        [&] {
            run(detail::scripts::fairLockForceUnlock, keys, {hold17, channels});
        },
        [&] {
            redis.command({"DEL", name});
            EXPECT_THAT(fair(hold18), Nil());
        },
    };
    for (const auto& leaves : ways) {
        SetUp();
        fair(hold17);
        fair(hold18);
        javaWaits(java(1));
        EXPECT_GT(redis.pttl(queue).count(), 0);
        leaves();
        EXPECT_EQ(redis.pttl(queue).count(), -1);
        EXPECT_EQ(redis.pttl(times).count(), -1);
    }
}

TEST_F(FairScripts, QueueThatBeginsWithOursHasTimesToLiveWhoeverStoodInTheOneBefore)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    fair(hold18);
    end(hold17);
    EXPECT_THAT(fair(hold18), Nil());
    javaIsLetIn(java(1));
    EXPECT_THAT(fair(hold17), Nil());
    fair(hold19);
    end(hold17);
    EXPECT_THAT(redis.pttl(queue).count(), JustSet(place + clocks + 600'000));
    EXPECT_THAT(redis.pttl(times).count(), JustSet(place + clocks + 600'000));
}

TEST_F(FairScripts, NothingIsLeftOfAQueueOfOurs)
{
    fair(hold17);
    fair(hold18);
    fair(hold19);
    end(hold19);
    end(hold17);
    EXPECT_THAT(fair(hold18), Nil());
    end(hold18);
    EXPECT_THAT(redis.command({"KEYS", "*"}).elements, IsEmpty());
}

TEST_F(FairScripts, ClockThatIsSetBackKeepsNobodyOutForLongerThanFivePolls)
{
    fair(hold17);
    fair(hold18);
    listening(hold19);
    end(hold17);
    setClock(-30'000);
    EXPECT_FALSE(fair(client + ":20", 0).isNil());
    for (const auto& dead : {hold18, hold19}) {
        expectAhead(dead, place + clocks);
    }
    EXPECT_THAT(redis.hash(places)[hold19], ::testing::EndsWith(" 30000 1")) << "with what else is known of it";
    setClock(place + 1);
    EXPECT_THAT(fair(client + ":20", 0), Nil()) << "all together";
}

TEST_F(FairScripts, LockIsFreedThoughMemoryIsOutAndRedissonsWait)
{
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    runOutOfMemory();
    EXPECT_THAT(end(hold18), Nil());
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_THAT(waiting(), ::testing::ElementsAre(java(1)));
}

TEST_F(FairScripts, LongQueueOfRedissonsIsCountedInPart)
{
    fair(hold17);
    for (int i = 0; i < 700; ++i) {
        redis.command({"ZADD", times, std::to_string(now() + 60'000 + i * 1000), java(i)});
        redis.command({"RPUSH", queue, java(i)});
    }
    fair(hold18);
    EXPECT_THAT(score(hold18) - now(), AllOf(Ge(300'000), Le(500 * usual + place + clocks)));
    EXPECT_EQ(redis.pttl(queue).count(), -1);
}

} // namespace
} // namespace redislock::test
