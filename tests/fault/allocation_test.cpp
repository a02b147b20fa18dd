// Memory that is refused, at every single allocation of a call.
//
// The whole program, including the library, uses the operator new of this file.
#include "fault/fault_test.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <latch>
#include <new>

namespace {

/// Which allocation of this thread fails: 0 the next one, negative none.
thread_local long failingAllocation = -1;
std::atomic<std::size_t> failedAllocations{0};

bool fails() noexcept
{
    const bool fails = failingAllocation >= 0 && failingAllocation-- == 0;
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

namespace redislock::test {
namespace {

class RefusedMemory : public FaultTest {
protected:
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

} // namespace
} // namespace redislock::test
