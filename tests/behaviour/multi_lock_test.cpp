// All of several locks, or none.
#include "behaviour/group_test.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class MultiLocks : public GroupTest {
protected:
    std::vector<RedisLock> members(const Client& of) const
    {
        return {of.getLock(names[0]), of.getLock(names[1]), of.getLock(names[2])};
    }
    std::size_t lockedNow()
    {
        std::size_t locked = 0;
        for (const auto& each : names) {
            locked += raw.exists(each) ? 1U : 0U;
        }
        return locked;
    }

    const std::vector<std::string> names{uniqueName(), uniqueName(), uniqueName()};
    const Client client{config()};
    const Client far{config()};
    const MultiLock lock{members(client)};
    const MultiLock elsewhere{members(far)};
};

TEST_F(MultiLocks, HoldsAllMembersUntilItIsUnlocked)
{
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    lock.lock(10s);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lockedNow(), 3U);
    EXPECT_GT(lock.validFor(), 5s);
    EXPECT_LE(lock.validFor(), 10s);
    EXPECT_FALSE(other.run([&] { return lock.isHeldByCurrentThread(); }));
    EXPECT_FALSE(elsewhere.tryLock());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_EQ(lockedNow(), 0U);
}

TEST_F(MultiLocks, OneOfTenThreadsThatTryOnceGetsIt)
{
    std::atomic<int> winners{0};
    std::vector<std::jthread> threads;
    std::atomic<int> tried{0};
    for (int i = 0; i < 10; ++i) {
        threads.emplace_back([&] {
            for (bool won = false; !won && winners == 0;) { // all may fail at the same time: then none holds it
                won = lock.tryLock(Wait(0ms), 10s);
                winners += won ? 1 : 0;
            }
            ++tried;
            while (tried < 10) {
                std::this_thread::yield();
            }
            std::error_code ec;
            lock.unlock(ec);
        });
    }
    threads.clear();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(lockedNow(), 0U);
}

TEST_F(MultiLocks, WaiterGetsItWhenTheHolderEndsIt)
{
    lock.lock();
    auto waiter = other.start([&] {
        elsewhere.lock();
        return elsewhere.unlock();
    });
    EXPECT_EQ(waiter.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

TEST_F(MultiLocks, MembersMayBeOnSeveralServers)
{
    const MultiLock everywhere(locksOn(3));
    everywhere.lock();
    EXPECT_EQ(lockedOn(3), 3U);
    EXPECT_FALSE(other.run([&] { return everywhere.tryLock(); }));
    EXPECT_FALSE(other.run([&] { return everywhere.tryLock(); }));
    EXPECT_EQ(everywhere.unlock(), Unlocked::released);
    EXPECT_EQ(lockedOn(3), 0U);
}

TEST_F(MultiLocks, MembersMayBeOfAnyKind)
{
    const MultiLock mixed(
        {client.getLock(names[0]), client.getSpinLock(names[1]), client.getNonReentrantLock(names[2])});
    const std::scoped_lock held(mixed);
    EXPECT_EQ(lockedNow(), 3U);
}

TEST_F(MultiLocks, OneHeldMemberLeavesNoneOfTheOthersHeld)
{
    for (const auto& taken : names) {
        const auto alone = far.getLock(taken);
        alone.lock();
        EXPECT_FALSE(lock.tryLock());
        EXPECT_FALSE(lock.tryLock(300ms));
        EXPECT_TRUE(eventually([&] { return lockedNow() == 1; }));
        EXPECT_EQ(alone.unlock(), Unlocked::released);
    }
    EXPECT_TRUE(lock.tryLock());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(MultiLocks, WaiterHoldsNoMemberWhileItPauses)
{
    const auto taken = far.getLock(names[1]);
    const auto wanted = far.getLock(names[0]);
    taken.lock();
    std::promise<void> firstPause;
    const RetryPolicy onceASecond([&](std::uint32_t round, Random&) {
        if (round == 1) {
            firstPause.set_value();
        }
        return std::optional<RetryPolicy::Pause>(1s);
    });
    auto waiting =
        other.start([&] { return lock.tryLock(10s, 10s, onceASecond) && lock.unlock() == Unlocked::released; });
    firstPause.get_future().wait();
    EXPECT_TRUE(wanted.tryLock(700ms));
    EXPECT_EQ(wanted.unlock(), Unlocked::released);
    EXPECT_EQ(taken.unlock(), Unlocked::released);
    EXPECT_TRUE(waiting.get());
}

TEST_F(MultiLocks, WhatAPolicyThrowsEndsThatCallAndNothingIsHeld)
{
    const auto taken = far.getLock(names[1]);
    taken.lock();
    std::thread::id where;
    const RetryPolicy policy([&](std::uint32_t, Random&) -> std::optional<RetryPolicy::Pause> {
        where = std::this_thread::get_id();
        throw std::out_of_range("no pause");
    });
    try {
        (void)lock.tryLock(10s, 10s, policy);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Errc::invalidArgument);
        EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
    }
    EXPECT_EQ(where, std::this_thread::get_id()) << "a blocking call asks on its own thread";
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(10s, 10s, policy, ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    boost::system::error_code code;
    EXPECT_FALSE(lock.asyncTryLock(10s, 10s, policy, boost::asio::redirect_error(boost::asio::use_future, code)).get());
    EXPECT_EQ(code, Errc::invalidArgument);
    EXPECT_NE(where, std::this_thread::get_id());
    EXPECT_EQ(taken.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return lockedNow() == 0; }));
}

TEST_F(MultiLocks, ThoseWhoTakeTheSameLocksInOppositeOrdersBothFinish)
{
    const MultiLock backward({far.getLock(names[2]), far.getLock(names[1]), far.getLock(names[0])});
    std::atomic<int> inside{0};
    int rounds = 0;
    const auto work = [&](const MultiLock& each) {
        for (int i = 0; i < 10; ++i) {
            const std::scoped_lock held(each);
            EXPECT_EQ(++inside, 1);
            ++rounds; // guarded by all of them
            --inside;
        }
    };
    std::jthread second([&] { work(backward); });
    work(lock);
    second.join();
    EXPECT_EQ(rounds, 20);
}

TEST_F(MultiLocks, IsRenewedUntilItIsUnlocked)
{
    GroupGuard held(lock);
    std::this_thread::sleep_for(3 * config().watchdogTimeout / 2); // the test needs real time
    EXPECT_TRUE(held);
    EXPECT_EQ(held.heldMembers(), 3U);
    EXPECT_EQ(lockedNow(), 3U);
    EXPECT_EQ(held.release(), Unlocked::released);
}

TEST_F(MultiLocks, LosesEverythingWithOneMemberAndReleasesTheRest)
{
    GroupGuard held(lock, waitForever, keepRenewing);
    const auto stop = held.stopToken();
    ASSERT_TRUE(held);
    EXPECT_TRUE(client.getLock(names[1]).forceUnlock());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held);
    EXPECT_EQ(held.validFor(), 0ms);
    EXPECT_TRUE(held.stopToken(StopAt::atRisk).stop_requested());
    EXPECT_TRUE(eventually([&] { return lockedNow() == 0; })) << "the others are given back";
    EXPECT_EQ(held.release(), Unlocked::alreadyLost);
}

TEST_F(MultiLocks, FixedLeaseEndsByItself)
{
    lock.lock(100ms);
    const auto stop = lock.stopToken();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(lock.tryLock(5s)) << "a lost one may be taken anew";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    lock.lock(50ms);
    EXPECT_TRUE(eventually([&] { return lockedNow() == 0; })); // its members' leases are over too
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_THROW(lock.unlock(), LockError);
}

TEST_F(MultiLocks, TheLeaseCountsFromTheAttemptThatWon)
{
    const auto alone = far.getLock(names[1]);
    alone.lock(400ms);
    EXPECT_TRUE(lock.tryLock(10s, 500ms));
    EXPECT_GT(lock.validFor(), 300ms) << "though it waited nearly as long";
    EXPECT_NE(lock.unlock(), Unlocked::unconfirmed);
}

TEST_F(MultiLocks, HolderThatLocksAgainIsToldAtOnce)
{
    lock.lock();
    std::error_code ec;
    lock.lock(ec);
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_FALSE(lock.tryLock(1s, ec));
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(MultiLocks, UnlockBelongsToTheThreadThatLocked)
{
    lock.lock();
    std::error_code ec;
    other.run([&] { lock.unlock(ec); });
    EXPECT_EQ(ec, Errc::notHeld);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    lock.unlock(ec);
    EXPECT_EQ(ec, Errc::notHeld);
}

TEST_F(MultiLocks, HasTheNamesOfTheStandard)
{
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(elsewhere.try_lock());
    EXPECT_FALSE(elsewhere.try_lock_for(answered));
    EXPECT_FALSE(elsewhere.try_lock_until(std::chrono::steady_clock::now() + answered));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_TRUE(elsewhere.try_lock_for(5s));
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
    const std::unique_lock held(lock, std::defer_lock);
    EXPECT_FALSE(held.owns_lock());
}

TEST_F(MultiLocks, WaitEndsInTime)
{
    const GroupGuard held(elsewhere);
    const Stopwatch watch;
    EXPECT_FALSE(lock.tryLock(150ms));
    EXPECT_GE(watch.elapsed(), 150ms);
    EXPECT_LT(watch.elapsed(), 150ms + soon);
    EXPECT_FALSE(lock.tryLock(waitForever, keepRenewing, RetryPolicy::none())) << "its policy gives up";
}

TEST_F(MultiLocks, GuardMayBeMovedAndEndsOnce)
{
    GroupGuard empty;
    EXPECT_FALSE(empty);
    EXPECT_THROW(empty.release(), LockError);
    EXPECT_TRUE(empty.stopToken().stop_requested());
    GroupGuard held(lock);
    GroupGuard moved(std::move(held));
    EXPECT_TRUE(moved);
    other.run([&] { moved = GroupGuard(); });
    EXPECT_TRUE(eventually([&] { return lockedNow() == 0; }));
    EXPECT_TRUE(GroupGuard(lock, 5s, 5s));
}

TEST_F(MultiLocks, AsynchronousCallsGiveTheGuard)
{
    auto held = lock.asyncLock(asio::use_future).get();
    EXPECT_TRUE(held);
    EXPECT_FALSE(elsewhere.asyncTryLock(asio::use_future).get());
    EXPECT_FALSE(elsewhere.asyncTryLock(30ms, asio::use_future).get());
    auto waiter = elsewhere.asyncTryLock(20s, 5s, asio::use_future);
    EXPECT_EQ(held.asyncRelease(asio::use_future).get(), Unlocked::released);
    auto second = waiter.get();
    EXPECT_TRUE(second);
    EXPECT_EQ(second.release(), Unlocked::released);
    EXPECT_EQ(lockedNow(), 0U);
}

TEST_F(MultiLocks, CancelledWaiterHoldsNothing)
{
    const GroupGuard held(elsewhere);
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<error_code> got;
    lock.asyncLock(
        asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, [&](error_code ec, GroupGuard guard) {
                                         got = ec;
                                         EXPECT_FALSE(guard);
                                     })));
    asio::steady_timer timer(io, 50ms);
    timer.async_wait([&](error_code) { signal.emit(asio::cancellation_type::terminal); });
    io.run();
    EXPECT_EQ(got, asio::error::operation_aborted);
}

/// The grants may be on their way when the call is cancelled: whatever the moment, nothing stays behind.
TEST_F(MultiLocks, CancelledAtAnyMomentNothingStaysBehind)
{
    for (int round = 0; round < 100; ++round) {
        asio::io_context io;
        asio::cancellation_signal signal;
        bool told = false;
        lock.asyncLock(60s, asio::bind_cancellation_slot(
                                signal.slot(), asio::bind_executor(io, [&](error_code, GroupGuard) { told = true; })));
        asio::steady_timer timer(io, std::chrono::microseconds(10 * round));
        timer.async_wait([&](error_code) { signal.emit(asio::cancellation_type::total); });
        io.run();
        EXPECT_TRUE(told);
    }
    EXPECT_TRUE(elsewhere.tryLock(5s)) << "long before the lease is over";
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
}

TEST_F(MultiLocks, TheEndOfAMembersClientEndsTheWait)
{
    const GroupGuard held(elsewhere);
    std::optional<Client> own(std::in_place, config());
    const MultiLock mine(members(*own));
    auto async = mine.asyncLock(asio::use_future);
    auto blocking = other.start([&] {
        std::error_code ec;
        mine.lock(ec);
        return ec;
    });
    EXPECT_EQ(blocking.wait_for(30ms), std::future_status::timeout);
    own.reset();
    EXPECT_EQ(blocking.get(), Errc::shutdown);
    EXPECT_THROW((void)async.get(), boost::system::system_error);
    std::error_code ec;
    mine.lock(ec);
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_THROW((void)mine.asyncLock(asio::use_future).get(), boost::system::system_error);
}

TEST_F(MultiLocks, GuardMayOutliveItsClients)
{
    std::optional<Client> own(std::in_place, config());
    GroupGuard held(MultiLock(members(*own)));
    const auto stop = held.stopToken();
    own.reset();
    EXPECT_FALSE(held);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held.release(), Unlocked::alreadyLost);
}

TEST_F(MultiLocks, StopCallbackMayAskAndEndTheGuardButNotWait)
{
    GroupGuard held(lock, waitForever, 10s);
    GroupGuard second;
    std::promise<std::error_code> refused;
    std::optional<std::stop_callback<std::function<void()>>> onLoss(std::in_place, held.stopToken(), [&] {
        std::error_code ec;
        lock.lock(ec);
        EXPECT_EQ(held.validFor(), 0ms);
        held = GroupGuard();
        refused.set_value(ec);
    });
    EXPECT_TRUE(client.getLock(names[0]).forceUnlock());
    EXPECT_EQ(refused.get_future().get(), Errc::wouldDeadlock);
    onLoss.reset();
    EXPECT_TRUE(eventually([&] { return lockedNow() == 0; }));
}

TEST_F(MultiLocks, ForkedChildHoldsNothingAndItsCallsAreRefused)
{
    GroupGuard held(lock);
    const pid_t child = ::fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
        std::error_code ec;
        const bool nothing =
            !held && held.validFor() == 0ms && held.heldMembers() == 0 && !lock.isHeldByCurrentThread();
        const bool refused = !lock.tryLock(ec) && ec == Errc::forked;
        const bool over = held.release(ec) == Unlocked::alreadyLost && !ec && held.stopToken().stop_requested();
        ::_exit(nothing && refused && over ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release(), Unlocked::released);
}

TEST_F(MultiLocks, WhatCannotBeAGroupIsRefusedWhenItIsMade)
{
    const auto expectRefused = [](std::vector<Lock> locks) {
        try {
            const MultiLock made(std::move(locks));
            ADD_FAILURE() << "not refused";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::invalidArgument);
        }
    };
    expectRefused({});
    expectRefused({client.getLock(names[0]), client.getLock(names[0])});
    expectRefused({client.getLock(names[0]), client.getSpinLock(names[0])});
    expectRefused({client.getLock(names[0]), client.getLock(names[1]), far.getLock(names[0])});
}

TEST_F(MultiLocks, BadLeaseIsRefusedBeforeAnythingIsSent)
{
    const auto before = scriptCalls();
    for (const Lease bad : {Lease(0ms), Lease(9ms), Lease(maxLease + 1ms)}) {
        std::error_code ec;
        lock.lock(bad, ec);
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_FALSE(lock.tryLock(1s, bad, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_THROW((void)lock.asyncLock(bad, asio::use_future).get(), boost::system::system_error);
    }
    EXPECT_EQ(scriptCalls(), before);
}

TEST_F(MultiLocks, OneOfOneIsALockLikeAnyOther)
{
    const MultiLock one(std::vector<Lock>{client.getLock(names[0])});
    const std::scoped_lock held(one);
    EXPECT_EQ(lockedNow(), 1U);
}

} // namespace
} // namespace redislock::test
