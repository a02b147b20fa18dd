// Asynchronous work that ends when its lock is lost.
#include "behaviour/asynchronous_rig.hpp"
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using asio::use_awaitable;
using boost::system::error_code;

/// Sleeps for much longer than any test. @return the error with which the sleep ended.
asio::awaitable<error_code> work()
{
    asio::steady_timer timer(co_await asio::this_coro::executor, 60s);
    auto [ec] = co_await timer.async_wait(asio::as_tuple(use_awaitable));
    co_return ec;
}

class CancelOnLossTest : public LockTest {
protected:
    Client client{observed()};
    RedisLock lock = client.getLock(uniqueName());
};

TEST_F(CancelOnLossTest, CoroutineIsCancelledWhenTheLeaseIsOver)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        const auto held = co_await lock.asyncLock(100ms, use_awaitable);
        const auto ec = co_await asio::co_spawn(co_await asio::this_coro::executor, work(),
                                                cancelOnLoss(held, StopAt::lost, use_awaitable));
        EXPECT_EQ(ec, asio::error::operation_aborted);
        EXPECT_FALSE(held);
    });
}

TEST_F(CancelOnLossTest, AtRiskLeavesTimeToStop)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        const auto held = co_await lock.asyncLock(2s, use_awaitable);
        const auto ec = co_await asio::co_spawn(co_await asio::this_coro::executor, work(),
                                                cancelOnLoss(held, StopAt::atRisk, use_awaitable));
        EXPECT_EQ(ec, asio::error::operation_aborted);
        EXPECT_TRUE(held);
        EXPECT_TRUE(held.stopToken(StopAt::atRisk).stop_requested());
        EXPECT_FALSE(held.stopToken().stop_requested());
    });
}

TEST_F(CancelOnLossTest, LossThatARenewalFindsCancelsASingleOperation)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        const auto held = co_await lock.asyncLock(use_awaitable);
        raw.command({"DEL", lock.name()});
        asio::steady_timer timer(co_await asio::this_coro::executor, 60s);
        const auto [ec] = co_await timer.async_wait(cancelOnLoss(held, StopAt::lost, asio::as_tuple(use_awaitable)));
        EXPECT_EQ(ec, asio::error::operation_aborted);
        EXPECT_TRUE(observer()->await("lost", lock.name()));
    });
}

TEST_F(CancelOnLossTest, EmptyGuardCancelsAtOnce)
{
    runCoroutine([]() -> asio::awaitable<void> {
        const auto ec = co_await asio::co_spawn(co_await asio::this_coro::executor, work(),
                                                cancelOnLoss(LockGuard(), StopAt::lost, use_awaitable));
        EXPECT_EQ(ec, asio::error::operation_aborted);
    });
}

TEST_F(CancelOnLossTest, RegularEndCancelsNothing)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        auto held = co_await lock.asyncLock(use_awaitable);
        asio::steady_timer timer(co_await asio::this_coro::executor, 50ms);
        const auto stop = held.stopToken(StopAt::atRisk);
        auto waiting = timer.async_wait(cancelOnLoss(held, StopAt::atRisk, asio::as_tuple(asio::use_awaitable)));
        EXPECT_EQ(co_await held.asyncRelease(use_awaitable), Unlocked::released);
        const auto [ec] = co_await std::move(waiting);
        EXPECT_FALSE(ec);
        EXPECT_FALSE(stop.stop_requested());
    });
}

TEST_F(CancelOnLossTest, CancellationOfTheStarterStillArrives)
{
    runCoroutine([this]() -> asio::awaitable<void> {
        const auto held = co_await lock.asyncLock(use_awaitable);
        const auto executor = co_await asio::this_coro::executor;
        asio::steady_timer timer(executor, 20ms);
        const auto first =
            co_await (asio::co_spawn(executor, work(), cancelOnLoss(held, StopAt::lost, use_awaitable)) ||
                      timer.async_wait(use_awaitable));
        EXPECT_EQ(first.index(), 1U) << "the timer; the work was cancelled with it";
        EXPECT_TRUE(held);
    });
}

TEST_F(CancelOnLossTest, HandlerThatNeverRunsLeavesNothing)
{
    LockGuard held(lock, Lease(100ms));
    {
        asio::io_context io;
        asio::steady_timer timer(io, 60s);
        timer.async_wait(cancelOnLoss(held, StopAt::lost, asio::bind_executor(io, [](error_code) { ADD_FAILURE(); })));
    }
    EXPECT_TRUE(eventually([&] { return held.stopToken().stop_requested(); })); // and the loss calls nothing
}

/// An operation: begun by a function that gets the handler.
template <class Begin>
void startOperation(Begin begin, const std::stop_token& stop, asio::io_context& io, error_code& ended)
{
    auto handler = asio::bind_executor(io, [&ended](error_code ec) { ended = ec; });
    CancelOnLoss<decltype(handler)> token{stop, std::move(handler)};
    asio::async_initiate<decltype(token), void(error_code)>(std::move(begin), token);
}

TEST(CancelOnLoss, OperationThatEndedBeforeItsBeginningReturnedIsWatchedNoMore)
{
    asio::io_context io;
    std::stop_source loss;
    error_code ended = asio::error::would_block;
    std::shared_ptr<void> kept; // an operation may keep its handler for longer than it needs it
    startOperation(
        [&](auto handler) {
            auto own = std::make_shared<decltype(handler)>(std::move(handler));
            kept = own;
            std::thread([own] { std::move (*own)(error_code()); }).join();
        },
        loss.get_token(), io, ended);
    EXPECT_FALSE(ended);
    loss.request_stop();
    EXPECT_EQ(io.poll(), 0U) << "an operation that had ended was to be cancelled";
}

TEST(CancelOnLoss, LossWhileTheOperationBeginsCancelsItAfterThat)
{
    asio::io_context io;
    std::stop_source loss;
    error_code ended = asio::error::would_block;
    asio::steady_timer timer(io, 60s);
    startOperation(
        [&](auto handler) {
            loss.request_stop();
            timer.async_wait(std::move(handler));
        },
        loss.get_token(), io, ended);
    EXPECT_EQ(ended, asio::error::would_block);
    io.run();
    EXPECT_EQ(ended, asio::error::operation_aborted);
}

TEST_F(CancelOnLossTest, AtRiskIsToldToBlockingCodeToo)
{
    lock.lock(2s);
    const auto risk = lock.stopToken(StopAt::atRisk);
    const auto lost = lock.stopToken();
    EXPECT_FALSE(risk.stop_requested());
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(lost.stop_requested());
    EXPECT_TRUE(lock.stopToken(StopAt::atRisk).stop_requested()) << "asked for later";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
