#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using RenewScript = ScriptTest;

TEST_F(RenewScript, ExtendsTheLease)
{
    lock(hold17, 10'000);
    EXPECT_EQ(renew(hold17, 30'000).text(), "1");
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
}

TEST_F(RenewScript, MayBeSentTwice)
{
    lock(hold17, 10'000);
    lock(hold17, 10'000, 2);
    EXPECT_EQ(renew(hold17, 30'000).text(), "1");
    EXPECT_EQ(renew(hold17, 30'000).text(), "1");
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
}

TEST_F(RenewScript, NeverShortensTheTimeToLive)
{
    lock(hold17, 60'000);
    EXPECT_EQ(renew(hold17, 10'000).text(), "1");
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(RenewScript, KeepsATimeToLiveThatIsTooLongToCount)
{
    lock(hold17, 10'000);
    redis.command({"PEXPIREAT", name, "9223372036854775807"});
    EXPECT_EQ(renew(hold17, 10'000).text(), "1");
    EXPECT_GT(timeToLive(), 9'000'000'000'000'000);
}

TEST_F(RenewScript, FindsAHoldLostAndNeverMakesItAnew)
{
    EXPECT_EQ(renew(hold17, 30'000).text(), "0");
    EXPECT_FALSE(redis.exists(name));

    lock(hold18, 10'000);
    EXPECT_EQ(renew(hold17, 30'000).text(), "0");
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(10'000));
}

TEST_F(RenewScript, LeavesRedissonsLockAlone)
{
    redis.command({"HINCRBY", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "12345"});
    EXPECT_EQ(renew(hold17, 30'000).text(), "0");
    EXPECT_THAT(timeToLive(), JustSet(12'345));
}

TEST_F(RenewScript, RenewsSeveralLocksEachByItself)
{
    lock(hold17, 10'000);
    redis.command({"HSET", "others", hold18, "1"});
    redis.command({"PEXPIRE", "others", "10000"});
    redis.command({"SET", "text", "value", "PX", "10000"});
    const Value answers = run(detail::scripts::redisLockRenew, {"free", "text", name, "others"},
                              {hold17, "30000", hold17, "30000", hold17, "30000", hold18, "20000"});
    EXPECT_EQ(answers.text(), "0w11");
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_THAT(redis.pttl("others").count(), JustSet(20'000));
    EXPECT_THAT(redis.pttl("text").count(), JustSet(10'000));
    EXPECT_FALSE(redis.exists("free"));
}

TEST_F(RenewScript, OfReadersRenewsSeveralLocksEachByItself)
{
    const auto timeout = [](const std::string& lockName, const std::string& reader, int level) {
        return "{" + lockName + "}:" + reader + ":rwlock_timeout:" + std::to_string(level);
    };
    for (const auto* level : {"1", "2"}) {
        EXPECT_THAT(run(detail::scripts::readLockLock, {name, "{" + name + "}"}, {hold17, "10000", level, ""}), Nil());
    }
    redis.command({"SET", "text", "value", "PX", "10000"});
    const Value answers =
        run(detail::scripts::readLockRenew,
            {"text", timeout("text", hold17, 1), name, timeout(name, hold17, 1), "free", timeout("free", hold17, 1)},
            {hold17, "10000", hold17, "30000", hold17, "20000"});
    EXPECT_EQ(answers.text(), "w10");
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_THAT(redis.pttl(timeout(name, hold17, 1)).count(), JustSet(30'000));
    EXPECT_THAT(redis.pttl(timeout(name, hold17, 2)).count(), JustSet(30'000));
    EXPECT_EQ(redis.command({"DBSIZE"}).integer(), 4);
    EXPECT_THAT(redis.pttl("text").count(), JustSet(10'000));
}

TEST_F(RenewScript, GivesItsKeyATimeToLiveAgain)
{
    lock(hold17, 30'000);
    redis.command({"PERSIST", name});
    EXPECT_EQ(renew(hold17, 20'000).text(), "1");
    EXPECT_THAT(timeToLive(), JustSet(20'000));
}

TEST_F(RenewScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 10'000);
    runOutOfMemory();
    EXPECT_EQ(renew(hold17, 30'000).text(), "1");
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
