// Waiters in other processes that are killed or stand still: they leave nothing, and keep nobody from the lock.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "integration/holder_process.hpp"

namespace redislock::test {
namespace {

using D = BlockingCodes;

class KilledWaiter : public LockTest {
protected:
    std::string name = uniqueName();
    Client client{config()};
    RedisLock lock = client.getLock(name);
};

TEST_F(KilledWaiter, LeavesNeitherALockNorASubscription)
{
    for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(D::lock(lock, 60s), true);
        HolderProcess waiter(server().url(), name, 0, 600);
        ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
        waiter.kill();
        EXPECT_TRUE(eventually([&] { return listeners(name) == 0; }));
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
        EXPECT_FALSE(raw.exists(name)) << "granted to nobody";
        EXPECT_EQ(D::tryLock(lock), true);
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }
}

TEST_F(KilledWaiter, KeepsNoOtherWaiterFromTheLock)
{
    ASSERT_EQ(D::lock(lock, 60s), true);
    HolderProcess first(server().url(), name, 0, 600);
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    HolderProcess second(server().url(), name, 0, 600);
    ASSERT_TRUE(eventually([&] { return listeners(name) == 2; }));
    first.freeze(); // it is told and does not ask
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    EXPECT_TRUE(second.line().starts_with("held "));
    first.kill();
    EXPECT_EQ(second.ask("unlock"), "released");
}

} // namespace
} // namespace redislock::test
