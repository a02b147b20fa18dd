#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

class UnlockScript : public ScriptTest {
protected:
    /// The final unlock of hold 17, by another connection.
    Value unlockThrough(RawRedis& connection) const
    {
        return run(connection, detail::scripts::redisLockUnlock, {name},
                   {hold17, "0", "30000", detail::lockChannel(name)});
    }
};

TEST_F(UnlockScript, FreesTheLock)
{
    lock(hold17, 30'000);
    EXPECT_THAT(unlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(UnlockScript, FreesTheLockFromAnyCount)
{
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    lock(hold17, 30'000, 3);
    EXPECT_THAT(unlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(UnlockScript, TellsEverySubscriberAndCountsThem)
{
    RawRedis one = subscriber();
    RawRedis other = subscriber();
    lock(hold17, 30'000);
    EXPECT_THAT(unlock(hold17), Number(3));
    EXPECT_EQ(messages(one), Words{"redisson_lock__channel:{stock:42} 0"});
    EXPECT_EQ(messages(other), Words{"redisson_lock__channel:{stock:42} 0"});
}

TEST_F(UnlockScript, TellsNobodyWhileTheLockIsHeld)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    unlock(hold17, 1);
    unlock(hold18);
    EXPECT_EQ(messages(waiter), Words{});
}

// The release before may have published nothing, because this holder was to follow.
TEST_F(UnlockScript, OfWhoHoldsNothingTellsThatTheLockIsFree)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    run(detail::scripts::redisLockUnlock, {name}, {hold17, "0", "30000", ""});
    EXPECT_EQ(messages(waiter), Words{});
    EXPECT_TRUE(unlock(hold18).isNil());
    EXPECT_EQ(messages(waiter), Words{"redisson_lock__channel:{stock:42} 0"});
    EXPECT_TRUE(unlock(hold18, 1).isNil());
    EXPECT_EQ(messages(waiter), Words{}) << "an inner level is handed on to nobody";
}

TEST_F(UnlockScript, MovesTheCountDownAndNeverShortensTheTimeToLive)
{
    lock(hold17, 60'000);
    lock(hold17, 60'000, 2);
    lock(hold17, 60'000, 3);
    EXPECT_THAT(unlock(hold17, 2, 20'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold17, "2"}}));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
    EXPECT_THAT(unlock(hold17, 1, 90'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(90'000));
}

TEST_F(UnlockScript, LeavesNoKeyWithoutTimeToLiveHoweverShortTheRestIs)
{
    lock(hold17, 60'000);
    lock(hold17, 60'000, 2);
    redis.command({"PERSIST", name});
    EXPECT_THAT(unlock(hold17, 1, 1), Number(0));
    EXPECT_NE(timeToLive(), -1);
    EXPECT_LE(timeToLive(), 1);
}

// If the server forgot a script, it is sent again behind requests that were queued meanwhile; and a network may deliver
// late.
TEST_F(UnlockScript, ThatComesBehindALaterLevelLeavesItsLease)
{
    lock(hold17, 20'000);
    lock(hold17, 30'000, 2);
    lock(hold17, 60'000, 2); // the level was ended and taken again; its unlock comes only now
    EXPECT_THAT(unlock(hold17, 1, 16'000), Number(0));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(UnlockScript, MayBeSentTwice)
{
    lock(hold17, 60'000);
    lock(hold17, 60'000, 2);
    EXPECT_THAT(unlock(hold17, 1, 20'000), Number(0));
    EXPECT_THAT(unlock(hold17, 1, 20'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(60'000));

    EXPECT_THAT(unlock(hold17), Number(1));
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(UnlockScript, NeitherRaisesTheCountNorTouchesTheTimeWhenItComesLate)
{
    lock(hold17, 60'000);
    EXPECT_THAT(unlock(hold17, 2, 20'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
    EXPECT_THAT(unlock(hold17, 1, 20'000), Number(0));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
}

TEST_F(UnlockScript, DoesNothingForAStranger)
{
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_THAT(unlock(hold17, 1), Nil());
    EXPECT_FALSE(redis.exists(name));

    lock(hold18, 30'000);
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_THAT(unlock(hold17, 1, 90'000), Nil());
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
}

TEST_F(UnlockScript, IgnoresTheLeaseOfTheFinalUnlock)
{
    for (const char* lease : {"0", "1", "99999999999", "-1", "", "x"}) {
        lock(hold17, 30'000);
        EXPECT_THAT(run(detail::scripts::redisLockUnlock, {name}, {hold17, "0", lease, "channel"}), Number(1)) << lease;
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(UnlockScript, MovesACountDownThatSomebodyElseSpoilt)
{
    lock(hold17, 30'000);
    for (const char* spoilt : {"", "abc", "99999999999999999999", "inf"}) {
        redis.command({"HSET", name, hold17, spoilt});
        EXPECT_THAT(unlock(hold17, 1, 20'000), Number(0)) << spoilt;
        EXPECT_EQ(hash(), (Hash{{hold17, "1"}})) << spoilt;
    }
    redis.command({"HSET", name, hold17, "abc"});
    EXPECT_THAT(unlock(hold17), Number(1));
}

TEST_F(UnlockScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 60'000);
    lock(hold17, 60'000, 2);
    runOutOfMemory();
    EXPECT_THAT(unlock(hold17, 1, 20'000), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(60'000));
    EXPECT_THAT(unlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(UnlockScript, TellsWaitersWhenMemoryIsOut)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    runOutOfMemory();
    EXPECT_THAT(unlock(hold17), Number(2));
    EXPECT_EQ(messages(waiter).size(), 1U);
}

TEST_F(UnlockScript, FreesTheLockEvenIfItMayNotTellAnybody)
{
    RawRedis waiter = subscriber();
    RawRedis mute = userWithoutChannels();
    lock(hold17, 30'000);
    EXPECT_THAT(unlockThrough(mute), Number(1));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_THAT(unlockThrough(mute), Nil());
    EXPECT_EQ(messages(waiter), Words{});
}

TEST_F(UnlockScript, NeedsNoPermissionForAKeyNamedAsItsChannel)
{
    redis.command({"ACL", "SETUSER", "narrow", "reset", "on", ">pw", "~stock:*", "&redisson_lock__channel:*", "+@all"});
    RawRedis narrow(server());
    ASSERT_EQ(narrow.command({"AUTH", "narrow", "pw"}).text(), "OK");
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    EXPECT_THAT(unlockThrough(narrow), Number(2));
}

TEST_F(UnlockScript, LetsAnotherTakeTheLockAtOnce)
{
    lock(hold17, 30'000);
    unlock(hold17);
    EXPECT_THAT(lock(hold18, 30'000), Nil());
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
}

TEST_F(UnlockScript, OfAnEarlierHoldDoesNotTouchALaterOneOfTheSameClient)
{
    lock(hold17, 30'000);
    unlock(hold17);
    lock(hold18, 40'000);
    lock(hold18, 40'000, 2);

    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_THAT(unlock(hold17, 1, 1), Nil());
    EXPECT_EQ(renew(hold17, 90'000).text(), "0");
    EXPECT_THAT(lock(hold17, 90'000, 2), Number(-3));
    EXPECT_EQ(hash(), (Hash{{hold18, "2"}}));
    EXPECT_THAT(timeToLive(), JustSet(40'000));
}

TEST_F(UnlockScript, LeavesRedissonsLockAlone)
{
    redis.command({"HINCRBY", name, javaThread, "1"});
    redis.command({"PEXPIRE", name, "12345"});
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_EQ(hash(), (Hash{{javaThread, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(12'345));
}

TEST_F(UnlockScript, TellsNobodyWithoutAChannel)
{
    RawRedis waiter = subscriber();
    for (int forced = 0; forced < 2; ++forced) {
        lock(hold17, 30'000);
        EXPECT_THAT(forced == 1 ? run(detail::scripts::redisLockForceUnlock, {name}, {hold17, ""})
                                : run(detail::scripts::redisLockUnlock, {name}, {hold17, "0", "30000", ""}),
                    Number(1));
        EXPECT_FALSE(redis.exists(name));
    }
    EXPECT_EQ(messages(waiter), Words{});
}

} // namespace
} // namespace redislock::test
