// Functions and coroutines that run under a lock, without blocking a thread.
#include "behaviour/asynchronous_rig.hpp"
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using boost::system::error_code;

class AsyncExecuting : public LockTest {
protected:
    Client client{observed()};
    RedisLock lock = client.getLock(uniqueName());
    RedisLock elsewhere = Client(config()).getLock(lock.name());
};

TEST_F(AsyncExecuting, FunctionRunsUnderTheLockAndItsValueComesOut)
{
    const auto value = runCoroutine([this]() -> asio::awaitable<std::optional<int>> {
        const auto home = std::this_thread::get_id();
        co_return co_await asyncExecuteWithLock(
            lock, 1s, 10s,
            [&, home] {
                EXPECT_EQ(std::this_thread::get_id(), home);
                EXPECT_TRUE(raw.exists(lock.name()));
                return 42;
            },
            use_awaitable);
    });
    EXPECT_EQ(value, 42);
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
}

TEST_F(AsyncExecuting, FunctionThatGivesNothingTellsWhetherItRan)
{
    EXPECT_TRUE(asyncExecuteWithLock(
                    lock, 1s, keepRenewing, [] {}, asio::use_future)
                    .get());
}

TEST_F(AsyncExecuting, FunctionGetsTheStopTokenOfItsHold)
{
    const auto stoppable = asyncExecuteWithLock(
        lock, 1s, 10s, [](std::stop_token token) { return token.stop_possible() && !token.stop_requested(); },
        asio::use_future);
    EXPECT_EQ(const_cast<std::future<std::optional<bool>>&>(stoppable).get(), true);
}

TEST_F(AsyncExecuting, NothingRunsWhileOthersHoldTheLock)
{
    Client other(config());
    const LockGuard held(other.getLock(lock.name()));
    bool ran = false;
    EXPECT_EQ(asyncExecuteWithLock(
                  lock, 50ms, 10s, [&] { return ran = true; }, asio::use_future)
                  .get(),
              std::nullopt);
    EXPECT_FALSE(ran);
}

TEST_F(AsyncExecuting, CoroutineHoldsTheLockUntilItsEnd)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        const auto text = co_await asyncExecuteWithLock(
            lock, 1s, 10s,
            [this]() -> asio::awaitable<std::string> {
                asio::steady_timer timer(co_await asio::this_coro::executor, 20ms);
                co_await timer.async_wait(use_awaitable);
                EXPECT_TRUE(raw.exists(lock.name()));
                co_return "done";
            },
            use_awaitable);
        EXPECT_EQ(text, "done");
        EXPECT_TRUE(co_await asyncExecuteWithLock(
            lock, 1s, 10s, []() -> asio::awaitable<void> { co_return; }, use_awaitable));
    });
}

TEST_F(AsyncExecuting, CallbackGetsACodeAndTheValue)
{
    asio::io_context io;
    bool called = false;
    asyncExecuteWithLock(
        lock, 1s, 10s, [] { return std::make_unique<int>(7); },
        asio::bind_executor(io, [&](error_code ec, std::optional<std::unique_ptr<int>> value) {
            called = true;
            EXPECT_FALSE(ec);
            EXPECT_EQ(**value, 7);
        }));
    io.run();
    EXPECT_TRUE(called);
}

TEST_F(AsyncExecuting, OtherTokensGetACodeAsWell)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        auto [ec, value] = co_await asyncExecuteWithLock(
            lock, 1s, 10s, [] { return 1; }, asio::as_tuple(use_awaitable));
        EXPECT_FALSE(ec);
        EXPECT_EQ(value, 1);
        error_code code;
        EXPECT_EQ(co_await asyncExecuteWithLock(
                      lock, 1s, 10s, [] { return 2; }, asio::redirect_error(use_awaitable, code)),
                  2);
        EXPECT_FALSE(code);
        auto later = asyncExecuteWithLock(
            lock, 1s, 10s, [] { return 3; }, asio::deferred);
        EXPECT_EQ(co_await std::move(later)(use_awaitable), 3);
    });
}

TEST_F(AsyncExecuting, WhatTheFunctionThrowsComesOutAndTheLockIsFree)
{
    const auto fail = []() -> int { throw std::runtime_error("sold out"); };
    EXPECT_THROW((void)asyncExecuteWithLock(lock, 1s, 10s, fail, asio::use_future).get(), std::runtime_error);
    runCoroutine([&]() -> asio::awaitable<void> {
        try {
            (void)co_await asyncExecuteWithLock(lock, 1s, 10s, fail, use_awaitable);
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "sold out");
        }
        try {
            (void)co_await asyncExecuteWithLock(
                lock, 1s, 10s,
                []() -> asio::awaitable<int> {
                    throw std::logic_error("later");
                    co_return 1;
                },
                use_awaitable);
            ADD_FAILURE();
        } catch (const std::logic_error& e) {
            EXPECT_STREQ(e.what(), "later");
        }
        auto [ec, value] = co_await asyncExecuteWithLock(lock, 1s, 10s, fail, asio::as_tuple(use_awaitable));
        EXPECT_EQ(ec, Errc::functionThrew);
        EXPECT_EQ(value, std::nullopt);
        auto [code, none] = co_await asyncExecuteWithLock(
            lock, 1s, 10s, []() -> int { throw std::system_error(std::make_error_code(std::errc::no_link)); },
            asio::as_tuple(use_awaitable));
        EXPECT_EQ(code, std::errc::no_link);
        EXPECT_EQ(none, std::nullopt);
    });
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
}

TEST_F(AsyncExecuting, LeaseThatIsNoneIsACodeOfItsOwn)
{
    try {
        (void)asyncExecuteWithLock(
            lock, 1s, 1ms, [] { return 1; }, asio::use_future)
            .get();
        ADD_FAILURE();
    } catch (const boost::system::system_error& e) {
        EXPECT_EQ(e.code(), Errc::invalidArgument);
    }
}

TEST_F(AsyncExecuting, CancelledWhileItWaitsNothingRuns)
{
    Client other(config());
    const LockGuard held(other.getLock(lock.name()));
    asio::io_context io;
    asio::cancellation_signal cancel;
    error_code how;
    bool ran = false;
    asyncExecuteWithLock(
        lock, waitForever, 10s, [&] { ran = true; },
        asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(io, [&](error_code ec, bool didRun) {
                                         how = ec;
                                         EXPECT_FALSE(didRun);
                                     })));
    asio::steady_timer timer(io, 30ms);
    timer.async_wait([&](error_code) { cancel.emit(asio::cancellation_type::terminal); });
    io.run();
    EXPECT_EQ(how, asio::error::operation_aborted);
    EXPECT_FALSE(ran);
}

TEST_F(AsyncExecuting, CancelledWhileItRunsTheCoroutineIsCancelled)
{
    asio::io_context io;
    asio::cancellation_signal cancel;
    error_code how;
    asyncExecuteWithLock(
        lock, waitForever, 10s,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor, 60s);
            asio::post(io, [&] { cancel.emit(asio::cancellation_type::terminal); });
            co_await timer.async_wait(use_awaitable);
            ADD_FAILURE() << "was not cancelled";
        },
        asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(io, [&](error_code ec, bool) { how = ec; })));
    io.run();
    EXPECT_EQ(how, asio::error::operation_aborted);
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
}

TEST_F(AsyncExecuting, InAPoolTheCountIsExact)
{
    constexpr int threads = 4;
    constexpr int tasks = 100;
    asio::thread_pool pool(threads);
    int count = 0; // guarded by the lock alone
    std::vector<std::future<bool>> ends;
    for (int i = 0; i < tasks; ++i) {
        ends.push_back(asio::co_spawn(
            pool,
            [&]() -> asio::awaitable<bool> {
                co_return co_await asyncExecuteWithLock(
                    lock, waitForever, keepRenewing, [&] { ++count; }, use_awaitable);
            },
            asio::use_future));
    }
    for (auto& end : ends) {
        EXPECT_TRUE(end.get());
    }
    pool.join();
    EXPECT_EQ(count, tasks);
}

} // namespace
} // namespace redislock::test
