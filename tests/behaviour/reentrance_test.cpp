// A thread that holds the lock locks it again.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <functional>
#include <optional>
#include <string>

namespace redislock::test {
namespace {

template <class D>
class Reentrance : public BehaviourTest<D> {
};

TYPED_TEST_SUITE(Reentrance, DriversWith<Feature::reentrance>, DriverNames);

/// Beside others who want the lock.
template <class D>
class ExclusiveReentrance : public Reentrance<D> {
};

using ExclusiveReentranceDrivers = DriversWith<Feature::reentrance, Feature::exclusion>;
TYPED_TEST_SUITE(ExclusiveReentrance, ExclusiveReentranceDrivers, DriverNames);

TYPED_TEST(Reentrance, HoldCountFollowsTheNestingHereAndInRedis)
{
    const auto lock = this->make();
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(this->raw.exists(lock.name()));

    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(this->countOf(lock.name()), "2");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(this->raw.exists(lock.name()));
}

TYPED_TEST(Reentrance, EveryFormOfTryLockNestsToo)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 5s), true);
    EXPECT_EQ(TypeParam::tryLock(lock), true);
    EXPECT_EQ(TypeParam::tryLock(lock, 0ms, 5s), true);
    EXPECT_EQ(TypeParam::tryLock(lock, 100ms), true);
    EXPECT_EQ(TypeParam::tryLock(lock, waitForever, 5s), true);
    EXPECT_EQ(lock.holdCount(), 5U);
    EXPECT_EQ(this->countOf(lock.name()), "5");
    for (int left = 4; left > 0; --left) {
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    }
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Reentrance, RecursiveFunctionMayLockInEveryCall)
{
    const auto lock = this->make();
    const std::function<void(std::uint32_t)> descend = [&](std::uint32_t depth) {
        ASSERT_EQ(TypeParam::lock(lock), true);
        EXPECT_EQ(lock.holdCount(), depth);
        if (depth < 30) {
            descend(depth + 1);
        }
        EXPECT_EQ(lock.holdCount(), depth);
        ASSERT_EQ(TypeParam::unlock(lock), depth == 1 ? Unlocked::released : Unlocked::stillHeld);
    };
    descend(1);
}

TYPED_TEST(Reentrance, ObjectsOfOneNameAndClientAreOneLock)
{
    const auto name = this->uniqueName();
    const auto first = this->make(name);
    const auto second = this->make(name);
    const auto copy = first;
    EXPECT_EQ(TypeParam::lock(first), true);
    EXPECT_EQ(TypeParam::lock(second), true);
    EXPECT_EQ(TypeParam::lock(copy), true);
    EXPECT_EQ(first.holdCount(), 3U);
    EXPECT_EQ(second.holdCount(), 3U);
    EXPECT_EQ(TypeParam::unlock(first), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(first), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(second), Unlocked::released);
    EXPECT_EQ(copy.holdCount(), 0U);
}

TYPED_TEST(Reentrance, HoldOutlivesTheObjectThatTookIt)
{
    const auto name = this->uniqueName();
    EXPECT_EQ(TypeParam::lock(this->make(name)), true);
    EXPECT_TRUE(this->make(name).isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::unlock(this->make(name)), Unlocked::released);
}

TYPED_TEST(ExclusiveReentrance, AnotherThreadIsRefusedUntilTheLastUnlock)
{
    const auto lock = this->make();
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock); }), false);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock); }), false);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock); }), false);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock); }), true);
    EXPECT_EQ(TypeParam::tryLock(lock), false);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(ExclusiveReentrance, NestedLockPassesThoseWhoWait)
{
    const auto lock = this->make();
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock), true);
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::tryLock(lock, 0ms), true);
    EXPECT_EQ(waiter.wait_for(0ms), std::future_status::timeout);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(waiter.wait_for(0ms), std::future_status::timeout);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Reentrance, NestedHoldsShareTheHolderAndEveryOutermostHoldHasItsOwn)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto first = this->holderOf(lock.name());
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(this->holderOf(lock.name()), first);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_NE(this->holderOf(lock.name()), first);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Reentrance, NestedLockThatFindsTheHoldGoneIsToldSoAndAcquiresNothing)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 20s), true);
    EXPECT_EQ(TypeParam::lock(lock, 20s), true);
    this->raw.command({"DEL", lock.name()});
    EXPECT_EQ(TypeParam::lock(lock), Errc::lost);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
}

TYPED_TEST(Reentrance, HoldThatAnotherTookOverIsLostForANestedTryLock)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 20s), true);
    this->raw.command({"DEL", lock.name()});
    this->heldByAStranger(lock.name(), std::nullopt);
    EXPECT_EQ(TypeParam::tryLock(lock, 10s), Errc::lost);
    EXPECT_TRUE(this->holderOf(lock.name()).starts_with("stranger:1"));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_TRUE(this->holderOf(lock.name()).starts_with("stranger:1"));
    this->raw.command({"DEL", lock.name()});
}

TYPED_TEST(Reentrance, RenewalServesTheNextThreadAfterNestedHoldsOfAnother)
{
    Config config = this->observed();
    config.watchdogTimeout = 300ms;
    const Client quick(config);
    const auto lock = this->make(quick, this->uniqueName());
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);

    EXPECT_EQ(other.run([&] { return TypeParam::lock(lock); }), true);
    const auto holder = this->holderOf(lock.name());
    const auto renewals = this->observer()->count("renewed", lock.name());
    EXPECT_TRUE(this->observer()->await("renewed", lock.name(), renewals + 10));
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

} // namespace
} // namespace redislock::test
