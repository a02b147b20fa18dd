/// @file
/// The common parts of the fault tests of asynchronous calls.
#pragma once

#include "fault/fault_test.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

namespace redislock::test {

namespace asio = boost::asio;
using boost::system::error_code;

/// The kinds of cancellation, all of which end every call.
inline constexpr std::array cancellations{asio::cancellation_type::terminal, asio::cancellation_type::partial,
                                          asio::cancellation_type::total};

/// An asynchronous call that the test's thread watches. The handler runs on that thread, in finish(), and so does the
/// cancellation.
template <class T>
class WatchedCall {
public:
    /// @param start is called with the completion token.
    template <class Start>
    explicit WatchedCall(Start start)
    {
        start(asio::bind_cancellation_slot(signal_.slot(), asio::bind_executor(io_, [this](error_code ec, T result) {
                                               ++ends_;
                                               error = ec;
                                               value = std::move(result);
                                           })));
    }
    WatchedCall(const WatchedCall&) = delete;
    WatchedCall& operator=(const WatchedCall&) = delete;
    /// An executor must outlive the handlers that will run on it.
    ~WatchedCall() { (void)finish(60s); }

    void cancel(asio::cancellation_type type = asio::cancellation_type::terminal) { signal_.emit(type); }

    /// Runs the handler when it is posted. @return whether the call has ended, and only once.
    [[nodiscard]] bool finish(std::chrono::milliseconds timeout = 10s)
    {
        io_.restart();
        io_.run_for(timeout);
        return ends_ == 1;
    }

    error_code error;
    T value{};

private:
    asio::io_context io_;
    asio::cancellation_signal signal_;
    int ends_ = 0;
};

/// A handler in which the client's own thread stands still, until this object is opened or ends.
class Gate {
public:
    /// Queues the handler behind the present work of the thread.
    explicit Gate(const RedisLock& lock)
    {
        // a call that is refused without I/O, so that this works whatever the state of the server
        lock.asyncLock(Lease(0ms),
                       [reached = std::move(arrived_), opened = opened_.get_future()](error_code, LockGuard) mutable {
                           reached.set_value();
                           opened.wait();
                       });
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate() { open(); }

    /// Waits until the thread stands still in the handler.
    void await() const { reached_.wait(); }
    void open()
    {
        if (!std::exchange(isOpen_, true)) {
            opened_.set_value();
        }
    }

private:
    std::promise<void> arrived_;
    std::future<void> reached_ = arrived_.get_future();
    std::promise<void> opened_;
    bool isOpen_ = false;
};

/// Makes the client's own thread stand still until this object ends.
class StandingThread {
public:
    explicit StandingThread(const RedisLock& lock) : gate_(lock) { gate_.await(); }

private:
    Gate gate_;
};

/// A fault test whose calls are asynchronous.
class AsynchronousFaultTest : public FaultTest {
protected:
    using FaultTest::FaultTest;

    /// Waits until the client's own thread has done all that it had to do before this call.
    void awaitThread() { const StandingThread reached(lock()); }

    /// A client that gives up early may have to pause before it connects again.
    void awaitServer()
    {
        EXPECT_TRUE(eventually([&] {
            WatchedCall<bool> asked([&](auto token) { lock().asyncIsLocked(std::move(token)); });
            return asked.finish() && !asked.error;
        }));
    }

    /// With the faults gone: expects that no key of this client and no subscription is left, that every answer belongs
    /// to its question, and that the same client can take and free the same lock, in both forms.
    void expectNothingLeft()
    {
        // The second question comes after all requests that the client sent because of answers before the first
        // question.
        for (int question = 0; question < 2; ++question) {
            lock().asyncIsLocked(asio::use_future).get();
        }
        EXPECT_TRUE(eventually([&] {
            const auto hash = redis.hash(name);
            return hash.empty() || hash.contains(foreigner);
        })) << "a hold that nobody has: "
            << redis.command({"HGETALL", name});
        EXPECT_TRUE(eventually([&] {
            return redis.command({"PUBSUB", "CHANNELS"}).elements.empty();
        })) << "a subscription that nobody needs";
        redis.command({"DEL", name});
        foreignLock("another", 100s);
        EXPECT_GT(lockOf("another").asyncRemainingTimeToLive(asio::use_future).get(), 90s);
        EXPECT_FALSE(lock().asyncIsLocked(asio::use_future).get());
        redis.command({"DEL", "another"});
        auto held = lock().asyncLock(10s, asio::use_future).get();
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(held.asyncRelease(asio::use_future).get(), Unlocked::released);
        expectFreshLockWorks();
    }

    /// Restores the state at the beginning of the test, with a new client.
    void reset()
    {
        endFaults();
        forgetClient();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"CONFIG", "RESETSTAT"});
        redis.command({"FLUSHALL"});
        loadScripts();
        proxy.clearRequestLog();
    }
};

} // namespace redislock::test
