// Locks of a server that forgets everything: it is killed and started again.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

namespace redislock::test {
namespace {

class Restart : public BehaviourTest {
protected:
    /// Expects the hold of a lock that is gone to end quietly, and without harm to others.
    static void expectEnded(const AnyLock& lock)
    {
        const auto how = must(lock.unlock());
        // a first try on the old connection may have freed the lock before the server died
        EXPECT_TRUE(how == Unlocked::alreadyLost || how == Unlocked::released) << how;
        EXPECT_FALSE(lock.isHeldByCurrentThread());
    }
};

INSTANTIATE_TEST_SUITE_P(, Restart, driversWith({Feature::leases}), driverName);

/// The same while somebody waits.
class RestartWithWaiters : public Restart {};

INSTANTIATE_TEST_SUITE_P(, RestartWithWaiters, driversWith({Feature::leases, Feature::waiting, Feature::exclusion}),
                         driverName);

TEST_P(Restart, LockIsLostAndANewOneOfItsNameIsRenewedAgain)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    const auto token = lock.stopToken();
    server().kill();
    server().restart();
    EXPECT_FALSE(raw.exists(lock.name()));
    ASSERT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);

    EXPECT_EQ(lock.lock(), true);
    const auto holder = holderOf(lock.name());
    const auto renewals = observer()->count("renewed", lock.name());
    ASSERT_TRUE(observer()->await("renewed", lock.name(), renewals + 5));
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Restart, UnlockRightAfterARestartEndsTheHold)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(20s), true);
    server().kill();
    server().restart();
    expectEnded(lock);
    EXPECT_EQ(lock.tryLock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(RestartWithWaiters, WaitersOfTheOldServerAreServedByTheNewOne)
{
    const Client other(config());
    const auto lock = make();
    EXPECT_EQ(make(other, lock.name()).lock(30s), true);
    Worker thread;
    auto waiter = thread.start([&] { return lock.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    server().kill();
    server().restart();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(thread.run([&] { return lock.unlock(); }), Unlocked::released);
    expectEnded(make(other, lock.name()));
}

} // namespace
} // namespace redislock::test
