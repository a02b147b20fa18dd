// How the kinds of lock differ, and that they exclude each other.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "support/frozen_thread.hpp"
#include "wire/script.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_future.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

/// A thread that holds a name by one kind of lock, and asks for the name by another kind, would wait for itself.
TEST_F(Kinds, ThreadThatHoldsTheNameByAnotherKindIsToldAtOnce)
{
    const std::vector<std::pair<const char*, Lock>> kinds{
        {"RedisLock", client.getLock(name)},    {"NonReentrantLock", client.getNonReentrantLock(name)},
        {"SpinLock", client.getSpinLock(name)}, {"FencedLock", client.getFencedLock(name)},
        {"FairLock", client.getFairLock(name)},
    };
    for (const auto& [heldAs, held] : kinds) {
        held.lock();
        const auto before = scriptCalls();
        for (const auto& [askedAs, asked] : kinds) {
            if (heldAs == askedAs) {
                continue;
            }
            SCOPED_TRACE(std::string(heldAs) + ", then " + askedAs);
            std::error_code ec;
            asked.lock(ec);
            EXPECT_EQ(ec, Errc::wouldDeadlock);
            EXPECT_FALSE(asked.tryLock(ec));
            EXPECT_EQ(ec, Errc::wouldDeadlock);
            EXPECT_FALSE(LockGuard(asked, 10s, 10s, ec));
            EXPECT_EQ(ec, Errc::wouldDeadlock);
            EXPECT_EQ(asked.holdCount(), 0U);
        }
        EXPECT_EQ(scriptCalls(), before) << "nothing is sent";
        EXPECT_FALSE(other.run([&] { return kinds.back().second.tryLock(); })) << "other threads may ask";
        EXPECT_EQ(held.holdCount(), 1U);
        EXPECT_EQ(held.unlock(), Unlocked::released);
    }
    for (const auto& [kind, lock] : kinds) {
        EXPECT_TRUE(lock.tryLock(5s)) << kind;
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
}

TEST_F(Kinds, ThreadThatLostTheNameMayAskForItByAnotherKind)
{
    const auto lost = client.getLock(name);
    lost.lock(20ms);
    EXPECT_TRUE(eventually([&] { return lost.holdCount() == 0; }));
    const auto fair = client.getFairLock(name);
    EXPECT_TRUE(fair.tryLock(5s));
    EXPECT_EQ(lost.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(fair.unlock(), Unlocked::released);
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
    RawRedis ear(server());
    ear.command({"PSUBSCRIBE", "[^_]*"}); // not __sentinel__:hello
    const auto lock = client.getSpinLock(name);
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    lock.lock();
    EXPECT_TRUE(lock.forceUnlock());
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    raw.command({"PUBLISH", "the end", ""});
    EXPECT_EQ(ear.receive().elements.at(2).text(), "the end");
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

/// The release is sent again, behind the waiter's request, which Redis refuses; the release is answered before the
/// waiter looks.
TEST_F(Spinning, ReleaseWhoseScriptTheServerForgotLetsTheNextOneInWithoutAPause)
{
    Client ending(config());
    std::atomic<bool> refused{false};
    const auto lock = ending.getSpinLock(name, RetryPolicy([&refused](std::uint32_t, Random&) {
                                             refused = true;
                                             return std::optional<RetryPolicy::Pause>(1h);
                                         }));
    lock.lock(20s);
    const auto thread = other.run([] { return std::pair(::pthread_self(), ::gettid()); });
    auto waiter = other.start([&] {
        std::error_code ec;
        lock.lock(ec);
        return ec ? Unlocked::alreadyLost : lock.unlock();
    });
    ASSERT_TRUE(eventually([&] { return refused && FrozenThread::sleeps(thread.second); }));
    raw.command({"SCRIPT", "FLUSH"});
    raw.command({"SCRIPT", "LOAD", detail::scripts::redisLockLock.text()});
    {
        const FrozenThread frozen(thread.first);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready) << "it sleeps for an hour";
    ending.shutdown();
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

TEST_F(Spinning, PolicyMayUseTheLibrary)
{
    const auto held = far.getLock(name);
    held.lock();
    LockGuard guard(client.getLock(uniqueName()));
    std::error_code inBlocking;
    std::error_code inAsynchronous;
    bool valid = false;
    const auto askedBy = [&](std::error_code& ec, std::uint32_t attempt) {
        valid = !guard.stopToken().stop_requested() && guard.validFor() > 0ms && guard;
        (void)client.getLock(uniqueName()).isLocked(ec);
        return attempt < 2 ? std::optional<RetryPolicy::Pause>(1ms) : std::nullopt;
    };
    const auto lock = client.getLock(name);
    EXPECT_FALSE(lock.tryLock(waitForever, keepRenewing, RetryPolicy([&](std::uint32_t attempt, Random&) {
                                  return askedBy(inBlocking, attempt);
                              })));
    EXPECT_TRUE(valid);
    EXPECT_FALSE(inBlocking);
    valid = false;
    EXPECT_FALSE(lock.asyncTryLock(waitForever, keepRenewing, RetryPolicy([&](std::uint32_t attempt, Random&) {
                                       return askedBy(inAsynchronous, attempt);
                                   }),
                                   boost::asio::use_future)
                     .get());
    EXPECT_TRUE(valid);
    EXPECT_EQ(inAsynchronous, Errc::wouldDeadlock) << "on the client's own thread";
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

struct PolicyFailure {};

TEST_F(Spinning, WhatAPolicyThrowsEndsThatCallAlone)
{
    const auto held = far.getLock(name);
    held.lock();
    const RetryPolicy policy(
        [](std::uint32_t, Random&) -> std::optional<RetryPolicy::Pause> { throw PolicyFailure(); });
    const auto isNested = [](const std::function<void()>& call) {
        try {
            call();
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::invalidArgument);
            EXPECT_THROW(std::rethrow_if_nested(error), PolicyFailure);
            return true;
        }
        return false;
    };
    const auto lock = client.getLock(name);
    const auto spinning = client.getSpinLock(name, policy);
    EXPECT_TRUE(isNested([&] { (void)lock.tryLock(10s, 10s, policy); }));
    EXPECT_TRUE(isNested([&] { spinning.lock(); }));
    EXPECT_TRUE(isNested([&] { const LockGuard guard(spinning); }));
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(10s, 10s, policy, ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    EXPECT_FALSE(LockGuard(spinning, ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    boost::system::error_code code;
    EXPECT_FALSE(
        lock.asyncTryLock(waitForever, keepRenewing, policy, boost::asio::redirect_error(boost::asio::use_future, code))
            .get());
    EXPECT_EQ(code, Errc::invalidArgument);

    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(lock.tryLock(10s, 10s, policy)) << "nobody is in the way";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Spinning, WhoPausesHoldsUpNobodyAndIsLetInByALocalRelease)
{
    const auto held = far.getLock(name);
    const auto lock = client.getLock(name);
    std::chrono::milliseconds turnIsOver{0};
    const auto testBehind = [&](auto tryForAnHour) {
        held.lock();
        std::promise<void> pauses;
        auto pausing = tryForAnHour(RetryPolicy([&](std::uint32_t attempt, Random&) {
            if (attempt == 1) {
                pauses.set_value();
            }
            return std::optional<RetryPolicy::Pause>(1h);
        }));
        pauses.get_future().wait();
        Worker another;
        auto told = another.start([&] { lock.lock(); });
        EXPECT_TRUE(eventually([&] { return listeners(name) == 1; }));
        EXPECT_EQ(held.unlock(), Unlocked::released);
        EXPECT_EQ(told.wait_for(soon), std::future_status::ready) << "it stands behind one that sleeps for an hour";
        std::this_thread::sleep_for(turnIsOver);
        EXPECT_EQ(another.run([&] { return lock.unlock(); }), Unlocked::released);
        EXPECT_EQ(pausing.wait_for(soon), std::future_status::ready);
        EXPECT_EQ(pausing.get(), Unlocked::released);
    };
    for (const auto time : {0ms, 100ms}) { // after a turn the next hold goes to another client, if one wants it
        turnIsOver = time;
        testBehind([&](const RetryPolicy& policy) {
            return other.start([&lock, policy] {
                return lock.tryLock(waitForever, 20s, policy) ? lock.unlock() : Unlocked::alreadyLost;
            });
        });
        testBehind([&](const RetryPolicy& policy) {
            return other.start([&lock, policy] {
                return lock.asyncTryLock(waitForever, 20s, policy, boost::asio::use_future).get().release();
            });
        });
    }
}

TEST_F(Spinning, WhoPausesKeepsNoPlaceInRedis)
{
    const auto pausesOn = [this](const auto& lock, const auto& held) {
        held.lock();
        bool hasPlace = true;
        EXPECT_FALSE(other.run([&] {
            return lock.tryLock(waitForever, 20s, RetryPolicy([&](std::uint32_t, Random&) {
                                    hasPlace = raw.exists("redisson_lock_queue:{" + name + "}") ||
                                               raw.exists("{" + name + "}:redislock_writer");
                                    return std::optional<RetryPolicy::Pause>();
                                }));
        }));
        EXPECT_FALSE(hasPlace);
        EXPECT_EQ(held.unlock(), Unlocked::released);
    };
    pausesOn(client.getFairLock(name), far.getFairLock(name));
    pausesOn(client.getReadWriteLock(name).writeLock(), far.getReadWriteLock(name).readLock());
}

TEST_F(Kinds, OfOneNameExcludeEachOther)
{
    const auto plain = client.getLock(name);
    const auto nonReentrant = client.getNonReentrantLock(name);
    const auto spinning = client.getSpinLock(name);
    const auto expectExcluded = [this](const Lock& held, const Lock& a, const Lock& b) {
        held.lock();
        for (const Lock* lock : {&a, &b}) {
            EXPECT_FALSE(other.run([lock] { return lock->tryLock(); }));
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
