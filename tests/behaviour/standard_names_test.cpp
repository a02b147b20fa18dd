// The lock used by the standard library.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/clock.hpp"

#include <chrono>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace redislock::test {
namespace {

class StandardNames : public BehaviourTest {};

INSTANTIATE_TEST_SUITE_P(, StandardNames,
                         driversWith({Feature::exclusion, Feature::standardNames, Feature::reentrance, Feature::waiting,
                                      Feature::leases}),
                         driverName);

TEST_P(StandardNames, LockGuardHoldsForItsScope)
{
    auto lock = make().plain();
    {
        const std::lock_guard held(lock);
        EXPECT_EQ(lock.holdCount(), 1U);
        const std::lock_guard nested(lock);
        EXPECT_EQ(lock.holdCount(), 2U);
    }
    EXPECT_FALSE(raw.exists(lock.name()));
}

TEST_P(StandardNames, ScopedLockTakesTwoInAnyOrderWithoutDeadlock)
{
    auto one = make().plain();
    auto two = make().plain();
    int inside = 0; // guarded by both
    {
        Worker first;
        Worker second;
        const auto work = [&](auto& a, auto& b) {
            for (int round = 0; round < 40; ++round) {
                const std::scoped_lock held(a, b);
                EXPECT_EQ(++inside, 1);
                EXPECT_TRUE(a.isHeldByCurrentThread() && b.isHeldByCurrentThread());
                --inside;
            }
        };
        auto forwards = first.start([&] { work(one, two); });
        auto backwards = second.start([&] { work(two, one); });
        forwards.get();
        backwards.get();
    }
    EXPECT_FALSE(raw.exists(one.name()));
    EXPECT_FALSE(raw.exists(two.name()));
}

TEST_P(StandardNames, StdTryLockLeavesNothingBehindWhenOneIsHeld)
{
    auto free = make().plain();
    auto held = make().plain();
    Worker other;
    other.run([&] { held.lock(); });
    EXPECT_EQ(std::try_lock(free, held), 1);
    EXPECT_FALSE(raw.exists(free.name()));
    EXPECT_EQ(other.run([&] { return held.unlock(); }), Unlocked::released);
    EXPECT_EQ(std::try_lock(free, held), -1);
    const std::scoped_lock adopted(std::adopt_lock, free, held);
}

TEST_P(StandardNames, UniqueLockWaitsUntilItsDeadlineAndNoLonger)
{
    auto lock = make().plain();
    Worker other;
    other.run([&] { lock.lock(); });
    const auto expectRefusedAfter = [&](auto wait, auto deadline) {
        const Stopwatch watch;
        const std::unique_lock held(lock, deadline);
        EXPECT_FALSE(held.owns_lock());
        EXPECT_GE(watch.elapsed(), wait);
        EXPECT_LT(watch.elapsed(), wait + soon);
    };
    expectRefusedAfter(200ms, 200ms);
    expectRefusedAfter(200ms, BootClock::now() + 200ms);
    expectRefusedAfter(190ms, std::chrono::steady_clock::now() + 200ms);
    expectRefusedAfter(190ms, std::chrono::system_clock::now() + 200ms);
    expectRefusedAfter(0ms, std::chrono::steady_clock::now() - 1h);
    expectRefusedAfter(0ms, std::chrono::system_clock::time_point::min());
    expectRefusedAfter(0ms, std::try_to_lock);

    std::unique_lock later(lock, std::defer_lock);
    auto release = other.start([&] { return lock.unlock(); });
    EXPECT_TRUE(later.try_lock_for(soon));
    EXPECT_EQ(release.get(), Unlocked::released);
    EXPECT_TRUE(later.owns_lock());
    EXPECT_EQ(lock.holdCount(), 1U);
    later.unlock();
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_TRUE(later.try_lock_until(std::chrono::system_clock::now() + 1h));
}

TEST_P(StandardNames, EndlessWaitsAreTaken)
{
    auto lock = make().plain();
    const std::unique_lock first(lock, std::chrono::hours::max());
    const std::unique_lock second(lock, std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
    const std::unique_lock third(lock, std::chrono::steady_clock::time_point::max());
    EXPECT_TRUE(first.owns_lock() && second.owns_lock() && third.owns_lock());
    EXPECT_EQ(lock.holdCount(), 3U);
}

TEST_P(StandardNames, LossInsideAScopeIsNoException)
{
    auto lock = make().plain();
    {
        const std::scoped_lock held(lock);
        raw.command({"DEL", lock.name()});
    } // the destructor unlocks at once, and finds the loss
    {
        const std::scoped_lock held(lock);
        raw.command({"DEL", lock.name()});
        ASSERT_TRUE(observer()->await("lost", lock.name())); // the renewal found the loss
    }
    {
        const std::scoped_lock held(lock);
        const std::scoped_lock nested(lock);
        raw.command({"DEL", lock.name()});
    } // unlocks for the second time
    const std::scoped_lock again(lock);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
}

TEST_P(StandardNames, ExceptionFreesTheLock)
{
    auto lock = make().plain();
    EXPECT_THROW(
        {
            const std::scoped_lock held(lock);
            throw std::runtime_error("sold out");
        },
        std::runtime_error);
    EXPECT_FALSE(raw.exists(lock.name()));
}

} // namespace
} // namespace redislock::test
