// The features of asynchronous functions that blocking functions lack: completion tokens, executors, cancellation. The
// rest is in the suites that run over all forms.
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using asio::use_awaitable;
using asio::use_future;
using boost::system::error_code;

/// The error that a call ended with.
template <class T>
error_code errorOf(std::future<T>&& future)
{
    try {
        (void)future.get();
        return {};
    } catch (const boost::system::system_error& error) {
        return error.code();
    }
}

class AsynchronousCalls : public LockTest {
protected:
    /// Runs a coroutine to its end. @throws what it throws.
    template <class Function>
    void run(Function function)
    {
        asio::io_context io;
        auto end = asio::co_spawn(io, std::move(function), use_future);
        io.run();
        end.get();
    }

    Client client{observed()};
    Client far{[] {
        Config config = LockTest::config();
        config.watchdogTimeout = 30s;
        return config;
    }()};
    RedisLock lock = client.getLock(uniqueName());
    RedisLock elsewhere = far.getLock(lock.name());
};

TEST_F(AsynchronousCalls, CoroutineLocksAndReleases)
{
    run([this]() -> asio::awaitable<void> {
        auto held = co_await lock.asyncLock(use_awaitable);
        EXPECT_TRUE(held);
        EXPECT_GT(held.validFor(), 1ms);
        EXPECT_TRUE(co_await lock.asyncIsLocked(use_awaitable));
        EXPECT_GT(*co_await lock.asyncRemainingTimeToLive(use_awaitable), 1ms);
        EXPECT_EQ(co_await held.asyncRelease(use_awaitable), Unlocked::released);
        EXPECT_FALSE(held);
        EXPECT_FALSE(co_await lock.asyncIsLocked(use_awaitable));
        EXPECT_EQ(co_await lock.asyncRemainingTimeToLive(use_awaitable), std::nullopt);
    });
    EXPECT_FALSE(raw.exists(lock.name()));
}

TEST_F(AsynchronousCalls, CodeOfASuccessIsZeroByItsValueToo)
{
    const MultiLock both({lock, client.getLock("other")});
    run([&]() -> asio::awaitable<void> {
        auto [ec, held] = co_await lock.asyncLock(asio::as_tuple(use_awaitable));
        EXPECT_EQ(ec.value(), 0);
        const auto [released, how] = co_await held.asyncRelease(asio::as_tuple(use_awaitable));
        EXPECT_EQ(released.value(), 0);
        auto [grouped, group] = co_await both.asyncLock(asio::as_tuple(use_awaitable));
        EXPECT_EQ(grouped.value(), 0);
        const auto [asked, isHeld] = co_await lock.asyncIsLocked(asio::as_tuple(use_awaitable));
        EXPECT_EQ(asked.value(), 0);
    });
}

TEST_F(AsynchronousCalls, EveryTokenGivesTheGuard)
{
    EXPECT_TRUE(lock.asyncLock(use_future).get());

    std::promise<LockGuard> called;
    lock.asyncLock(10s, [&](error_code ec, LockGuard held) {
        EXPECT_FALSE(ec);
        called.set_value(std::move(held));
    });
    EXPECT_TRUE(called.get_future().get());

    auto later = lock.asyncTryLock(asio::deferred);
    EXPECT_TRUE(std::move(later)(use_future).get());

    run([this]() -> asio::awaitable<void> {
        error_code failed;
        EXPECT_TRUE(co_await lock.asyncLock(asio::redirect_error(use_awaitable, failed)));
        EXPECT_FALSE(failed);
        auto [ec, held] = co_await lock.asyncTryLock(100ms, 5s, asio::as_tuple(use_awaitable));
        EXPECT_FALSE(ec);
        EXPECT_TRUE(held);
    });
}

TEST_F(AsynchronousCalls, CoroutineNeedsNoToken)
{
    auto semaphore = client.getSemaphore(uniqueName());
    auto latch = client.getCountDownLatch(uniqueName());
    run([&]() -> asio::awaitable<void> {
        co_await client.asyncConnect();
        auto held = co_await lock.asyncLock();
        EXPECT_TRUE(held);
        EXPECT_TRUE(co_await lock.asyncIsLocked());
        EXPECT_FALSE(co_await elsewhere.asyncTryLock());
        EXPECT_EQ(co_await held.asyncRelease(), Unlocked::released);
        held = co_await lock.asyncLock(60s);
        EXPECT_GT(held.validFor(), 20s);
        held = LockGuard();
        EXPECT_TRUE(co_await lock.asyncTryLock(1h, 60s));

        EXPECT_EQ(co_await asyncExecuteWithLock(lock, 1h, 10s, [] { return 42; }), 42);
        EXPECT_TRUE(co_await semaphore.asyncTrySetPermits(2));
        co_await semaphore.asyncAcquire(1);
        EXPECT_EQ(co_await semaphore.asyncAvailablePermits(), 1);
        EXPECT_TRUE(co_await semaphore.asyncForceDelete());
        co_await latch.asyncWait();
        EXPECT_TRUE(co_await client.asyncShutdown());
    });
}

TEST_F(AsynchronousCalls, NothingBeginsBeforeItIsAwaited)
{
    {
        auto later = lock.asyncLock();
    }
    EXPECT_TRUE(lock.asyncTryLock(use_future).get());
    auto shutdown = client.asyncShutdown();
    EXPECT_TRUE(lock.asyncTryLock(1h, use_future).get());
    EXPECT_TRUE(std::move(shutdown)(use_future).get());
    EXPECT_EQ(errorOf(lock.asyncTryLock(use_future)), Errc::shutdown);
}

TEST_F(AsynchronousCalls, HandlerRunsOnItsExecutor)
{
    asio::io_context io;
    std::optional<std::thread::id> ranOn;
    lock.asyncLock(asio::bind_executor(io, [&](error_code, LockGuard held) {
        EXPECT_TRUE(held);
        ranOn = std::this_thread::get_id();
    }));
    io.run(); // has work until the handler ran
    EXPECT_EQ(ranOn, std::this_thread::get_id());
}

/// In a stop callback a blocking call would be refused.
TEST_F(AsynchronousCalls, CallsMayBeginInAStopCallback)
{
    const auto lost = client.getLock(uniqueName()).asyncLock(200ms, use_future).get();
    std::promise<LockGuard> got;
    const std::stop_callback callback(lost.stopToken(), [&] {
        lock.asyncLock(10s, [&](error_code ec, LockGuard held) {
            EXPECT_FALSE(ec);
            got.set_value(std::move(held));
        });
    });
    auto held = got.get_future().get();
    EXPECT_TRUE(held);
    EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
}

TEST_F(AsynchronousCalls, CoroutinesAndThreadsOfOneClientTakeTurns)
{
    std::atomic<int> inside{0};
    std::atomic<int> turns{0};
    const auto critical = [&] {
        EXPECT_EQ(++inside, 1);
        std::this_thread::yield();
        --inside;
        ++turns;
    };
    asio::thread_pool pool(2);
    for (int i = 0; i < 20; ++i) {
        asio::co_spawn(
            pool,
            [&, i]() -> asio::awaitable<void> {
                for (int round = 0; round < 10; ++round) {
                    auto held = co_await lock.asyncLock(use_awaitable);
                    critical();
                    if (i % 2 == 0) {
                        EXPECT_TRUE(isEnded(co_await held.asyncRelease(use_awaitable)));
                    }
                }
            },
            asio::detached);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 20; ++round) {
                const LockGuard held(lock);
                critical();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    pool.join();
    EXPECT_EQ(turns, 260);
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
}

TEST_F(AsynchronousCalls, SecondLockOfOneCoroutineWaitsForTheFirst)
{
    run([this]() -> asio::awaitable<void> {
        auto first = co_await lock.asyncLock(use_awaitable);
        auto second = co_await lock.asyncTryLock(50ms, use_awaitable);
        EXPECT_FALSE(second) << "not re-entrant";
        EXPECT_EQ(co_await first.asyncRelease(use_awaitable), Unlocked::released);
        second = co_await lock.asyncTryLock(use_awaitable);
        EXPECT_TRUE(second);
    });
}

TEST_F(AsynchronousCalls, CancelledWaiterHoldsNothingAndLeavesNothing)
{
    const LockGuard held(elsewhere);
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<error_code> got;
    lock.asyncLock(
        asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, [&](error_code ec, LockGuard guard) {
                                         got = ec;
                                         EXPECT_FALSE(guard);
                                     })));
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    signal.emit(asio::cancellation_type::terminal);
    io.run();
    EXPECT_EQ(got, asio::error::operation_aborted);
    EXPECT_TRUE(eventually([&] { return listeners(lock.name()) == 0; }));
}

TEST_F(AsynchronousCalls, RaceOfALockAndATimerCancelsTheLoser)
{
    const LockGuard held(elsewhere);
    run([this]() -> asio::awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 60ms);
        const auto result = co_await (lock.asyncLock(use_awaitable) || timer.async_wait(use_awaitable));
        EXPECT_EQ(result.index(), 1U);
    });
    EXPECT_TRUE(eventually([&] { return listeners(lock.name()) == 0; }));
}

/// The grant may be on its way when the call is cancelled: whatever the moment, nothing stays behind.
TEST_F(AsynchronousCalls, CancelledAtAnyMomentNothingStaysBehind)
{
    for (int round = 0; round < 200; ++round) {
        asio::io_context io;
        asio::cancellation_signal signal;
        std::optional<bool> granted;
        lock.asyncLock(60s, asio::bind_cancellation_slot(signal.slot(),
                                                         asio::bind_executor(io, [&](error_code ec, LockGuard guard) {
                                                             granted = !ec && guard;
                                                         })));
        asio::steady_timer timer(io, std::chrono::microseconds(5 * round));
        timer.async_wait([&](error_code) { signal.emit(asio::cancellation_type::total); });
        io.run();
        EXPECT_TRUE(granted.has_value());
    }
    EXPECT_TRUE(elsewhere.tryLock(5s)) << "long before the lease is over";
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
    EXPECT_EQ(listeners(lock.name()), 0);
}

/// The release of one hold carries the request of the next waiter, which is cancelled before it knows of its grant.
TEST_F(AsynchronousCalls, CancelledWhileItIsHandedTheLockNothingStaysBehind)
{
    // the server must know the script of the release, or the request behind it overtakes it
    EXPECT_EQ(lock.asyncLock(use_future).get().asyncRelease(use_future).get(), Unlocked::released);
    auto held = lock.asyncLock(60s, use_future).get();
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<error_code> got;
    lock.asyncLock(60s, asio::bind_cancellation_slot(
                            signal.slot(), asio::bind_executor(io, [&](error_code ec, LockGuard) { got = ec; })));
    std::promise<void> reached;
    std::promise<void> goOn;
    lock.asyncIsLocked([&](error_code, bool) { // on the client's own thread, which now stands still
        reached.set_value();
        goOn.get_future().wait();
    });
    reached.get_future().wait();
    signal.emit(asio::cancellation_type::terminal);
    held = LockGuard();
    goOn.set_value();
    io.run();
    EXPECT_EQ(got, asio::error::operation_aborted);
    EXPECT_TRUE(elsewhere.tryLock(5s)) << "long before the lease is over";
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
}

TEST_F(AsynchronousCalls, ShutdownEndsWhatWaits)
{
    const LockGuard held(elsewhere);
    std::optional<Client> own(std::in_place, config());
    const auto mine = own->getLock(lock.name());
    auto waiter = mine.asyncLock(use_future);
    auto second = mine.asyncLock(use_future);
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    own.reset();
    EXPECT_EQ(errorOf(std::move(waiter)), make_error_code(Errc::shutdown));
    EXPECT_EQ(errorOf(std::move(second)), make_error_code(Errc::shutdown));
    EXPECT_EQ(errorOf(mine.asyncLock(use_future)), make_error_code(Errc::shutdown));
}

TEST_F(AsynchronousCalls, GuardOfAThreadIsReleasedAsynchronously)
{
    LockGuard held(lock);
    EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(raw.exists(lock.name()));
}

} // namespace
} // namespace redislock::test
