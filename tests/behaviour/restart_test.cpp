// Locks of a server that forgets everything: it is killed and started again.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

namespace redislock::test {
namespace {

template <class D>
class Restart : public BehaviourTest<D> {
protected:
    /// Ends the hold of a lock that is gone: quietly, and without harm to others.
    static void expectEnded(const typename D::Lock& lock)
    {
        const auto how = must(D::unlock(lock));
        // a first try that was written to the old connection may have freed it before the server died
        EXPECT_TRUE(how == Unlocked::alreadyLost || how == Unlocked::released) << how;
        EXPECT_FALSE(lock.isHeldByCurrentThread());
    }
};

using RestartDrivers = DriversWith<Feature::leases>;
TYPED_TEST_SUITE(Restart, RestartDrivers, DriverNames);

/// The same while somebody waits.
template <class D>
class RestartWithWaiters : public Restart<D> {
};

using RestartWithWaitersDrivers = DriversWith<Feature::leases, Feature::waiting, Feature::exclusion>;
TYPED_TEST_SUITE(RestartWithWaiters, RestartWithWaitersDrivers, DriverNames);

TYPED_TEST(Restart, LockIsLostAndANewOneOfItsNameIsRenewedAgain)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto token = lock.stopToken();
    this->server().kill();
    this->server().restart();
    EXPECT_FALSE(this->raw.exists(lock.name()));
    ASSERT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);

    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto holder = this->holderOf(lock.name());
    const auto renewals = this->observer()->count("renewed", lock.name());
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), renewals + 5));
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Restart, UnlockRightAfterARestartEndsTheHold)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 20s), true);
    this->server().kill();
    this->server().restart();
    this->expectEnded(lock);
    EXPECT_EQ(TypeParam::tryLock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(RestartWithWaiters, WaitersOfTheOldServerAreServedByTheNewOne)
{
    const Client other(this->config());
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(this->make(other, lock.name()), 30s), true);
    Worker thread;
    auto waiter = thread.start([&] { return TypeParam::lock(lock); });
    ASSERT_TRUE(eventually([&] { return this->listeners(lock.name()) == 1; }));
    this->server().kill();
    this->server().restart();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(thread.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    this->expectEnded(this->make(other, lock.name()));
}

} // namespace
} // namespace redislock::test
