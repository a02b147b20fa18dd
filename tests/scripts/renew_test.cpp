#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using RenewScript = ScriptTest;

TEST_F(RenewScript, ExtendsTheLease)
{
    lock(hold17, 10'000);
    EXPECT_THAT(renew(hold17, 30'000), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
}

TEST_F(RenewScript, MayBeSentTwice)
{
    lock(hold17, 10'000);
    lock(hold17, 10'000, 2);
    EXPECT_THAT(renew(hold17, 30'000), Number(1));
    EXPECT_THAT(renew(hold17, 30'000), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
}

TEST_F(RenewScript, NeverShortensTheTimeToLive)
{
    lock(hold17, 60'000);
    EXPECT_THAT(renew(hold17, 10'000), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(RenewScript, KeepsATimeToLiveThatIsTooLongToCount)
{
    lock(hold17, 10'000);
    redis.command({"PEXPIREAT", name, "9223372036854775807"});
    EXPECT_THAT(renew(hold17, 10'000), Number(1));
    EXPECT_GT(timeToLive(), 9'000'000'000'000'000);
}

TEST_F(RenewScript, FindsAHoldLostAndNeverMakesItAnew)
{
    EXPECT_THAT(renew(hold17, 30'000), Number(0));
    EXPECT_FALSE(redis.exists(name));

    lock(hold18, 10'000);
    EXPECT_THAT(renew(hold17, 30'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(10'000));
}

TEST_F(RenewScript, LeavesRedissonsLockAlone)
{
    redis.command({"HINCRBY", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "12345"});
    EXPECT_THAT(renew(hold17, 30'000), Number(0));
    EXPECT_THAT(timeToLive(), JustSet(12'345));
}

TEST_F(RenewScript, GivesItsKeyATimeToLiveAgain)
{
    lock(hold17, 30'000);
    redis.command({"PERSIST", name});
    EXPECT_THAT(renew(hold17, 20'000), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(20'000));
}

TEST_F(RenewScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 10'000);
    runOutOfMemory();
    EXPECT_THAT(renew(hold17, 30'000), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
}

TEST_F(RenewScript, IsAWriteEvenIfNothingIsToBeExtended)
{
    lock(hold17, 60'000);
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    const Value answer = renew(hold17, 10'000);
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_THAT(answer, ErrorLike("NOREPLICAS"));
}

} // namespace
} // namespace redislock::test
