#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using LockScript = ScriptTest;

TEST_F(LockScript, GrantsAFreeLockForItsLease)
{
    EXPECT_THAT(lock(hold17, 30'000), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
}

TEST_F(LockScript, WritesNoOtherKey)
{
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
}

TEST_F(LockScript, TellsAnotherHolderTheRemainingTimeAndChangesNothing)
{
    lock(hold17, 30'000);
    const Value answer = lock(hold18, 60'000);
    EXPECT_THAT(answer, Refusal(JustSet(30'000), hold17));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_LE(timeToLive(), answer.elements[0].integer());
}

TEST_F(LockScript, MayBeSentTwice)
{
    EXPECT_THAT(lock(hold17, 30'000), Nil());
    EXPECT_THAT(lock(hold17, 30'000), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(lock(hold17, 30'000, 2), Nil());
    EXPECT_THAT(lock(hold17, 30'000, 2), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
}

TEST_F(LockScript, ShowsTheNestedCount)
{
    for (const std::int64_t count : {1, 2, 3}) {
        EXPECT_THAT(lock(hold17, 30'000, count), Nil());
        const Value counts = redis.command({"HVALS", name});
        ASSERT_EQ(counts.elements.size(), 1U) << counts;
        EXPECT_EQ(counts.elements[0].text(), std::to_string(count));
    }
}

TEST_F(LockScript, NeverShortensTheTimeToLive)
{
    lock(hold17, 60'000);
    EXPECT_THAT(lock(hold17, 10'000, 2), Nil());
    EXPECT_THAT(timeToLive(), JustSet(60'000));
    EXPECT_THAT(lock(hold17, 10'000), Nil());
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(LockScript, LengthensTheTimeToLive)
{
    lock(hold17, 10'000);
    EXPECT_THAT(lock(hold17, 60'000, 2), Nil());
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(LockScript, KeepsATimeToLiveThatIsTooLongToCount)
{
    lock(hold17, 10'000);
    redis.command({"PEXPIREAT", name, "9223372036854775807"});
    EXPECT_THAT(lock(hold17, 10'000, 2), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
    EXPECT_GT(timeToLive(), 9'000'000'000'000'000);
}

TEST_F(LockScript, FindsANestedHoldLostAndWritesNothing)
{
    EXPECT_THAT(lock(hold17, 30'000, 2), Number(-3));
    EXPECT_FALSE(redis.exists(name));

    lock(hold18, 30'000);
    EXPECT_THAT(lock(hold17, 60'000, 2), Number(-3));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
}

TEST_F(LockScript, GrantsALockAgainThatRanOut)
{
    lock(hold17, 30'000);
    redis.command({"PEXPIRE", name, "0"});
    EXPECT_THAT(lock(hold18, 30'000), Nil());
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
}

TEST_F(LockScript, TellsThatAForeignKeyHasNoTimeToLive)
{
    writeForeignHash({{javaThread, "1"}});
    EXPECT_THAT(lock(hold17, 30'000), Refusal(-1, javaThread));
    EXPECT_EQ(hash(), (Hash{{javaThread, "1"}}));
    EXPECT_EQ(timeToLive(), -1);
}

TEST_F(LockScript, GivesItsOwnKeyATimeToLiveAgain)
{
    lock(hold17, 30'000);
    redis.command({"PERSIST", name});
    EXPECT_THAT(lock(hold17, 20'000, 2), Nil());
    EXPECT_THAT(timeToLive(), JustSet(20'000));
}

TEST_F(LockScript, RespectsALockThatRedissonTook)
{
    redis.command({"HINCRBY", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "12345"});
    EXPECT_THAT(lock(hold17, 30'000), Refusal(JustSet(12'345), javaThread));
    EXPECT_EQ(hash(), (Hash{{javaThread, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(12'345));
}

TEST_F(LockScript, RefusesANameThatIsInUseAsAReadWriteLock)
{
    redis.command({"HSET", name, "mode", "read"});
    redis.command({"HSET", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "12345"});
    EXPECT_THAT(lock(hold17, 30'000), ErrorLike("WRONGTYPE redislock: the name is in use"));
    EXPECT_EQ(hash().size(), 2U);
    EXPECT_THAT(timeToLive(), JustSet(12'345));
}

TEST_F(LockScript, IsTakenAsHeldByRedisson)
{
    lock(hold17, 30'000);
    EXPECT_TRUE(redis.exists(name));
    EXPECT_THAT(redis.command({"HEXISTS", name, javaThread}), Number(0));
    EXPECT_EQ(redis.command({"TYPE", name}).text(), "hash");
}

TEST_F(LockScript, IsRefusedANewLockWhenMemoryIsOutAndLeavesNothing)
{
    runOutOfMemory();
    EXPECT_THAT(lock(hold17, 30'000), ErrorLike("OOM"));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(LockScript, NestsWhenMemoryIsOut)
{
    lock(hold17, 30'000);
    runOutOfMemory();
    EXPECT_THAT(lock(hold17, 60'000, 2), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
    EXPECT_THAT(lock(hold18, 30'000), Refusal(JustSet(60'000), hold17));
}

TEST_F(LockScript, TakesItsRangesWhole)
{
    EXPECT_THAT(lock(hold17, 2'592'000'000), Nil());
    EXPECT_THAT(timeToLive(), JustSet(2'592'000'000));
    EXPECT_THAT(lock(hold17, 10, 2'147'483'647), Nil());
    EXPECT_EQ(hash(), (Hash{{hold17, "2147483647"}}));
}

TEST_F(LockScript, LeavesNothingBehindWhereItMayNotSetATimeToLive)
{
    redis.command({"ACL", "SETUSER", "noexpire", "reset", "on", ">secret", "~*", "&*", "+@all", "-pexpire"});
    RawRedis limited("127.0.0.1", server().port());
    ASSERT_EQ(limited.command({"AUTH", "noexpire", "secret"}).text(), "OK");
    EXPECT_TRUE(run(limited, detail::scripts::redisLockLock, {name}, {hold17, "30000", "1"}).isError());
    EXPECT_FALSE(redis.exists(name));
    redis.command({"ACL", "DELUSER", "noexpire"});
}

} // namespace
} // namespace redislock::test
