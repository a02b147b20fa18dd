// A thread that holds the lock locks it again.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <functional>
#include <optional>
#include <string>

namespace redislock::test {
namespace {

class Reentrance : public BehaviourTest {};

INSTANTIATE_TEST_SUITE_P(, Reentrance, driversWith({Feature::reentrance}), driverName);

/// Re-entrance while others want the lock.
class ExclusiveReentrance : public Reentrance {};

INSTANTIATE_TEST_SUITE_P(, ExclusiveReentrance, driversWith({Feature::reentrance, Feature::exclusion}), driverName);

TEST_P(Reentrance, HoldCountFollowsTheNestingHereAndInRedis)
{
    const auto lock = make();
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(raw.exists(lock.name()));

    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(countOf(lock.name()), "2");
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(raw.exists(lock.name()));
}

TEST_P(Reentrance, EveryFormOfTryLockNestsToo)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(5s), true);
    EXPECT_EQ(lock.tryLock(), true);
    EXPECT_EQ(lock.tryLock(0ms, 5s), true);
    EXPECT_EQ(lock.tryLock(100ms), true);
    EXPECT_EQ(lock.tryLock(waitForever, 5s), true);
    EXPECT_EQ(lock.holdCount(), 5U);
    EXPECT_EQ(countOf(lock.name()), "5");
    for (int left = 4; left > 0; --left) {
        EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    }
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Reentrance, RecursiveFunctionMayLockInEveryCall)
{
    const auto lock = make();
    const std::function<void(std::uint32_t)> descend = [&](std::uint32_t depth) {
        ASSERT_EQ(lock.lock(), true);
        EXPECT_EQ(lock.holdCount(), depth);
        if (depth < 30) {
            descend(depth + 1);
        }
        EXPECT_EQ(lock.holdCount(), depth);
        ASSERT_EQ(lock.unlock(), depth == 1 ? Unlocked::released : Unlocked::stillHeld);
    };
    descend(1);
}

TEST_P(Reentrance, ObjectsOfOneNameAndClientAreOneLock)
{
    const auto name = uniqueName();
    const auto first = make(name);
    const auto second = make(name);
    const auto copy = first;
    EXPECT_EQ(first.lock(), true);
    EXPECT_EQ(second.lock(), true);
    EXPECT_EQ(copy.lock(), true);
    EXPECT_EQ(first.holdCount(), 3U);
    EXPECT_EQ(second.holdCount(), 3U);
    EXPECT_EQ(first.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(first.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(second.unlock(), Unlocked::released);
    EXPECT_EQ(copy.holdCount(), 0U);
}

TEST_P(Reentrance, HoldOutlivesTheObjectThatTookIt)
{
    const auto name = uniqueName();
    EXPECT_EQ(make(name).lock(), true);
    EXPECT_TRUE(make(name).isHeldByCurrentThread());
    EXPECT_EQ(make(name).unlock(), Unlocked::released);
}

TEST_P(ExclusiveReentrance, AnotherThreadIsRefusedUntilTheLastUnlock)
{
    const auto lock = make();
    Worker other;
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(other.run([&] { return lock.tryLock(); }), false);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(other.run([&] { return lock.tryLock(); }), false);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(other.run([&] { return lock.tryLock(); }), false);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(other.run([&] { return lock.tryLock(); }), true);
    EXPECT_EQ(lock.tryLock(), false);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(ExclusiveReentrance, NestedLockPassesThoseWhoWait)
{
    const auto lock = make();
    Worker other;
    EXPECT_EQ(lock.lock(), true);
    auto waiter = other.start([&] { return lock.lock(); });
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.tryLock(0ms), true);
    EXPECT_EQ(waiter.wait_for(0ms), std::future_status::timeout);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(waiter.wait_for(0ms), std::future_status::timeout);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Reentrance, NestedHoldsShareTheHolderAndEveryOutermostHoldHasItsOwn)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    const auto first = holderOf(lock.name());
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(holderOf(lock.name()), first);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_NE(holderOf(lock.name()), first);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Reentrance, NestedLockThatFindsTheHoldGoneIsToldSoAndAcquiresNothing)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(20s), true);
    EXPECT_EQ(lock.lock(20s), true);
    raw.command({"DEL", lock.name()});
    EXPECT_EQ(lock.lock(), Errc::lost);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
}

TEST_P(Reentrance, HoldThatAnotherTookOverIsLostForANestedTryLock)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(20s), true);
    raw.command({"DEL", lock.name()});
    heldByAStranger(lock.name(), std::nullopt);
    EXPECT_EQ(lock.tryLock(10s), Errc::lost);
    EXPECT_TRUE(holderOf(lock.name()).starts_with("stranger:1"));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_TRUE(holderOf(lock.name()).starts_with("stranger:1"));
    raw.command({"DEL", lock.name()});
}

TEST_P(Reentrance, RenewalServesTheNextThreadAfterNestedHoldsOfAnother)
{
    Config config = observed();
    config.watchdogTimeout = 300ms;
    const Client quick(config);
    const auto lock = make(quick, uniqueName());
    Worker other;
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::released);

    EXPECT_EQ(other.run([&] { return lock.lock(); }), true);
    const auto holder = holderOf(lock.name());
    const auto renewals = observer()->count("renewed", lock.name());
    EXPECT_TRUE(observer()->await("renewed", lock.name(), renewals + 10));
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

} // namespace
} // namespace redislock::test
