// What the kinds of lock do differently, and that they exclude each other.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <cstdint>
#include <future>
#include <optional>
#include <string>

namespace redislock::test {
namespace {

class Kinds : public LockTest {
protected:
    const std::string name = uniqueName();
    const Client client{config()};
    const Client far{config()};
    Worker other;
};

using NonReentrant = Kinds;

TEST_F(NonReentrant, HolderThatLocksAgainIsToldAtOnceInEveryForm)
{
    const auto lock = client.getNonReentrantLock(name);
    lock.lock();
    const auto before = scriptCalls();
    std::error_code ec;
    lock.lock(ec);
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_THROW(lock.lock(1s), LockError);
    EXPECT_FALSE(lock.tryLock(ec));
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_FALSE(lock.tryLock(1s, 1s, ec));
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_THROW((void)LockGuard(lock), LockError);
    EXPECT_EQ(scriptCalls(), before) << "nothing is sent";
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(countOf(name), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(NonReentrant, LostHoldMayBeTakenAnew)
{
    const auto lock = client.getNonReentrantLock(name);
    lock.lock(20ms);
    EXPECT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    EXPECT_TRUE(lock.tryLock(5s));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

using Spinning = Kinds;

TEST_F(Spinning, WaiterAsksByItsPolicyAndListensToNothing)
{
    const auto held = far.getSpinLock(name);
    held.lock();
    std::atomic<std::uint32_t> asked{0};
    const auto lock = client.getSpinLock(name, RetryPolicy([&](std::uint32_t attempt, Random&) {
                                             asked = attempt;
                                             return std::optional<RetryPolicy::Pause>(1ms);
                                         }));
    auto waiter = other.start([&] {
        lock.lock();
        return lock.unlock();
    });
    EXPECT_TRUE(eventually([&] { return asked >= 20; }));
    EXPECT_EQ(listeners(name), 0);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

TEST_F(Spinning, ReleaseTellsNobody)
{
    const auto before = raw.commandCalls("publish");
    const auto lock = client.getSpinLock(name);
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    lock.lock();
    EXPECT_TRUE(lock.forceUnlock());
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(raw.commandCalls("publish"), before);
}

TEST_F(Spinning, PolicyThatGivesUpEndsEvenAnEndlessWait)
{
    const auto held = far.getLock(name);
    held.lock();
    const auto lock = client.getSpinLock(name, RetryPolicy::none());
    EXPECT_FALSE(lock.tryLock(waitForever));
    EXPECT_FALSE(client.getLock(name).tryLock(waitForever, keepRenewing, RetryPolicy::none()));
    EXPECT_FALSE(LockGuard(lock, waitForever, 1s));
    EXPECT_FALSE(lock.asyncTryLock(waitForever, boost::asio::use_future).get());
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(Spinning, ReleaseByAnotherThreadOfTheClientLetsTheNextOneInWithoutAPause)
{
    const auto lock = client.getSpinLock(name, RetryPolicy::fixed(1h));
    lock.lock(20s);
    auto waiter = other.start([&] {
        lock.lock();
        return lock.unlock();
    });
    EXPECT_EQ(waiter.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

TEST_F(Spinning, EveryLockMayBeTriedByAPolicy)
{
    const auto held = far.getLock(name);
    held.lock();
    const auto lock = client.getLock(name);
    auto waiter = other.start([&] { return lock.tryLock(20s, 5s, RetryPolicy::spinThenSleep(3, 2ms)); });
    EXPECT_EQ(waiter.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(listeners(name), 0);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(waiter.get());
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    auto guard = lock.asyncTryLock(20s, 5s, RetryPolicy::fixed(1ms), boost::asio::use_future).get();
    EXPECT_TRUE(guard);
    EXPECT_EQ(guard.release(), Unlocked::released);
}

TEST_F(Kinds, OfOneNameExcludeEachOther)
{
    const auto plain = client.getLock(name);
    const auto nonReentrant = client.getNonReentrantLock(name);
    const auto spinning = client.getSpinLock(name);
    const auto expectExcluded = [](const Lock& held, const Lock& a, const Lock& b) {
        held.lock();
        for (const Lock* lock : {&a, &b}) {
            EXPECT_FALSE(lock->tryLock());
            EXPECT_FALSE(lock->isHeldByCurrentThread());
            EXPECT_TRUE(lock->isLocked());
            std::error_code ec;
            lock->unlock(ec);
            EXPECT_EQ(ec, Errc::notHeld);
        }
        EXPECT_EQ(held.unlock(), Unlocked::released);
    };
    expectExcluded(plain, nonReentrant, spinning);
    expectExcluded(nonReentrant, plain, spinning);
    expectExcluded(spinning, plain, nonReentrant);
}

TEST_F(Kinds, WithMessagesWakeEachOther)
{
    const auto held = far.getNonReentrantLock(name);
    held.lock();
    const auto lock = client.getLock(name);
    auto waiter = other.start([&] {
        lock.lock();
        return lock.unlock();
    });
    EXPECT_TRUE(eventually([&] { return listeners(name) == 1; }));
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready) << "it polls once a minute";
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
