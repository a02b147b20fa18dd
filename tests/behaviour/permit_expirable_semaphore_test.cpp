// The semaphore of leased permits, on a real server.
#include "behaviour/counter_test.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gtest/gtest.h>

#include <atomic>

namespace redislock::test {
namespace {

class PermitTest : public CounterTest {
protected:
    std::string channel() { return "redisson_sc:{" + name + "}"; }
    bool somebodyWaits()
    {
        return eventually([&] { return listenersTo(channel()) > 0; });
    }

    const std::string name = counterName();
    const PermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(name);
    const PermitExpirableSemaphore other = far.getPermitExpirableSemaphore(name);
};

TEST_F(PermitTest, WithoutASemaphoreThereIsNone)
{
    EXPECT_EQ(semaphore.name(), name);
    EXPECT_EQ(semaphore.availablePermits(), 0);
    EXPECT_EQ(semaphore.getPermits(), 0);
    EXPECT_FALSE(semaphore.tryAcquire(0ms, 10s));
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(PermitTest, PermitIsHeldByItsScope)
{
    semaphore.trySetPermits(2);
    {
        Permit permit = semaphore.acquire(10s);
        ASSERT_TRUE(permit);
        EXPECT_EQ(permit.id().size(), 32U);
        EXPECT_EQ(permit.id().find_first_not_of("0123456789abcdef"), std::string::npos);
        EXPECT_GT(permit.validFor(), 5s);
        EXPECT_LE(permit.validFor(), 10s - 102ms);
        EXPECT_EQ(other.availablePermits(), 1);
        EXPECT_EQ(other.acquiredPermits(), 1);
        EXPECT_EQ(other.getPermits(), 2);
        Permit moved = std::move(permit);
        EXPECT_FALSE(permit); // NOLINT: what is moved from is empty
        EXPECT_EQ(permit.id(), "");
        EXPECT_EQ(permit.validFor(), 0ms);
        EXPECT_TRUE(moved);
    }
    EXPECT_TRUE(eventually([&] { return other.availablePermits() == 2; }));
    EXPECT_EQ(other.acquiredPermits(), 0);
}

TEST_F(PermitTest, ReleaseWaitsForItsAnswerAndWorksOnce)
{
    semaphore.trySetPermits(1);
    Permit permit = semaphore.acquire(10s);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(semaphore.availablePermits(), 1);
    EXPECT_FALSE(permit);
    EXPECT_THROW(permit.release(), LockError);
    std::error_code ec;
    permit.release(ec);
    EXPECT_EQ(ec, Errc::notHeld);
}

TEST_F(PermitTest, MayBeReleasedByItsIdByAnybodyOnce)
{
    semaphore.trySetPermits(1);
    Permit permit = semaphore.acquire(10s);
    EXPECT_EQ(other.release(permit.id()), Unlocked::released);
    EXPECT_EQ(other.release(permit.id()), Unlocked::alreadyLost);
    EXPECT_EQ(permit.release(), Unlocked::alreadyLost);
    EXPECT_EQ(semaphore.availablePermits(), 1) << "released twice";
    for (const std::string bad : {"", "12", "ABCDEF00000000000000000000000000", "g0000000000000000000000000000000"}) {
        std::error_code ec;
        other.release(bad, ec);
        EXPECT_EQ(ec, Errc::invalidArgument) << bad;
    }
}

TEST_F(PermitTest, ExpiredPermitIsLostHereBeforeTheNextWaiterHasIt)
{
    semaphore.trySetPermits(1);
    Permit first = semaphore.acquire(300ms);
    const Stopwatch watch;
    bool overlapped = true;
    auto waiter = inBackground([&] {
        Permit second = other.tryAcquire(20s, 10s);
        overlapped = static_cast<bool>(first);
        EXPECT_TRUE(second);
        return second.release();
    });
    EXPECT_TRUE(isDone(waiter)) << "it polls once a minute";
    EXPECT_EQ(waiter.get(), Unlocked::released);
    EXPECT_FALSE(overlapped);
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_EQ(first.validFor(), 0ms);
    EXPECT_EQ(first.release(), Unlocked::alreadyLost);
    EXPECT_EQ(semaphore.availablePermits(), 1);
}

TEST_F(PermitTest, NonExpiringPermitStaysUntilItIsReleased)
{
    semaphore.trySetPermits(1);
    Permit permit = semaphore.acquire(nonExpiring);
    EXPECT_TRUE(permit);
    EXPECT_EQ(permit.validFor(), milliseconds::max());
    EXPECT_EQ(other.getLeaseTime(permit.id()), milliseconds::max());
    EXPECT_EQ(raw.command({"ZRANGE", "{" + name + "}:timeout", "0", "-1", "WITHSCORES"}).elements.at(1).text(),
              "922337203685477");
    EXPECT_FALSE(other.tryAcquire(50ms, 10s));
    EXPECT_EQ(permit.release(), Unlocked::released);
}

TEST_F(PermitTest, LeasesCanBeAskedForAndSetAnew)
{
    semaphore.trySetPermits(1);
    Permit permit = semaphore.acquire(10s);
    const std::string id = permit.id();
    EXPECT_GT(other.getLeaseTime(id).value(), 5s);
    EXPECT_TRUE(semaphore.updateLeaseTime(id, 60s));
    EXPECT_GT(other.getLeaseTime(id).value(), 50s);
    EXPECT_GT(permit.validFor(), 50s);
    EXPECT_TRUE(semaphore.updateLeaseTime(id, nonExpiring));
    EXPECT_EQ(permit.validFor(), milliseconds::max());
    EXPECT_TRUE(semaphore.updateLeaseTime(id, 100ms));
    EXPECT_LE(permit.validFor(), 100ms);
    EXPECT_TRUE(eventually([&] { return !other.getLeaseTime(id); }));
    EXPECT_FALSE(permit);
    EXPECT_FALSE(semaphore.updateLeaseTime(id, 10s));
    EXPECT_FALSE(permit) << "what is lost stays lost";
    EXPECT_EQ(semaphore.availablePermits(), 1);
}

TEST_F(PermitTest, BadLeasesAreRefusedBeforeAnythingIsSent)
{
    const auto before = scriptCalls();
    for (const Lease bad : {Lease(0ms), Lease(9ms), Lease(-1s), Lease(721h), keepRenewing}) {
        std::error_code ec;
        EXPECT_FALSE(semaphore.acquire(bad, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
        semaphore.updateLeaseTime(std::string(32, '0'), bad, ec);
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_THROW((void)semaphore.asyncAcquire(bad, boost::asio::use_future).get(), boost::system::system_error);
    }
    EXPECT_EQ(scriptCalls(), before);
}

TEST_F(PermitTest, PermitsAreSetAddedAndTakenAway)
{
    EXPECT_TRUE(semaphore.trySetPermits(1));
    EXPECT_FALSE(other.trySetPermits(5));
    Permit a = semaphore.acquire(10s);
    semaphore.setPermits(3);
    EXPECT_EQ(semaphore.availablePermits(), 2);
    Permit b = semaphore.acquire(10s);
    semaphore.setPermits(1);
    EXPECT_EQ(semaphore.availablePermits(), -1);
    EXPECT_EQ(semaphore.getPermits(), 1);
    EXPECT_FALSE(other.tryAcquire(0ms, 10s));
    semaphore.addPermits(2);
    EXPECT_EQ(semaphore.availablePermits(), 1);
    EXPECT_EQ(a.release(), Unlocked::released);
    EXPECT_EQ(b.release(), Unlocked::released);
    EXPECT_EQ(semaphore.getPermits(), 3);
    EXPECT_TRUE(semaphore.forceDelete());
    EXPECT_FALSE(raw.exists("{" + name + "}:timeout"));
}

TEST_F(PermitTest, SemaphoreThatEndsByItselfTakesItsPermitsAlong)
{
    EXPECT_TRUE(semaphore.trySetPermits(2, 200ms));
    Permit permit = semaphore.acquire(10s);
    EXPECT_TRUE(eventually([&] { return !raw.exists(name) && !raw.exists("{" + name + "}:timeout"); }));
    EXPECT_EQ(permit.release(), Unlocked::alreadyLost);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(PermitTest, WaitersAreToldAndTheirWaitsEndInTime)
{
    semaphore.trySetPermits(1);
    Permit permit = other.acquire(30s);
    const Stopwatch watch;
    EXPECT_FALSE(semaphore.tryAcquire(200ms, 10s));
    EXPECT_GE(watch.elapsed(), 200ms);
    auto waiter = inBackground([&] { return semaphore.acquire(10s); });
    EXPECT_TRUE(somebodyWaits());
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_F(PermitTest, TwoWaitersForTwoPermitsBothGetOne)
{
    semaphore.trySetPermits(2);
    Permit a = other.acquire(30s);
    Permit b = other.acquire(30s);
    auto first = inBackground([&] { return semaphore.acquire(10s); });
    auto second = semaphore.asyncAcquire(10s, boost::asio::use_future);
    EXPECT_TRUE(somebodyWaits());
    a = Permit();
    b = Permit();
    EXPECT_TRUE(isDone(first));
    EXPECT_TRUE(isDone(second));
    EXPECT_TRUE(first.get());
    EXPECT_TRUE(second.get());
}

TEST_F(PermitTest, AsynchronousFunctionsDoTheSame)
{
    using boost::asio::use_future;
    EXPECT_TRUE(semaphore.asyncTrySetPermits(2, use_future).get());
    Permit permit = semaphore.asyncAcquire(10s, use_future).get();
    EXPECT_TRUE(permit);
    EXPECT_EQ(semaphore.asyncAvailablePermits(use_future).get(), 1);
    EXPECT_EQ(semaphore.asyncAcquiredPermits(use_future).get(), 1);
    EXPECT_EQ(semaphore.asyncGetPermits(use_future).get(), 2);
    EXPECT_TRUE(semaphore.asyncUpdateLeaseTime(permit.id(), 60s, use_future).get());
    EXPECT_GT(semaphore.asyncGetLeaseTime(permit.id(), use_future).get().value(), 50s);
    const std::string id = permit.id();
    EXPECT_EQ(permit.asyncRelease(use_future).get(), Unlocked::released);
    EXPECT_EQ(other.asyncRelease(id, use_future).get(), Unlocked::alreadyLost);
    EXPECT_THROW((void)permit.asyncRelease(use_future).get(), boost::system::system_error);
    semaphore.asyncSetPermits(0, use_future).get();
    EXPECT_FALSE(semaphore.asyncTryAcquire(50ms, 10s, use_future).get());
    semaphore.asyncAddPermits(1, use_future).get();
    EXPECT_TRUE(semaphore.asyncTryAcquire(0ms, 10s, use_future).get());
    EXPECT_TRUE(semaphore.asyncForceDelete(use_future).get());
}

TEST_F(PermitTest, CancelledWaitTakesNothingAndTheClientsEndEndsWaits)
{
    semaphore.trySetPermits(1);
    Permit permit = other.acquire(30s);
    boost::asio::cancellation_signal cancel;
    auto cancelled =
        semaphore.asyncAcquire(10s, boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    auto ended = inBackground([&] {
        std::error_code ec;
        EXPECT_FALSE(semaphore.acquire(10s, ec));
        return ec;
    });
    EXPECT_TRUE(somebodyWaits());
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW((void)cancelled.get(), boost::system::system_error);
    client.shutdown();
    EXPECT_EQ(ended.get(), Errc::shutdown);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(other.availablePermits(), 1);
}

TEST_F(PermitTest, MayOutliveItsClientWhoseEndWaitsForItsRelease)
{
    other.trySetPermits(2);
    Permit kept;
    {
        Client own(config());
        const auto mine = own.getPermitExpirableSemaphore(name);
        kept = mine.acquire(30s);
        const Permit sent = mine.acquire(30s);
    }
    EXPECT_EQ(other.availablePermits(), 1);
    EXPECT_EQ(kept.release(), Unlocked::alreadyLost);
}

TEST_F(PermitTest, NeverMoreAreHeldThanThereAreByManyThreadsOfManyClients)
{
    constexpr int most = 3;
    semaphore.trySetPermits(most);
    std::atomic<int> held{0};
    std::vector<std::future<void>> threads;
    for (int i = 0; i < 10; ++i) {
        threads.push_back(inBackground([&, i] {
            for (int round = 0; round < 25; ++round) {
                Permit permit = (i % 2 == 0 ? semaphore : other).acquire(round % 5 == 0 ? nonExpiring : Lease(20s));
                EXPECT_LE(++held, most);
                --held;
                if (round % 2 == 0) {
                    EXPECT_EQ(permit.release(), Unlocked::released);
                }
            }
        }));
    }
    for (auto& thread : threads) {
        thread.get();
    }
    EXPECT_TRUE(eventually([&] { return semaphore.availablePermits() == most; }));
    EXPECT_EQ(semaphore.acquiredPermits(), 0);
}

} // namespace
} // namespace redislock::test
