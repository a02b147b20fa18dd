// The counting semaphore, on a real server.
#include "behaviour/counter_test.hpp"
#include "support/sanitizers.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>

namespace redislock::test {
namespace {

class SemaphoreTest : public CounterTest {
protected:
    std::string channel() { return "redisson_sc:{" + name + "}"; }
    bool somebodyWaits(std::int64_t clients = 1)
    {
        return eventually([&] { return listenersTo(channel()) == clients; });
    }
    /// The number of permits in Redis, read without the library.
    std::string free() { return raw.get(name).value_or("none"); }

    const std::string name = counterName();
    const Semaphore semaphore = client.getSemaphore(name);
    const Semaphore other = far.getSemaphore(name);
};

TEST_F(SemaphoreTest, IsMadeOnce)
{
    EXPECT_EQ(semaphore.name(), name);
    EXPECT_EQ(semaphore.availablePermits(), 0);
    EXPECT_TRUE(semaphore.trySetPermits(10));
    EXPECT_FALSE(other.trySetPermits(20));
    EXPECT_EQ(other.availablePermits(), 10);
    EXPECT_TRUE(semaphore.forceDelete());
    EXPECT_FALSE(semaphore.forceDelete());
    EXPECT_TRUE(other.trySetPermits(0));
    EXPECT_FALSE(semaphore.trySetPermits(1)) << "zero is not absent";
}

TEST_F(SemaphoreTest, MayEndByItself)
{
    EXPECT_TRUE(semaphore.trySetPermits(10, 200ms));
    EXPECT_TRUE(semaphore.tryAcquire());
    EXPECT_TRUE(eventually([&] { return !raw.exists(name); }));
    EXPECT_EQ(semaphore.availablePermits(), 0);
}

TEST_F(SemaphoreTest, GivesAllPermitsOrNone)
{
    semaphore.trySetPermits(3);
    EXPECT_FALSE(other.tryAcquire(4));
    EXPECT_TRUE(other.tryAcquire(2));
    EXPECT_FALSE(semaphore.tryAcquire(2));
    EXPECT_TRUE(semaphore.tryAcquire());
    EXPECT_EQ(free(), "0");
    semaphore.release(3);
    EXPECT_EQ(free(), "3");
}

TEST_F(SemaphoreTest, ZeroPermitsAreTakenAndReleasedWithoutAskingAnybody)
{
    const auto before = scriptCalls();
    EXPECT_TRUE(semaphore.tryAcquire(0));
    semaphore.acquire(0);
    semaphore.release(0);
    semaphore.addPermits(0);
    EXPECT_EQ(scriptCalls(), before);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(SemaphoreTest, NumbersThatCannotBeAreRefusedBeforeAnythingIsSent)
{
    const auto before = scriptCalls();
    for (const std::int64_t bad :
         {std::int64_t{-1}, std::int64_t{2147483648}, std::numeric_limits<std::int64_t>::min()}) {
        std::error_code ec;
        EXPECT_FALSE(semaphore.tryAcquire(bad, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
        semaphore.release(bad, ec);
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_FALSE(semaphore.trySetPermits(bad, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_THROW(semaphore.acquire(bad), LockError);
        EXPECT_THROW(semaphore.asyncAcquire(bad, boost::asio::use_future).get(), boost::system::system_error);
    }
    std::error_code ec;
    semaphore.trySetPermits(1, 0ms, ec);
    EXPECT_EQ(ec, Errc::invalidArgument);
    semaphore.addPermits(-2147483648, ec);
    EXPECT_EQ(ec, Errc::invalidArgument);
    EXPECT_EQ(scriptCalls(), before);
}

TEST_F(SemaphoreTest, ReleaseMakesPermitsAndTheSemaphoreItself)
{
    EXPECT_FALSE(semaphore.releaseIfExists(3));
    EXPECT_EQ(free(), "none");
    semaphore.release(3);
    EXPECT_TRUE(semaphore.releaseIfExists());
    EXPECT_EQ(free(), "4");
}

TEST_F(SemaphoreTest, PermitsAreAddedTakenAwayAndDrained)
{
    semaphore.trySetPermits(10);
    semaphore.addPermits(5);
    EXPECT_EQ(other.availablePermits(), 15);
    semaphore.addPermits(-20);
    EXPECT_EQ(other.availablePermits(), -5);
    EXPECT_EQ(semaphore.drainPermits(), 0);
    semaphore.release(8);
    EXPECT_EQ(semaphore.drainPermits(), 3);
    EXPECT_EQ(semaphore.drainPermits(), 0);
    EXPECT_EQ(free(), "0");
}

TEST_F(SemaphoreTest, WaiterIsToldWhenPermitsBecomeFree)
{
    semaphore.trySetPermits(0);
    auto waiter = inBackground([&] { semaphore.acquire(); });
    EXPECT_TRUE(somebodyWaits());
    other.release();
    EXPECT_TRUE(isDone(waiter)) << "it polls once a minute";
    EXPECT_EQ(free(), "0");
}

TEST_F(SemaphoreTest, WaiterForSeveralGetsThemWhenReleasesAddUp)
{
    semaphore.trySetPermits(0);
    auto waiter = inBackground([&] { return semaphore.tryAcquire(3, 20s); });
    EXPECT_TRUE(somebodyWaits());
    other.release();
    other.addPermits(1);
    EXPECT_FALSE(isDone(waiter, 50ms));
    other.release();
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
    EXPECT_EQ(free(), "0");
}

TEST_F(SemaphoreTest, OneReleaseOfManyWakesAllItCanServe)
{
    semaphore.trySetPermits(0);
    std::vector<std::future<bool>> waiters;
    for (int i = 0; i < 4; ++i) {
        waiters.push_back(inBackground([&, n = i % 2 + 1] { return semaphore.tryAcquire(n, 20s); }));
    }
    EXPECT_TRUE(somebodyWaits());
    std::this_thread::sleep_for(50ms); // no event says that the last waiter has asked for the second time
    other.release(6);
    for (auto& waiter : waiters) {
        EXPECT_TRUE(isDone(waiter));
        EXPECT_TRUE(waiter.get());
    }
    EXPECT_EQ(free(), "0");
}

TEST_F(SemaphoreTest, MessageWakesOnlyAsManyWaitersAsItCanServe)
{
    semaphore.trySetPermits(0);
    std::vector<std::future<bool>> waiters;
    for (int i = 0; i < 8; ++i) {
        waiters.push_back(inBackground([&] { return semaphore.tryAcquire(1, 20s); }));
    }
    EXPECT_TRUE(somebodyWaits());
    std::uint64_t settled = 0;
    EXPECT_TRUE(eventually([&] { // all have asked, and asked again after their subscriptions
        const auto calls = scriptCalls();
        std::this_thread::sleep_for(20ms);
        return std::exchange(settled, scriptCalls()) == calls && settled == calls;
    }));
    const auto before = scriptCalls();
    other.release();
    EXPECT_TRUE(eventually([&] { return free() == "0"; }));
    std::this_thread::sleep_for(50ms);
    EXPECT_LE(scriptCalls() - before, 3U) << "a release, and one that asks, perhaps another in its place";
    other.release(7);
    for (auto& waiter : waiters) {
        EXPECT_TRUE(isDone(waiter) && waiter.get());
    }
}

TEST_F(SemaphoreTest, WaiterForWhomAReleaseWasTooSmallLetsOneTryThatWantsLess)
{
    semaphore.trySetPermits(0);
    auto greedy = semaphore.asyncTryAcquire(2, 20s, boost::asio::use_future);
    EXPECT_TRUE(somebodyWaits());
    auto modest = inBackground([&] { return semaphore.tryAcquire(1, 20s); });
    std::this_thread::sleep_for(50ms); // until this one waits too
    raw.command({"SET", name, "1"});
    raw.command({"PUBLISH", channel(), "2"}); // another process took one of the two
    EXPECT_TRUE(isDone(modest)) << "it polls once a minute";
    EXPECT_TRUE(modest.get());
    other.release(2);
    EXPECT_TRUE(isDone(greedy) && greedy.get());
}

TEST_F(SemaphoreTest, WaitEndsInTime)
{
    semaphore.trySetPermits(1);
    const Stopwatch watch;
    EXPECT_FALSE(semaphore.tryAcquire(2, 200ms));
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 200ms + soon);
    EXPECT_EQ(free(), "1");
}

TEST_F(SemaphoreTest, WaiterThatWasToldAndLeavesLetsAnotherTry)
{
    semaphore.trySetPermits(0);
    boost::asio::io_context io; // the wait ends on this thread: a signal must not end two waits at once
    boost::asio::cancellation_signal cancel;
    std::optional<boost::system::error_code> end;
    semaphore.asyncAcquire(
        1, boost::asio::bind_cancellation_slot(
               cancel.slot(), boost::asio::bind_executor(io, [&](boost::system::error_code ec) { end = ec; })));
    EXPECT_TRUE(somebodyWaits());
    auto second = inBackground([&] { semaphore.acquire(); });
    std::this_thread::sleep_for(30ms);
    other.release();
    cancel.emit(boost::asio::cancellation_type::terminal);
    ASSERT_TRUE(eventually([&] {
        io.restart();
        io.poll();
        return end.has_value();
    }));
    if (!*end) {
        other.release(); // the waiter was granted before its cancellation
    } else {
        EXPECT_EQ(*end, boost::asio::error::operation_aborted);
    }
    EXPECT_TRUE(isDone(second));
    EXPECT_TRUE(eventually([&] { return free() == "0"; }));
}

TEST_F(SemaphoreTest, CancelledWaitTakesNothing)
{
    semaphore.trySetPermits(0);
    boost::asio::cancellation_signal cancel;
    auto waiter =
        semaphore.asyncAcquire(1, boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    EXPECT_TRUE(somebodyWaits());
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW(waiter.get(), boost::system::system_error);
    other.release();
    EXPECT_EQ(free(), "1");
}

TEST_F(SemaphoreTest, AsynchronousFunctionsDoTheSame)
{
    using boost::asio::use_future;
    EXPECT_TRUE(semaphore.asyncTrySetPermits(2, use_future).get());
    EXPECT_FALSE(semaphore.asyncTrySetPermits(2, 10s, use_future).get());
    semaphore.asyncAcquire(2, use_future).get();
    EXPECT_FALSE(semaphore.asyncTryAcquire(1, use_future).get());
    EXPECT_FALSE(semaphore.asyncTryAcquire(1, 50ms, use_future).get());
    auto waiter = semaphore.asyncTryAcquire(1, 20s, use_future);
    EXPECT_TRUE(somebodyWaits());
    other.asyncRelease(2, use_future).get();
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
    EXPECT_EQ(semaphore.asyncAvailablePermits(use_future).get(), 1);
    semaphore.asyncAddPermits(3, use_future).get();
    EXPECT_TRUE(semaphore.asyncReleaseIfExists(1, use_future).get());
    EXPECT_EQ(semaphore.asyncDrainPermits(use_future).get(), 5);
    EXPECT_TRUE(semaphore.asyncTryAcquire(0, use_future).get());
    EXPECT_TRUE(semaphore.asyncForceDelete(use_future).get());
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(SemaphoreTest, EndOfTheClientEndsItsWaiters)
{
    semaphore.trySetPermits(0);
    auto waiter = inBackground([&] {
        std::error_code ec;
        semaphore.acquire(1, ec);
        return ec;
    });
    auto asynchronous = semaphore.asyncTryAcquire(1, 20s, boost::asio::use_future);
    EXPECT_TRUE(somebodyWaits());
    client.shutdown();
    EXPECT_EQ(waiter.get(), Errc::shutdown);
    EXPECT_THROW(asynchronous.get(), boost::system::system_error);
    std::error_code ec;
    semaphore.release(1, ec);
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_EQ(free(), "0");
}

TEST_F(SemaphoreTest, OfAnotherTypeIsAnErrorAtOnce)
{
    raw.command({"RPUSH", name, "x"});
    std::error_code ec;
    EXPECT_FALSE(semaphore.tryAcquire(1, 20s, ec));
    EXPECT_EQ(ec, Errc::wrongType);
    semaphore.release(1, ec);
    EXPECT_EQ(ec, Errc::wrongType);
}

TEST_F(SemaphoreTest, KeepsTheAnswersOfAFewRequestsOnly)
{
    semaphore.trySetPermits(1);
    for (int i = 0; i < 200; ++i) {
        semaphore.acquire();
        semaphore.release();
    }
    EXPECT_LE(raw.command({"KEYS", "redislock_request:{" + name + "}:*"}).elements.size(), 4U);
}

TEST_F(SemaphoreTest, KeepsNoMoreAnswersForObjectsThatLiveForACallAndNoneBeyondTheClient)
{
    {
        const Client own(config());
        own.getSemaphore(name).trySetPermits(1);
        for (int i = 0; i < 100; ++i) {
            own.getSemaphore(name).acquire();
            own.getSemaphore(name).asyncRelease(1, boost::asio::use_future).get();
        }
        EXPECT_LE(raw.command({"KEYS", "redislock_request:{" + name + "}:*"}).elements.size(), 4U);
        for (int i = 0; i < 1100; ++i) { // more names than a client remembers
            own.getCountDownLatch(name + std::to_string(i)).trySetCount(1);
        }
        EXPECT_LE(raw.command({"KEYS", "redislock_request:{" + name + "*"}).elements.size(), 1030U);
        for (int i = 0; i < 1100; ++i) {
            raw.command({"DEL", name + std::to_string(i)});
        }
    }
    EXPECT_THAT(raw.command({"KEYS", "redislock_request:{" + name + "*"}).elements, ::testing::IsEmpty());
}

/// Takes and releases permits, and checks that never more are held than there are.
void contend(const Semaphore& semaphore, int rounds, std::int64_t permits, std::atomic<std::int64_t>& held,
             std::int64_t most)
{
    for (int i = 0; i < rounds; ++i) {
        semaphore.acquire(permits);
        EXPECT_LE(held.fetch_add(permits) + permits, most);
        held.fetch_sub(permits);
        semaphore.release(permits);
    }
}

TEST_F(SemaphoreTest, NeverGivesMoreThanThereAreToManyThreadsOfManyClients)
{
    for (const std::int64_t most : {1, 5}) {
        semaphore.forceDelete();
        semaphore.trySetPermits(most);
        std::atomic<std::int64_t> held{0};
        std::vector<std::future<void>> threads;
        for (int i = 0; i < 12; ++i) {
            threads.push_back(inBackground(
                [&, i] { contend(i % 2 == 0 ? semaphore : other, 30, most == 1 ? 1 : i % 3 + 1, held, most); }));
        }
        for (auto& thread : threads) {
            thread.get();
        }
        EXPECT_EQ(free(), std::to_string(most));
    }
}

// Under the sanitizers a forked child may neither start threads nor allocate at any time.
#if !defined(REDISLOCK_THREAD_SANITIZER) && !defined(REDISLOCK_ADDRESS_SANITIZER)
TEST_F(SemaphoreTest, IsSharedByProcesses)
{
    raw.command({"SET", name, "2"}); // without the library: no thread may run when the processes are forked
    std::vector<pid_t> children;
    for (int i = 0; i < 3; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                Client own(config());
                const auto mine = own.getSemaphore(name);
                for (int round = 0; round < 100; ++round) {
                    mine.acquire();
                    mine.release();
                }
                own.shutdown();
                ::_exit(0);
            } catch (...) {
                ::_exit(1);
            }
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(free(), "2");
}
#endif

} // namespace
} // namespace redislock::test
