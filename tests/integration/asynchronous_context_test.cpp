// Execution contexts that end before the Client, with calls of every kind under way.
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::use_future;
using boost::system::error_code;

/// A handler that must be destroyed, not called.
struct NeverCalled {
    std::shared_ptr<int> alive;

    template <class... Results>
    void operator()(Results&&... /*results*/) const
    {
        ADD_FAILURE() << "called";
    }
};

class AsyncContext : public LockTest {
protected:
    /// A server that answers nothing while this object lives: requests stay under way.
    struct Frozen {
        Frozen() { server().freeze(); }
        ~Frozen() { server().thaw(); }
    };

    /// Calls whose handlers wait on one executor, each with a name and a signal that cancels it.
    class Calls {
    public:
        explicit Calls(asio::any_io_executor executor) : executor_(std::move(executor)) {}

        /// The token of the next call.
        auto token(const char* name)
        {
            auto& call = calls_.emplace_back();
            call.name = name;
            auto alive = std::make_shared<int>();
            call.handler = alive;
            return asio::bind_cancellation_slot(call.signal.slot(),
                                                asio::bind_executor(executor_, NeverCalled{std::move(alive)}));
        }
        [[nodiscard]] std::string alive() const { return namesOf(false); }
        [[nodiscard]] std::string destroyed() const { return namesOf(true); }
        void forgetExecutor() { executor_ = nullptr; }
        void cancelAll()
        {
            for (auto& call : calls_) {
                call.signal.emit(asio::cancellation_type::terminal);
            }
        }

    private:
        struct Call {
            std::string name;
            std::weak_ptr<int> handler;
            asio::cancellation_signal signal;
        };

        [[nodiscard]] std::string namesOf(bool isDestroyed) const
        {
            std::string names;
            for (const auto& call : calls_) {
                if (call.handler.expired() == isDestroyed) {
                    names += call.name + " ";
                }
            }
            return names;
        }

        asio::any_io_executor executor_;
        std::deque<Call> calls_;
    };

    /// The objects for calls of every kind; the guards are held.
    struct Objects {
        explicit Objects(AsyncContext& test)
            : client(patient()),
              other(patient()),
              ending(patient()),
              lock(client.getLock(test.uniqueName())),
              group({client.getLock(test.uniqueName()), other.getLock(test.uniqueName())}),
              semaphore(client.getSemaphore(test.objectName("semaphore"))),
              permits(client.getPermitExpirableSemaphore(test.objectName("permits"))),
              latch(client.getCountDownLatch(test.objectName("latch")))
        {
            semaphore.trySetPermits(10);
            permits.trySetPermits(10);
            latch.trySetCount(5);
            held = client.getLock(test.uniqueName()).asyncLock(60s, use_future).get();
            watched = client.getLock(test.uniqueName()).asyncLock(60s, use_future).get();
            ending.getLock(test.uniqueName()).asyncLock(60s, use_future).get().release(); // so that it knows the script
            heldAtTheEnd = ending.getLock(test.uniqueName()).asyncLock(60s, use_future).get();
            heldGroup = MultiLock({client.getLock(test.uniqueName()), other.getLock(test.uniqueName())})
                            .asyncLock(60s, use_future)
                            .get();
            permit = permits.asyncAcquire(60s, use_future).get();
            otherPermit = permits.asyncAcquire(60s, use_future).get();
        }

        /// Begins one call of every kind; none of them can end while the server is frozen.
        void begin(AsyncContext& test, Calls& calls, milliseconds lease)
        {
            const auto name = [&test] { return test.uniqueName(); };
            lock.asyncLock(lease, calls.token("lock"));
            client.getFairLock(name()).asyncTryLock(60s, lease, calls.token("fair lock"));
            client.getReadWriteLock(name()).writeLock().asyncTryLock(oneAttempt, lease, calls.token("write lock"));
            client.getLock(name()).asyncTryLock(60s, lease, RetryPolicy::fixed(1s), calls.token("lock with retries"));
            lock.asyncForceUnlock(calls.token("force unlock"));
            lock.asyncIsLocked(calls.token("is locked"));
            lock.asyncRemainingTimeToLive(calls.token("time to live"));
            asyncExecuteWithLock(
                client.getLock(name()), 60s, lease, [] { ADD_FAILURE(); }, calls.token("execute"));
            asyncExecuteWithLock(
                client.getLock(name()), 60s, lease,
                []() -> asio::awaitable<void> {
                    ADD_FAILURE();
                    co_return;
                },
                calls.token("execute coroutine"));
            client.getLock(name()).asyncLock(lease, cancelOnLoss(watched, StopAt::lost, calls.token("cancel on loss")));
            held.asyncRelease(calls.token("release"));
            group.asyncLock(lease, calls.token("group"));
            group.asyncTryLock(60s, lease, calls.token("group with wait"));
            heldGroup.asyncRelease(calls.token("group release"));
            semaphore.asyncTrySetPermits(1, calls.token("semaphore set"));
            semaphore.asyncAcquire(1, calls.token("semaphore acquire"));
            semaphore.asyncTryAcquire(1, 60s, calls.token("semaphore try"));
            semaphore.asyncRelease(1, calls.token("semaphore release"));
            semaphore.asyncReleaseIfExists(1, calls.token("semaphore release if exists"));
            semaphore.asyncAvailablePermits(calls.token("semaphore get"));
            semaphore.asyncDrainPermits(calls.token("semaphore drain"));
            semaphore.asyncAddPermits(1, calls.token("semaphore add"));
            semaphore.asyncForceDelete(calls.token("semaphore delete"));
            permits.asyncAcquire(60s, calls.token("permit acquire"));
            permits.asyncTryAcquire(60s, 60s, calls.token("permit try"));
            permits.asyncRelease(otherPermit.id(), calls.token("permit release by id"));
            permits.asyncUpdateLeaseTime(otherPermit.id(), 60s, calls.token("permit update"));
            permits.asyncGetLeaseTime(otherPermit.id(), calls.token("permit lease"));
            permits.asyncAvailablePermits(calls.token("permits get"));
            permits.asyncTrySetPermits(1, calls.token("permits try set"));
            permits.asyncSetPermits(10, calls.token("permits set"));
            permits.asyncAddPermits(1, calls.token("permits add"));
            permits.asyncForceDelete(calls.token("permits delete"));
            permit.asyncRelease(calls.token("permit release"));
            latch.asyncTrySetCount(1, calls.token("latch set"));
            latch.asyncCountDown(calls.token("latch count"));
            latch.asyncGetCount(calls.token("latch get"));
            latch.asyncWait(calls.token("latch wait"));
            latch.asyncWait(60s, calls.token("latch wait with limit"));
            latch.asyncForceDelete(calls.token("latch delete"));
            client.asyncConnect(calls.token("connect"));
            heldAtTheEnd = LockGuard();
            ending.asyncShutdown(60s, calls.token("shutdown"));
        }

        Client client;
        Client other; // of a group's second member
        Client ending;
        RedisLock lock;
        MultiLock group;
        Semaphore semaphore;
        PermitExpirableSemaphore permits;
        CountDownLatch latch;
        LockGuard held;
        LockGuard watched;
        LockGuard heldAtTheEnd;
        GroupGuard heldGroup;
        Permit permit;
        Permit otherPermit;
    };

    /// The settings of clients that take a frozen server for a slow one, not for one that is gone.
    static Config patient()
    {
        Config config = LockTest::config();
        config.watchdogTimeout = 180s;
        config.commandTimeout = 30s;
        config.connectTimeout = 30s;
        config.unreachableAfter = 60s;
        return config;
    }

    /// The name of an object that stays in Redis.
    std::string objectName(std::string_view suffix)
    {
        static std::atomic<int> last{0};
        return "context:" + std::to_string(++last) + std::string(suffix);
    }

    /// @param end ends the context, which contains the work.
    template <class Context, class End>
    void endsWithCallsUnderWay(End end)
    {
        Objects objects(*this);
        std::optional<Context> context(std::in_place);
        Calls calls(context->get_executor());
        {
            const Frozen frozen;
            objects.begin(*this, calls, 60s);
            EXPECT_EQ(calls.destroyed(), "");
            calls.forgetExecutor();
            end(*context);
            context.reset();
            EXPECT_EQ(calls.alive(), "") << "their context is gone";
        }
        objects.watched.release();
        TearDown(); // long before the leases are over
        objects.client.shutdown();
        objects.other.shutdown();
        calls.cancelAll(); // long after everything that the signals could cancel
    }
};

TEST_F(AsyncContext, MayBeAnIoContextThatEndsAfterItsRun)
{
    endsWithCallsUnderWay<asio::io_context>([](asio::io_context& io) {
        asio::post(io, [&io] { io.stop(); });
        io.run();
    });
}

TEST_F(AsyncContext, MayBeAThreadPoolThatIsStoppedAndJoined)
{
    endsWithCallsUnderWay<asio::thread_pool>([](asio::thread_pool& pool) {
        pool.stop();
        pool.join();
    });
}

TEST_F(AsyncContext, MayEndWhileTheClientEnds)
{
    Objects objects(*this);
    std::optional<asio::io_context> io(std::in_place);
    Calls calls(io->get_executor());
    objects.begin(*this, calls, 400ms);
    objects.watched.release();
    calls.forgetExecutor();
    std::thread ending([&] { objects.client.shutdown(10s); });
    io.reset();
    EXPECT_EQ(calls.alive(), "");
    ending.join();
    objects.other.shutdown(10s);
}

/// In the order of destruction that most programs have: the object that was declared last is destroyed first.
TEST_F(AsyncContext, MayBeDeclaredAfterTheClientOfItsCoroutines)
{
    const auto mine = uniqueName();
    const auto taken = uniqueName();
    raw.command({"HSET", taken, "stranger:1", "1"});
    raw.command({"PEXPIRE", taken, "60000"});
    {
        const Client client(config());
        asio::io_context io;
        const auto waiter = [&]() -> asio::awaitable<void> {
            const LockGuard held = co_await client.getLock(mine).asyncLock(60s, use_awaitable);
            const LockGuard never = co_await client.getLock(taken).asyncLock(60s, use_awaitable);
            ADD_FAILURE() << never.validFor().count();
        };
        asio::co_spawn(io, waiter, asio::detached);
        EXPECT_TRUE(eventually([&] { return io.poll(), listeners(taken) == 1; }));
        EXPECT_TRUE(raw.exists(mine));
    }
    EXPECT_TRUE(eventually([&] { return !raw.exists(mine); })) << "the coroutine's guard has ended with its frame";
    raw.command({"DEL", taken});
}

TEST_F(AsyncContext, TakesItsWaitersAlong)
{
    const Client client(config());
    const auto lock = client.getLock(uniqueName());
    raw.command({"HSET", lock.name(), "stranger:1", "1"});
    raw.command({"PEXPIRE", lock.name(), "60000"});
    auto io = std::make_unique<asio::io_context>();
    Calls calls(io->get_executor());
    lock.asyncLock(60s, calls.token("first"));
    lock.asyncTryLock(60s, 60s, calls.token("second"));
    MultiLock({lock}).asyncLock(60s, calls.token("group"));
    calls.forgetExecutor();
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    io.reset();
    EXPECT_EQ(calls.alive(), "");
    EXPECT_TRUE(eventually([&] { return listeners(lock.name()) == 0; })) << "while the lock is still held";
    raw.command({"DEL", lock.name()});
    EXPECT_TRUE(lock.tryLock());
    lock.unlock();
}

TEST_F(AsyncContext, GivesBackWhatItsHandlersWereNotToldOf)
{
    Client client(config());
    auto io = std::make_unique<asio::io_context>();
    Calls calls(io->get_executor());
    const auto lock = client.getLock(uniqueName());
    const MultiLock group({client.getLock(uniqueName())});
    const auto semaphore = client.getSemaphore(objectName("semaphore"));
    const auto drained = client.getSemaphore(objectName("drained"));
    const auto permits = client.getPermitExpirableSemaphore(objectName("permits"));
    semaphore.trySetPermits(3);
    drained.trySetPermits(4);
    permits.trySetPermits(5);
    lock.asyncLock(60s, calls.token("lock"));
    group.asyncLock(60s, calls.token("group"));
    semaphore.asyncAcquire(1, calls.token("semaphore"));
    semaphore.asyncTryAcquire(1, 60s, calls.token("semaphore with wait"));
    drained.asyncDrainPermits(calls.token("drained"));
    permits.asyncAcquire(60s, calls.token("permit"));
    calls.forgetExecutor();
    ASSERT_TRUE(eventually([&] { // the answers, as the server sees it; the handlers are posted, or will be
        return lock.isLocked() && semaphore.availablePermits() == 1 && drained.availablePermits() == 0 &&
               permits.availablePermits() == 4;
    }));
    io->stop();
    EXPECT_EQ(calls.destroyed(), "");
    io.reset();
    EXPECT_EQ(calls.alive(), "");
    EXPECT_TRUE(eventually([&] { return semaphore.availablePermits() == 3; }));
    EXPECT_TRUE(eventually([&] { return drained.availablePermits() == 4; }));
    EXPECT_TRUE(eventually([&] { return permits.availablePermits() == 5; }));
    EXPECT_TRUE(eventually([&] { return !lock.isLocked(); }));
}

TEST_F(AsyncContext, PermitThatOutlivesItsClientKeepsNothingOfIt)
{
    std::weak_ptr<Observer> kept;
    {
        Permit permit;
        Config config = LockTest::config();
        kept = config.observer = std::make_shared<RecordingObserver>();
        const Client client(std::exchange(config, {}));
        const auto permits = client.getPermitExpirableSemaphore(objectName("permits"));
        permits.trySetPermits(1);
        permit = permits.acquire(60s);
    }
    EXPECT_TRUE(kept.expired());
}

/// The lock is lost, and the starter cancels, when there is nothing left to cancel.
TEST_F(AsyncContext, EndsWhatALossWouldCancel)
{
    const Client client(config());
    const LockGuard held(client.getLock(uniqueName()), Lease(300ms));
    const auto taken = uniqueName();
    raw.command({"HSET", taken, "stranger:1", "1"});
    raw.command({"PEXPIRE", taken, "60000"});
    auto io = std::make_unique<asio::io_context>();
    Calls calls(io->get_executor());
    client.getLock(taken).asyncLock(60s, cancelOnLoss(held, StopAt::lost, calls.token("lock")));
    auto timer = std::make_shared<asio::steady_timer>(*io, 60s);
    timer->async_wait(cancelOnLoss(held, StopAt::lost, asio::bind_executor(*io, [timer](error_code) {})));
    const std::weak_ptr<asio::steady_timer> waiting = std::exchange(timer, nullptr);
    calls.forgetExecutor();
    ASSERT_TRUE(eventually([&] { return listeners(taken) == 1; }));
    io.reset();
    EXPECT_EQ(calls.alive(), "");
    EXPECT_TRUE(waiting.expired());
    EXPECT_TRUE(eventually([&] { return held.stopToken().stop_requested(); }));
    calls.cancelAll();
    raw.command({"DEL", taken});
}

} // namespace
} // namespace redislock::test
