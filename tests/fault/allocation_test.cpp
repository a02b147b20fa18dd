// Memory that is refused, at every single allocation of a call.
//
// The whole program, including the library, uses the operator new of this file.
#include "fault/fault_test.hpp"
#include "support/certificates.hpp"
#include "support/test_server.hpp"

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <latch>
#include <new>

#if REDISLOCK_WITH_TLS
#include <openssl/crypto.h>
#endif

namespace {

/// Which allocation of this thread fails: 0 the next one, negative none.
thread_local long failingAllocation = -1;
/// The same, whatever the thread.
std::atomic<long> failingAnywhere{-1};
std::atomic<std::size_t> failedAllocations{0};

bool fails() noexcept
{
    const bool fails = (failingAllocation >= 0 && failingAllocation-- == 0) ||
                       (failingAnywhere.load(std::memory_order_relaxed) >= 0 && failingAnywhere.fetch_sub(1) == 0);
    failedAllocations += fails ? 1 : 0;
    return fails;
}

} // namespace

void* operator new(std::size_t size)
{
    void* memory = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

// The standard's algorithms allocate with this form, and free with the other.
void* operator new(std::size_t size, const std::nothrow_t& /*nothrow*/) noexcept
try {
    return operator new(size);
} catch (const std::bad_alloc&) {
    return nullptr;
}

// If GCC inlines these two functions, but not operator new, it reports a mismatch.
[[gnu::noinline]] void operator delete(void* memory) noexcept
{
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept
{
    std::free(memory);
}

#if REDISLOCK_WITH_TLS

namespace {

/// OpenSSL allocates a thousand small pieces for a connection; one in 151 of a thread counts.
bool failsInOpenssl() noexcept
{
    thread_local unsigned pieces = 0;
    return ++pieces % 151 == 0 && fails();
}

void* opensslMalloc(std::size_t size, const char* /*file*/, int /*line*/)
{
    return failsInOpenssl() ? nullptr : std::malloc(size);
}

void* opensslRealloc(void* memory, std::size_t size, const char* /*file*/, int /*line*/)
{
    return failsInOpenssl() ? nullptr : std::realloc(memory, size);
}

void opensslFree(void* memory, const char* /*file*/, int /*line*/)
{
    std::free(memory);
}

/// Before OpenSSL has allocated anything.
const bool opensslIsRefusedToo = ::CRYPTO_set_mem_functions(opensslMalloc, opensslRealloc, opensslFree) == 1;

} // namespace

#endif

namespace redislock::test {
namespace {

class RefusedMemory : public FaultTest {
protected:
    explicit RefusedMemory(testing::RedisServerOptions options = {}) : FaultTest(std::move(options)) {}

    static constexpr auto lease = 1s;

    /// Calls a function once for each of its allocations, which then fails, and once more without a failure; checks the
    /// lock after each call.
    template <class Function>
    void forEachAllocation(Function function)
    {
        bool failed = true;
        for (long which = 0; failed; ++which) {
            SCOPED_TRACE(which);
            const auto before = failedAllocations.load();
            try {
                failingAllocation = which;
                function();
            } catch (const std::bad_alloc&) {
            }
            failingAllocation = -1;
            failed = failedAllocations > before;
            ASSERT_LT(which, 500);
            std::error_code ec;
            while (lock().holdCount() > 0) { // a hold that could not be ended still exists
                (void)lock().unlock(ec);
            }
            EXPECT_EQ(lock().validFor(), 0ms);
            ASSERT_TRUE(eventually([&] { return !redis.exists(name); }, lease + slack)) << "left beyond its lease";
        }
        expectFault(failedAllocations > 0, "refused memory");
    }
};

TEST_F(RefusedMemory, AnywhereInAnAcquireLeavesNoHoldBehind)
{
    client().connect();
    forEachAllocation([this] {
        std::error_code ec;
        if (lock().tryLock(5s, lease, ec)) {
            EXPECT_EQ(lock().holdCount(), 1U);
            EXPECT_EQ(countInRedis(), "1");
        }
    });
}

TEST_F(RefusedMemory, AnywhereInANestedAcquireLeavesTheCountExact)
{
    client().connect();
    forEachAllocation([this] {
        const long armed = std::exchange(failingAllocation, -1);
        lock().lock(lease);
        failingAllocation = armed;
        std::error_code ec;
        const bool nested = lock().tryLock(5s, lease, ec);
        failingAllocation = -1;
        EXPECT_EQ(lock().holdCount(), nested ? 2U : 1U);
        EXPECT_TRUE(eventually([&] { return countInRedis() == (nested ? "2" : "1"); }));
    });
}

TEST_F(RefusedMemory, AnywhereInAnUnlockEndsTheHoldOrLeavesIt)
{
    client().connect();
    forEachAllocation([this] {
        const long armed = std::exchange(failingAllocation, -1);
        lock().lock(lease);
        failingAllocation = armed;
        const auto how = lock().unlock();
        EXPECT_EQ(how, Unlocked::released);
    });
}

TEST_F(RefusedMemory, AnywhereInAnUnlockForWhichAnotherThreadWaitsLetsThatIn)
{
    client().connect();
    forEachAllocation([this] {
        const long armed = std::exchange(failingAllocation, -1);
        lock().lock(lease);
        std::promise<void> begins;
        auto waiter = std::async(std::launch::async, [&begins, own = lock()] {
            begins.set_value();
            std::error_code ec;
            const bool held = own.tryLock(20s, lease, ec);
            return held && own.unlock(ec) == Unlocked::released;
        });
        begins.get_future().wait();
        std::this_thread::sleep_for(5ms); // until it waits; if not yet, the next round does
        failingAllocation = armed;
        std::exception_ptr failed;
        try {
            (void)lock().unlock();
        } catch (const std::bad_alloc&) {
            failed = std::current_exception();
        }
        failingAllocation = -1;
        EXPECT_TRUE(waiter.get());
        if (failed) {
            std::rethrow_exception(failed);
        }
    });
}

TEST_F(RefusedMemory, AnywhereInAGuardsLifeLeavesNoHoldBehind)
{
    client().connect();
    forEachAllocation([this] {
        const LockGuard guard(lock(), Lease(lease));
        EXPECT_TRUE(guard);
    });
}

TEST_F(RefusedMemory, AnywhereInAClientsFirstCallIsNoCrash)
{
    config.observer = nullptr;
    forEachAllocation([this] {
        const Client fresh(config);
        std::error_code ec;
        const RedisLock first = fresh.getLock(name);
        if (first.tryLock(5s, lease, ec)) {
            failingAllocation = -1;
            EXPECT_EQ(first.unlock(), Unlocked::released);
        }
    });
}

/// Many clients: each is refused a different allocation, once, on its own thread, where no caller would see an
/// exception.
class RefusedMemoryOfClients : public RefusedMemory {
protected:
    static constexpr long most = 25; ///< more allocations than any of them makes in these tests

    RefusedMemoryOfClients()
    {
        config.observer = nullptr; // an observer would be called there, and may not throw
        config.pollInterval = 300ms;
        for (long i = 0; i < most; ++i) {
            clients.emplace_back(config).connect();
        }
    }

    RedisLock lockOf(std::size_t which) { return clients[which].getLock(nameOf(which)); }
    std::string nameOf(std::size_t which) { return name + ":" + std::to_string(which); }
    /// Lets the i-th allocation of the i-th client's thread fail, counted from the return of this call at the latest.
    void arm()
    {
        std::latch armed(static_cast<std::ptrdiff_t>(clients.size()));
        for (std::size_t i = 0; i < clients.size(); ++i) {
            lockOf(i).asyncIsLocked([i, &armed](boost::system::error_code, bool) {
                failingAllocation = static_cast<long>(i);
                armed.count_down();
            });
        }
        armed.wait();
    }

    const std::size_t before = failedAllocations;
    std::deque<Client> clients;
};

TEST_F(RefusedMemoryOfClients, EndsNoRenewal)
{
    std::vector<LockGuard> guards;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        guards.emplace_back(lockOf(i));
    }
    arm();
    const auto isLost = [](const LockGuard& guard) { return !guard; };
    EXPECT_FALSE(eventually([&] { return std::ranges::any_of(guards, isLost); }, 2 * config.watchdogTimeout));
    for (std::size_t i = 0; i < clients.size(); ++i) {
        EXPECT_TRUE(guards[i]) << "no longer renewed, " << i;
    }
    expectFault(failedAllocations > before + 10, "refused memory on the clients' threads");
}

TEST_F(RefusedMemoryOfClients, KeepsNoWaiterFromTheLockAndNoReleaseFromRedis)
{
    for (std::size_t i = 0; i < clients.size(); ++i) {
        foreignLock(nameOf(i), 60s);
    }
    arm();
    std::vector<std::future<bool>> waiters;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        waiters.push_back(std::async(std::launch::async, [lock = lockOf(i)] {
            const LockGuard held(lock, 20s, 10s); // the answer to its release is read by the client's thread
            return static_cast<bool>(held);
        }));
    }
    EXPECT_TRUE(eventually([&] { return failedAllocations > before + 10; })) << "while they begin to listen";
    for (std::size_t i = 0; i < clients.size(); ++i) {
        redis.command({"DEL", nameOf(i)});
        redis.command({"PUBLISH", detail::lockChannel(nameOf(i)), "0"});
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
        EXPECT_TRUE(waiters[i].get()) << i;
        EXPECT_TRUE(eventually([&] { return !redis.exists(nameOf(i)); })) << i;
    }
    expectFault(failedAllocations > before + 10, "refused memory on the clients' threads");
}

/// Does nothing with what it is told.
class Deaf final : public Observer {};

/// Each public function, and connecting: its n-th allocation fails, for each n, on the calling thread or on any. A
/// failed call may throw std::bad_alloc or give a code. Nothing may end the process or hang; the lock is free at the
/// latest after its lease, and the client works.
class SweptMemory : public RefusedMemory {
protected:
    explicit SweptMemory(testing::RedisServerOptions options = {}) : RefusedMemory(std::move(options))
    {
        config.observer = std::make_shared<Deaf>();
        config.endpoint.port = server.port(); // the proxy lives in this process, and needs memory too
        config.watchdogTimeout = 1s;
        config.connectTimeout = 300ms;
        config.pollInterval = 100ms;
    }

    enum class Where { callingThread, anywhere };

    /// Calls a function on a thread of its own, again and again, each time with another allocation that fails. It must
    /// come back.
    void sweep(const char* what, const std::function<void()>& function, const std::function<void()>& afterwards)
    {
        for (const auto where : {Where::callingThread, Where::anywhere}) {
            bool failed = true;
            for (long which = 0; failed; ++which) {
                SCOPED_TRACE(what + (" " + std::to_string(which)) +
                             (where == Where::anywhere ? " on any thread" : " on the calling thread"));
                ASSERT_LT(which, 1000);
                const auto before = failedAllocations.load();
                std::packaged_task<void()> task([&] {
                    try {
                        where == Where::anywhere ? failingAnywhere.store(which) : (void)(failingAllocation = which);
                        function();
                    } catch (const std::bad_alloc&) {
                    } catch (const std::exception& e) { // an asynchronous call whose handler was destroyed, or a code
                        last_ = e.what();
                    }
                    failingAllocation = -1;
                });
                auto over = task.get_future();
                std::thread thread(std::move(task));
                if (over.wait_for(20s) != std::future_status::ready) {
                    failingAnywhere = -1;
                    ADD_FAILURE() << "hangs";
                    std::fprintf(stderr, "%s %ld %s hangs\n", what, which,
                                 where == Where::anywhere ? "on any thread" : "on the calling thread");
                    std::abort();
                }
                thread.join();
                failingAnywhere = -1;
                failed = failedAllocations > before;
                afterwards();
                ASSERT_FALSE(HasFailure());
            }
        }
        expectFault(failedAllocations > 0, "refused memory");
    }

    /// After a call that may have left the lock to its lease.
    void expectFreeAndWorking()
    {
        ASSERT_TRUE(eventually([&] { return !redis.exists(name); }, 3 * config.watchdogTimeout + slack))
            << "left beyond its lease " << redis.command({"HGETALL", name});
        std::error_code ec;
        const RedisLock probe = client().getLock("probe");
        ASSERT_TRUE(probe.tryLock(10s, 10s, ec)) << ec.message();
        ASSERT_EQ(probe.unlock(ec), Unlocked::released) << ec.message();
        std::promise<bool> locked;
        probe.asyncIsLocked([&locked](boost::system::error_code failed, bool is) { locked.set_value(!failed && is); });
        auto answer = locked.get_future();
        ASSERT_EQ(answer.wait_for(10s), std::future_status::ready) << "asynchronous calls are not answered";
        ASSERT_FALSE(answer.get());
    }

    void sweepOfLock(const char* what, const std::function<void()>& function)
    {
        client().connect();
        sweep(what, function, [this] { expectFreeAndWorking(); });
    }

    void sweepConnecting();

    static constexpr auto use = boost::asio::use_future;
    std::string last_;
};

TEST_F(SweptMemory, OfBlockingCallsAboutLocksLeavesNothingForEver)
{
    const auto kinds = std::vector<std::pair<const char*, std::function<Lock()>>>{
        {"RedisLock", [this] { return lock(); }},
        {"FairLock", [this] { return client().getFairLock(name); }},
        {"FencedLock", [this] { return client().getFencedLock(name); }},
        {"SpinLock", [this] { return client().getSpinLock(name); }},
        {"NonReentrantLock", [this] { return client().getNonReentrantLock(name); }},
        {"ReadLock", [this] { return client().getReadWriteLock(name).readLock(); }},
        {"WriteLock", [this] { return client().getReadWriteLock(name).writeLock(); }},
    };
    for (const auto& [kind, make] : kinds) {
        sweepOfLock(kind, [&make = make] {
            const Lock own = make();
            const LockGuard guard(own);
            (void)guard.stopToken(StopAt::lost);
            (void)guard.validFor();
        });
    }
    redis.command({"FLUSHALL"}); // the fencing token
    sweepOfLock("lock, unlock", [this] {
        const auto own = lock();
        const LockGuard wakesNobody;
        own.lock(lease);
        (void)own.stopToken(StopAt::atRisk);
        for (std::error_code ec; own.holdCount() > 0;) {
            try {
                (void)own.unlock(ec);
            } catch (const std::bad_alloc&) { // a hold that could not be ended still exists
            }
        }
    });
    sweepOfLock("questions", [this] {
        (void)lock().isLocked();
        (void)lock().remainingTimeToLive();
        (void)lock().explain();
        (void)lock().forceUnlock();
    });
    sweepOfLock("executeWithLock", [this] { (void)executeWithLock(lock(), 5s, lease, [] { return 1; }); });
    sweepOfLock("a wait in vain", [this] {
        const LockGuard held(lock(), Lease(lease));
        std::thread([this, armed = std::exchange(failingAllocation, -1)] {
            try {
                failingAllocation = armed;
                std::error_code ec;
                (void)lock().tryLock(20ms, lease, ec);
            } catch (const std::bad_alloc&) {
            }
        }).join();
    });
}

TEST_F(SweptMemory, OfAsynchronousCallsAboutLocksLeavesNothingForEver)
{
    sweepOfLock("asyncLock", [this] {
        LockGuard guard = lock().asyncLock(use).get();
        (void)guard.asyncRelease(use).get();
    });
    sweepOfLock("asyncLock, destroyed", [this] { (void)lock().asyncLock(use).get(); });
    sweepOfLock("asyncTryLock in vain", [this] {
        const LockGuard held(lock(), Lease(lease));
        (void)lock().asyncTryLock(20ms, lease, use).get();
    });
    sweepOfLock("questions", [this] {
        (void)lock().asyncIsLocked(use).get();
        (void)lock().asyncRemainingTimeToLive(use).get();
        (void)lock().asyncForceUnlock(use).get();
    });
    sweepOfLock("connect", [this] { client().asyncConnect(use).get(); });
    sweepOfLock("asyncExecuteWithLock", [this] {
        (void)asyncExecuteWithLock(
            lock(), 5s, lease, [] { return 1; }, use)
            .get();
    });
}

TEST_F(SweptMemory, OfGroupsLeavesNothingForEver)
{
    const auto group = [this] { return MultiLock({lock(), lockOf(name + ":2")}); };
    const auto free = [this, &group] {
        (void)group;
        expectFreeAndWorking();
        ASSERT_TRUE(eventually([&] { return !redis.exists(name + ":2"); }, 3 * config.watchdogTimeout + slack));
    };
    client().connect();
    sweep(
        "GroupGuard",
        [&] {
            GroupGuard guard(group());
            (void)guard.validFor();
            (void)guard.stopToken(StopAt::lost);
            (void)guard.release();
        },
        free);
    sweep(
        "asyncLock",
        [&] {
            GroupGuard guard = group().asyncLock(use).get();
            (void)guard.asyncRelease(use).get();
        },
        free);
}

TEST_F(SweptMemory, OfSemaphoresAndLatchesLeavesAClientThatWorks)
{
    const auto forget = [this] {
        redis.command({"DEL", "permits", "leased", "latch"});
        expectFreeAndWorking();
    };
    client().connect();
    const auto permits = [this] { return client().getSemaphore("permits"); };
    sweep(
        "Semaphore",
        [&] {
            (void)permits().trySetPermits(2);
            if (permits().tryAcquire(1, 1s)) {
                permits().release();
            }
        },
        forget);
    sweep(
        "Semaphore, asynchronous",
        [&] {
            (void)permits().asyncTrySetPermits(2, use).get();
            if (permits().asyncTryAcquire(1, Wait(1s), use).get()) {
                permits().asyncRelease(1, use).get();
            }
        },
        forget);
    sweep(
        "PermitExpirableSemaphore",
        [&] {
            const auto leased = client().getPermitExpirableSemaphore("leased");
            (void)leased.trySetPermits(2);
            const auto permit = leased.tryAcquire(1s, 1s);
        },
        forget);
    sweep(
        "CountDownLatch",
        [&] {
            const auto latch = client().getCountDownLatch("latch");
            (void)latch.trySetCount(1);
            latch.countDown();
            (void)latch.wait(1s);
        },
        forget);
    redis.command({"FLUSHALL"});
}

void SweptMemory::sweepConnecting()
{
    const auto afterwards = [this] {
        ASSERT_TRUE(eventually([&] { return !redis.exists(name); }, 3 * config.watchdogTimeout + slack));
    };
    const auto uses = [](const Client& fresh, const std::string& of) {
        const auto until = std::chrono::steady_clock::now() + 10s;
        std::error_code ec;
        const RedisLock first = fresh.getLock(of);
        while (!first.tryLock(1s, lease, ec)) { // the client comes to work, whatever failed
            ASSERT_LT(std::chrono::steady_clock::now(), until) << ec.message();
        }
        failingAllocation = -1;
        failingAnywhere = -1;
        EXPECT_EQ(first.unlock(), Unlocked::released);
    };
    const auto again = [](const std::function<void()>& function) {
        try {
            function();
        } catch (const std::bad_alloc&) {
            function();
        }
    };
    sweep(
        "the first call",
        [&] {
            const Client fresh(config);
            again([&] { uses(fresh, name); });
            again([&] { (void)fresh.getLock(name).asyncIsLocked(use).get(); });
        },
        afterwards);
    sweep(
        "a connection that is lost",
        [&] {
            const Client fresh(config);
            fresh.connect();
            redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
            again([&] { uses(fresh, name); });
        },
        afterwards);
    sweep(
        "shutdown",
        [&] {
            Client fresh(config);
            const LockGuard held(fresh.getLock(name), Lease(100ms));
            (void)fresh.shutdown(1s);
        },
        afterwards);
}

TEST_F(SweptMemory, OfConnectingIsNoEndOfIt)
{
    sweepConnecting();
}

#if REDISLOCK_WITH_TLS

class SweptMemoryOfTls : public SweptMemory {
protected:
    SweptMemoryOfTls() : SweptMemory({.tls = serverTls()}) { config.tls = testConfig(server).tls; }
};

TEST_F(SweptMemoryOfTls, AndOfOpensslWhileConnectingIsNoEndOfIt)
{
    ASSERT_TRUE(opensslIsRefusedToo);
    sweepConnecting();
}

#endif

} // namespace
} // namespace redislock::test
