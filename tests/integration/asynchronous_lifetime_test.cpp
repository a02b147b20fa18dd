// Clients, locks, guards and executors that end while asynchronous calls are under way, in every order, on any thread.
#include "behaviour/lock_test.hpp"
#include "support/yields.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using asio::use_future;
using boost::system::error_code;

/// Counts calls that began and handlers that were called; a handler ends the guard that it gets.
struct Calls {
    template <class T>
    auto handler()
    {
        ++begun;
        return [this](error_code, T) { ++ended; };
    }
    [[nodiscard]] bool haveEnded() const
    {
        return eventually([this] { return ended == begun; });
    }

    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
};

/// A client, a lock, a guard, and calls of every kind under way.
struct Scene {
    /// @param free a name that nobody holds. @param taken a name that another program holds.
    Scene(const Config& config, Calls& calls, const std::string& free, const std::string& taken)
        : client(config), lock(client->getLock(free))
    {
        guard = lock->asyncLock(400ms, use_future).get();
        auto releasing = client->getLock(free + "2").asyncLock(400ms, use_future).get();
        lock->asyncLock(400ms, calls.handler<LockGuard>());                  // waits behind the guard
        lock->asyncTryLock(30s, 400ms, calls.handler<LockGuard>());          // and behind that one
        client->getLock(taken).asyncLock(400ms, calls.handler<LockGuard>()); // asks, subscribes, sleeps
        lock->asyncIsLocked(calls.handler<bool>());
        lock->asyncRemainingTimeToLive(calls.handler<std::optional<milliseconds>>());
        client->getLock(free + "3").asyncForceUnlock(calls.handler<bool>());
        releasing.asyncRelease(calls.handler<Unlocked>());
    }

    /// Ends the parts in the given order.
    void end(const std::array<int, 3>& order)
    {
        for (const int part : order) {
            part == 0 ? client.reset() : part == 1 ? lock.reset() : guard.reset();
        }
    }

    std::optional<Client> client;
    std::optional<RedisLock> lock;
    std::optional<LockGuard> guard;
};

class AsyncLifetime : public LockTest {
protected:
    /// Runs a function in every order in which three things may end.
    template <class Function>
    static void inEveryOrder(Function function)
    {
        std::array<int, 3> order{0, 1, 2};
        do {
            SCOPED_TRACE(::testing::PrintToString(order));
            function(order);
        } while (std::next_permutation(order.begin(), order.end()));
    }

    /// A name that another program holds for a while.
    std::string takenName(milliseconds timeToLive)
    {
        auto name = uniqueName("taken");
        raw.command({"HSET", name, "stranger:1", "1"});
        raw.command({"PEXPIRE", name, std::to_string(timeToLive.count())});
        return name;
    }

    std::unique_ptr<Scene> scene(Calls& calls)
    {
        const auto free = uniqueName();
        clean(free + "2");
        return std::make_unique<Scene>(config(), calls, free, takenName(500ms));
    }

    /// Waits until the client's own thread has done all that it had to do before this call.
    static void awaitThread(const RedisLock& lock)
    {
        std::promise<void> reached;
        lock.asyncLock(Lease(0ms), [&](error_code, LockGuard) { reached.set_value(); });
        reached.get_future().wait();
    }
};

TEST_F(AsyncLifetime, PartsMayEndInAnyOrderWithCallsUnderWay)
{
    for (const bool asleep : {false, true}) {
        inEveryOrder([&](const auto& order) {
            Calls calls;
            const auto parts = scene(calls);
            if (asleep) {
                ASSERT_TRUE(eventually([&] { return channels().size() == 1; }));
            }
            parts->end(order);
            EXPECT_TRUE(calls.haveEnded()) << calls.ended << " of " << calls.begun;
        });
    }
}

TEST_F(AsyncLifetime, PartsMayEndInAHandlerOnTheClientsOwnThread)
{
    inEveryOrder([&](const auto& order) {
        Calls calls;
        const auto parts = scene(calls);
        std::promise<void> done;
        parts->lock->asyncIsLocked([&](error_code, bool) {
            parts->end(order);
            done.set_value();
        });
        done.get_future().wait();
        EXPECT_TRUE(calls.haveEnded()) << calls.ended << " of " << calls.begun;
    });
}

TEST_F(AsyncLifetime, PartsMayEndInAHandlerThatIsGivenAGuard)
{
    inEveryOrder([&](const auto& order) {
        Calls calls;
        const auto parts = scene(calls);
        asio::thread_pool pool(1);
        const auto own = uniqueName();
        parts->client->getLock(own).asyncLock(400ms, asio::bind_executor(pool, [&](error_code ec, LockGuard held) {
                                                  EXPECT_FALSE(ec);
                                                  EXPECT_TRUE(held);
                                                  parts->end(order);
                                                  EXPECT_FALSE(held) << "its client is gone";
                                              }));
        pool.join();
        EXPECT_TRUE(calls.haveEnded()) << calls.ended << " of " << calls.begun;
    });
}

TEST_F(AsyncLifetime, GuardsMayEndInHandlers)
{
    const Client client(config());
    const auto lock = client.getLock(uniqueName());
    const auto otherName = uniqueName();
    std::optional<LockGuard> other = client.getLock(otherName).asyncLock(60s, use_future).get();
    std::promise<void> done;
    lock.asyncLock(60s, [&](error_code, LockGuard held) { // on the client's own thread
        EXPECT_TRUE(held);
        other.reset();
        done.set_value();
    });
    done.get_future().wait();
    for (const auto& name : {lock.name(), otherName}) {
        EXPECT_TRUE(eventually([&] { return !raw.exists(name); })) << "long before its lease is over";
    }
}

TEST_F(AsyncLifetime, HandlersMayBeginTheNextCall)
{
    const Client client(config());
    const auto lock = client.getLock(uniqueName());
    int left = 200;
    std::promise<void> done;
    std::function<void(error_code, LockGuard)> next = [&](error_code ec, LockGuard held) {
        EXPECT_FALSE(ec);
        EXPECT_TRUE(held);
        if (--left == 0) {
            return done.set_value();
        }
        lock.asyncLock(60s, [&](error_code e, LockGuard g) { next(e, std::move(g)); }); // it waits for `held` to end
    };
    next({}, lock.asyncLock(60s, use_future).get());
    ASSERT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); })) << "the last guard ends behind its handler";
}

TEST_F(AsyncLifetime, WhatAHandlerThrowsComesOutOfItsOwnExecutorsContext)
{
    const Client client(config());
    const auto lock = client.getLock(uniqueName());
    asio::io_context io;
    lock.asyncLock(
        60s, asio::bind_executor(io, [](error_code, const LockGuard&) { throw std::runtime_error("the user's own"); }));
    EXPECT_THROW(io.run(), std::runtime_error);
    EXPECT_TRUE(lock.asyncTryLock(soon, 60s, use_future).get()) << "the guard of the handler that threw has ended";
}

/// As in any thread: nothing catches the exception.
TEST(AsyncLifetimeDeathTest, WhatAHandlerThrowsOnTheClientsThreadEndsTheProcess)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto runHandler = [] {
        const Client client("redis://127.0.0.1");
        client.getLock("any").asyncLock(0ms, [](error_code ec, const LockGuard&) { // an error that needs no server
            throw std::runtime_error("the user's own: " + ec.message());
        });
        std::promise<void>().get_future().wait_for(10s);
    };
    EXPECT_EXIT(runHandler(), ::testing::KilledBySignal(SIGABRT), "the user's own: ");
}

// --- The end of a client that nobody waits for
// --------------------------------------------------------------------------

TEST_F(AsyncLifetime, ShutdownTellsWaitersAndDrainsReleases)
{
    Client client(config());
    std::vector<std::string> names;
    std::vector<LockGuard> guards;
    for (int i = 0; i < 100; ++i) {
        names.push_back(uniqueName());
        guards.push_back(client.getLock(names.back()).asyncLock(60s, use_future).get());
    }
    const auto taken = takenName(60s);
    auto waiting = client.getLock(taken).asyncLock(use_future);
    guards.clear();
    EXPECT_TRUE(client.asyncShutdown(use_future).get());
    EXPECT_THROW((void)waiting.get(), boost::system::system_error);
    for (const auto& name : names) {
        EXPECT_FALSE(raw.exists(name));
    }
    std::error_code ec;
    client.getLock("any").lock(ec);
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_TRUE(client.asyncShutdown(use_future).get()) << "again: nothing to do";
    EXPECT_TRUE(client.shutdown()) << "nor for this one";
    raw.command({"DEL", taken});
}

TEST_F(AsyncLifetime, ShutdownIsToldOnTheHandlersExecutorAlsoOfAnUnusedClient)
{
    std::optional<Client> client(config());
    asio::io_context io;
    std::thread::id toldOn;
    client->asyncShutdown(asio::bind_executor(io, [&](error_code ec, bool answered) {
        EXPECT_FALSE(ec);
        EXPECT_TRUE(answered);
        client.reset();
        toldOn = std::this_thread::get_id();
    }));
    io.run();
    EXPECT_EQ(toldOn, std::this_thread::get_id());
}

TEST_F(AsyncLifetime, ClientMayEndBeforeItsShutdownAndInItsHandler)
{
    for (const bool before : {true, false}) {
        std::optional<Client> client(config());
        auto guard = client->getLock(uniqueName()).asyncLock(60s, use_future).get();
        guard = LockGuard();
        std::promise<void> told;
        client->asyncShutdown([&](error_code ec, bool answered) { // on the client's own thread
            EXPECT_FALSE(ec);
            EXPECT_TRUE(answered);
            if (!before) {
                client.reset();
            }
            told.set_value();
        });
        if (before) {
            client.reset();
        }
        told.get_future().wait();
    }
}

TEST_F(AsyncLifetime, NothingIsKeptOfAClientWhoseLastCallEndsAtAnyMomentOfItsShutdown)
{
    const auto name = uniqueName();
    bool more = true;
    for (int place = 0; more; ++place) {
        auto watched = config();
        watched.observer = std::make_shared<Observer>();
        const std::weak_ptr<Observer> client = watched.observer;
        {
            Client ending(std::move(watched));
            auto guard = ending.getLock(name).asyncLock(60s, use_future).get();
            guard.asyncRelease(asio::detached);
            std::future<bool> answered;
            {
                const Pause pause(place, 5ms);
                answered = ending.asyncShutdown(use_future);
                more = pause.happened();
            }
            ASSERT_TRUE(answered.get());
        }
        ASSERT_TRUE(eventually([&] { return client.expired(); })) << "place " << place;
    }
}

// --- Executors that end before they ran a handler
// ----------------------------------------------------------------------

TEST_F(AsyncLifetime, GuardInAHandlerThatNeverRunsIsReleased)
{
    const Client client(observed());
    const auto lock = client.getLock(uniqueName());
    const auto alive = std::make_shared<int>();
    {
        asio::io_context io;
        lock.asyncLock(60s, asio::bind_executor(io, [alive](error_code, const LockGuard&) { ADD_FAILURE(); }));
        ASSERT_TRUE(observer()->await("acquired", lock.name()));
        awaitThread(lock);
        io.stop();
        EXPECT_TRUE(raw.exists(lock.name()));
    }
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); })) << "long before its lease is over";
}

TEST_F(AsyncLifetime, HandlersOfAStoppedExecutorAreDestroyedWithIt)
{
    const auto alive = std::make_shared<int>();
    const auto taken = takenName(500ms);
    {
        asio::io_context io;
        Client client(config());
        const auto lock = client.getLock(uniqueName());
        const auto on = [&](auto handler) { return asio::bind_executor(io, std::move(handler)); };
        auto held = lock.asyncLock(400ms, use_future).get();
        lock.asyncLock(on([alive](error_code, const LockGuard&) { ADD_FAILURE(); }));
        client.getLock(taken).asyncLock(on([alive](error_code, const LockGuard&) { ADD_FAILURE(); }));
        ASSERT_TRUE(eventually([&] { return listeners(taken) == 1; }));
        lock.asyncIsLocked(on([alive](error_code, bool) { ADD_FAILURE(); }));
        held.asyncRelease(on([alive](error_code, Unlocked) { ADD_FAILURE(); }));
        io.stop();
        EXPECT_EQ(alive.use_count(), 5);
        client.shutdown();
    }
    EXPECT_TRUE(eventually([&] { return alive.use_count() == 1; }));
}

/// A signal may be emitted long after its call has ended, when all parts of the call are gone.
TEST_F(AsyncLifetime, CancellationAfterTheClientsEndTouchesNothing)
{
    asio::io_context io;
    std::array<asio::cancellation_signal, 4> signals;
    Calls calls;
    {
        const Client client(config());
        const auto lock = client.getLock(uniqueName());
        const auto bound = [&](std::size_t i, auto handler) {
            return asio::bind_cancellation_slot(signals.at(i).slot(), asio::bind_executor(io, std::move(handler)));
        };
        lock.asyncIsLocked(bound(0, calls.handler<bool>()));
        lock.asyncForceUnlock(bound(1, calls.handler<bool>()));
        lock.asyncRemainingTimeToLive(bound(2, calls.handler<std::optional<milliseconds>>()));
        lock.asyncTryLock(0ms, 400ms, bound(3, calls.handler<LockGuard>()));
        EXPECT_TRUE(client.getLock("behind them").asyncIsLocked(use_future).get() == false);
    }
    for (auto& signal : signals) {
        signal.emit(asio::cancellation_type::terminal);
    }
    io.run();
    EXPECT_EQ(calls.ended, calls.begun);
}

TEST_F(AsyncLifetime, CallsThatCrossAShutdownEndOnce)
{
    for (int round = 0; round < 200; ++round) {
        Calls calls;
        {
            Client client(config()); // whose thread starts with the first call, if it comes in time
            const auto lock = client.getLock(uniqueName());
            std::promise<void> go;
            std::thread crossing([&, started = go.get_future()] {
                started.wait();
                lock.asyncTryLock(0ms, 100ms, calls.handler<LockGuard>());
                lock.asyncIsLocked(calls.handler<bool>());
            });
            go.set_value();
            for (int i = 0; i < round * 50; ++i) { // from before the first call to after the last
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            client.shutdown();
            crossing.join();
            ASSERT_TRUE(calls.haveEnded()) << "round " << round;
        }
        ASSERT_EQ(calls.ended, calls.begun);
    }
}

} // namespace
} // namespace redislock::test
