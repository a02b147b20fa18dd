// Memory that is refused: at every single allocation of a call, and again and again on the client's own thread.
//
// This program has its own operator new, which all of it uses, the library included.
#include "fault/fault_test.hpp"

#include <new>

namespace {

/// Which allocation of this thread fails: 0 the next one, negative none.
thread_local long failingAllocation = -1;
/// Every so-manieth allocation of this thread fails; 0: none does.
thread_local const std::atomic<unsigned>* failingRate = nullptr;
thread_local unsigned allocations = 0;
std::atomic<std::size_t> failedAllocations{0};

bool fails() noexcept
{
    const unsigned rate = failingRate != nullptr ? failingRate->load(std::memory_order_relaxed) : 0;
    const bool bySingle = failingAllocation >= 0 && failingAllocation-- == 0;
    const bool byRate = rate != 0 && ++allocations % rate == 0;
    failedAllocations += bySingle || byRate ? 1 : 0;
    return bySingle || byRate;
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

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept
{
    std::free(memory);
}

namespace redislock::test {
namespace {

class RefusedMemory : public FaultTest {
protected:
    static constexpr auto lease = 1s;

    /// Calls a function for each of its allocations, which fails, and once more when all succeed; looks at the lock after each.
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
            while (lock().holdCount() > 0) { // a hold that could not be ended is still one
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

TEST_F(RefusedMemory, AnywhereInAGuardsLifeLeavesNoHoldBehind)
{
    client().connect();
    forEachAllocation([this] {
        const LockGuard guard(lock(), lease);
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

/// Makes memory scarce on the thread that it is called on, and needs none itself.
class ScarceMemory final : public Observer {
public:
    std::atomic<unsigned> rate{0};
    std::atomic<int> renewals{0};

private:
    void acquired(const LockEvent&, std::chrono::nanoseconds, std::uint32_t) noexcept override { failingRate = &rate; }
    void renewed(const LockEvent&, std::chrono::nanoseconds) noexcept override { ++renewals; }
};

TEST_F(RefusedMemory, OnTheClientsOwnThreadIsOvercome)
{
    const auto scarce = std::make_shared<ScarceMemory>();
    config.watchdogTimeout = 1500ms;
    config.observer = scarce;
    const RedisLock held = lockOf("held");
    held.lock();
    ASSERT_TRUE(eventually([&] { return scarce->renewals > 0; }));
    const auto before = failedAllocations.load();
    scarce->rate = 3;
    const Stopwatch watch;
    while (watch.elapsed() < 1s || failedAllocations < before + 2) {
        std::error_code ec;
        const LockGuard guard(lock(), 100ms, 500ms, ec);
        if (guard) {
            EXPECT_EQ(countInRedis(), "1");
        }
        ASSERT_LT(watch.elapsed(), 10s) << "no memory was refused";
    }
    scarce->rate = 0;
    expectFault(failedAllocations >= before + 2, "refused memory");
    std::error_code ec;
    EXPECT_TRUE(lockOf("afterwards").tryLock(10s, ec)) << ec.message();
    const int renewals = scarce->renewals;
    EXPECT_TRUE(eventually([&] { return scarce->renewals >= renewals + 4; })) << "nothing is renewed any more";
    EXPECT_TRUE(lockOf("afterwards").isHeldByCurrentThread());
    EXPECT_EQ(lockOf("afterwards").unlock(), Unlocked::released);
    (void)held.unlock(); // which may have been lost
    EXPECT_TRUE(eventually([&] { return redis.command({"DBSIZE"}).integer() == 0; }));
}

} // namespace
} // namespace redislock::test
