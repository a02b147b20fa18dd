#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using ForceUnlockScript = ScriptTest;

TEST_F(ForceUnlockScript, FreesTheLockOfTheHolderThatIsNamed)
{
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    EXPECT_EQ(holder().text(), hold17);
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_THAT(holder(), Nil());

    writeForeignHash({{javaThread, "3"}});
    EXPECT_EQ(holder().text(), javaThread);
    EXPECT_THAT(forceUnlock(javaThread), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, SentAgainLeavesTheNextHolderAlone)
{
    EXPECT_THAT(forceUnlock(hold17), Number(0));
    lock(hold17, 30'000);
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    lock(hold18, 30'000);
    EXPECT_THAT(forceUnlock(hold17), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
}

TEST_F(ForceUnlockScript, TellsTheWaitersOnceForEachLock)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    forceUnlock(hold17);
    forceUnlock(hold17);
    EXPECT_EQ(messages(waiter), Words{"redisson_lock__channel:{stock:42} 0"});
}

TEST_F(ForceUnlockScript, IsFoundOutByTheHolder)
{
    lock(hold17, 30'000);
    forceUnlock(hold17);
    EXPECT_THAT(renew(hold17, 30'000), Number(0));
    EXPECT_THAT(lock(hold17, 30'000, 2), Number(-3));
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 30'000);
    runOutOfMemory();
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, FreesTheLockEvenIfItMayNotTellAnybody)
{
    RawRedis mute = userWithoutChannels();
    lock(hold17, 30'000);
    EXPECT_THAT(run(mute, detail::scripts::redisLockForceUnlock, {name}, {hold17, detail::lockChannel(name)}),
                Number(1));
    EXPECT_FALSE(redis.exists(name));
}

} // namespace
} // namespace redislock::test
