#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using ForceUnlockScript = ScriptTest;

TEST_F(ForceUnlockScript, FreesTheLockWhoeverHoldsIt)
{
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    EXPECT_THAT(forceUnlock(), Number(1));
    EXPECT_FALSE(redis.exists(name));

    writeForeignHash({{javaThread, "3"}});
    EXPECT_THAT(forceUnlock(), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, SaysWhetherThereWasALock)
{
    EXPECT_THAT(forceUnlock(), Number(0));
    lock(hold17, 30'000);
    EXPECT_THAT(forceUnlock(), Number(1));
    EXPECT_THAT(forceUnlock(), Number(0));
}

TEST_F(ForceUnlockScript, TellsTheWaitersOnceForEachLock)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    forceUnlock();
    forceUnlock();
    EXPECT_EQ(messages(waiter), Words{"redisson_lock__channel:{stock:42} 0"});
}

TEST_F(ForceUnlockScript, IsFoundOutByTheHolder)
{
    lock(hold17, 30'000);
    forceUnlock();
    EXPECT_THAT(renew(hold17, 30'000), Number(0));
    EXPECT_THAT(lock(hold17, 30'000, 2), Number(-3));
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 30'000);
    runOutOfMemory();
    EXPECT_THAT(forceUnlock(), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, FreesTheLockEvenIfItMayNotTellAnybody)
{
    RawRedis mute = userWithoutChannels();
    lock(hold17, 30'000);
    EXPECT_THAT(run(mute, detail::scripts::redisLockForceUnlock, {name}, {detail::lockChannel(name)}), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

} // namespace
} // namespace redislock::test
