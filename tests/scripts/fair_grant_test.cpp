// Releases that grant a fair lock to the next waiter.
#include "scripts/fair_script_test.hpp"

#include <functional>

namespace redislock::test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

TEST_F(FairScripts, EndGrantsTheLockToTheFirstWhoseClientListensForAsLongAsItWouldHaveHadThePlace)
{
    auto heard = listener();
    fair(hold17);
    listening(hold18, 7);
    fair(hold19);
    setClock(1000);
    EXPECT_THAT(end(hold17), Number(2)) << "one was told";
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), AllOf(Le(place - 1000), Ge(place - 3000)));
    expectGrant(messages(heard), "18 7 ", place - 3000, place - 1000);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold19));
    EXPECT_THAT(redis.hash(places), ::testing::Not(::testing::Contains(::testing::Key(hold18))));
    EXPECT_EQ(score(hold18), 0);
    EXPECT_THAT(listening(hold18, 8), Nil()) << "who asks finds itself the holder";
    EXPECT_THAT(timeToLive(), JustSet(30'000));
}

TEST_F(FairScripts, GrantLastsNoLongerThanTheLeaseThatTheWaiterWants)
{
    auto heard = listener();
    fair(hold17);
    listening(hold18, 1, 3000);
    end(hold17);
    EXPECT_THAT(timeToLive(), AllOf(Le(3000), Ge(1000)));
    expectGrant(messages(heard), "18 1 ", 3000, 3000);
}

TEST_F(FairScripts, WaiterIsToldToAskWhereFewerThanTwoPollsAreLeftOfItsPlaceOrOfItsLease)
{
    const std::function<void()> ways[] = {
        [&] {
            listening(hold18);
            setClock(place * 3 / 5 + 1);
        },
        [&] { listening(hold18, 1, place * 2 / 5 - 1); },
    };
    for (const auto& waits : ways) {
        SetUp();
        auto heard = listener();
        fair(hold17);
        waits();
        redis.command({"PEXPIRE", name, "30000"});
        EXPECT_THAT(end(hold17), Number(2));
        EXPECT_TRUE(hash().empty());
        expectGrant(messages(heard), "18 1 ", 0, 0);
        EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18)) << "it still has its place";
        EXPECT_THAT(listening(hold18), Nil());
    }
}

TEST_F(FairScripts, WaiterWhoseClientDoesNotListenAndOneOfRedissonsAreToldAsEver)
{
    auto heard = listener();
    fair(hold17);
    fair(hold18);
    javaWaits(java(1));
    EXPECT_THAT(end(hold17), Number(2));
    EXPECT_TRUE(hash().empty());
    EXPECT_EQ(messages(heard), Words{channels + hold18 + " 0"});
    EXPECT_THAT(end(hold18), Nil());
    EXPECT_TRUE(hash().empty()) << "it is the turn of Redisson's";
    EXPECT_THAT(messages(heard), IsEmpty());
    javaIsLetIn(java(1));
}

TEST_F(FairScripts, LockIsGrantedWhoeverFreesItOrFindsItFree)
{
    const std::function<void()> ways[] = {
        [&] { end(hold19); }, // it has a place, and gives it up
        [&] { EXPECT_THAT(fair(client + ":20", 0), Refusal(JustSet(place), hold18)); },
        [&] {
            redis.command({"HSET", name, javaThread, "1"});
            run(detail::scripts::fairLockForceUnlock, keys, {javaThread, channels});
        },
    };
    for (const auto& passes : ways) {
        SetUp();
        auto heard = listener();
        fair(hold17);
        listening(hold18);
        fair(hold19);
        redis.command({"DEL", name});
        passes();
        EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
        EXPECT_THAT(timeToLive(), JustSet(place));
        expectGrant(messages(heard), "18 1 ", place - 3000, place);
    }
}

TEST_F(FairScripts, WaiterThatComesToAFreeLockAndPassesItOnIsTheNext)
{
    fair(hold17);
    listening(hold18);
    redis.command({"DEL", name});
    EXPECT_THAT(listening(hold19), Refusal(JustSet(place), hold18));
    EXPECT_EQ(waiting(), Words{hold19});
    EXPECT_THAT(end(hold18), Number(1));
    EXPECT_EQ(hash(), (Hash{{hold19, "1"}}));
}

TEST_F(FairScripts, WaiterThatIsGrantedTheLockAndGivesUpGivesItToTheNext)
{
    fair(hold17);
    listening(hold18);
    listening(hold19);
    end(hold17);
    EXPECT_THAT(end(hold18), Number(1)) << "its place was the lock by then";
    EXPECT_EQ(hash(), (Hash{{hold19, "1"}}));
    EXPECT_THAT(end(hold18), Nil()) << "a second time";
    EXPECT_EQ(hash(), (Hash{{hold19, "1"}}));
    EXPECT_THAT(end(hold19), Number(1));
    EXPECT_THAT(redis.command({"KEYS", "*"}).elements, IsEmpty());
}

TEST_F(FairScripts, DeadAreGrantedTheLockForNoLongerThanTheirPlacesAllTogether)
{
    fair(hold17);
    for (int i = 100; i < 110; ++i) {
        listening(client + ":" + std::to_string(i));
    }
    end(hold17);
    EXPECT_THAT(timeToLive(), JustSet(place));
    redis.command({"DEL", name}); // the lease is over
    setClock(place);
    EXPECT_THAT(fair(hold18), Nil());
}

TEST_F(FairScripts, LockIsGrantedThoughTheMessageIsRefused)
{
    fair(hold17);
    listening(hold18);
    auto mute = userWithoutChannels();
    EXPECT_THAT(run(mute, detail::scripts::fairLockUnlock, keys, {hold17, "0", "1", channels}), Number(1));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(listening(hold18, 2), Nil()) << "it finds out by polling";
}

TEST_F(FairScripts, WaiterIsToldToAskWhereTheGrantIsRefused)
{
    auto heard = listener();
    fair(hold17);
    listening(hold18);
    redis.command({"ACL", "SETUSER", "lame", "reset", "on", ">pw", "~*", "&*", "+@all", "-hset"});
    RawRedis lame(server());
    lame.command({"AUTH", "lame", "pw"});
    EXPECT_THAT(run(lame, detail::scripts::fairLockUnlock, keys, {hold17, "0", "1", channels}), Number(2));
    EXPECT_TRUE(hash().empty());
    expectGrant(messages(heard), "18 1 ", 0, 0);
    EXPECT_THAT(waiting(), ::testing::ElementsAre(hold18));
}

TEST_F(FairScripts, LockIsGrantedThoughMemoryIsOut)
{
    fair(hold17);
    listening(hold18);
    runOutOfMemory();
    EXPECT_THAT(end(hold17), Number(1));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}})) << "it takes no more than what was freed";
    EXPECT_THAT(timeToLive(), JustSet(place));
}

} // namespace
} // namespace redislock::test
