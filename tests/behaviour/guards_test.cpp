// LockGuard: scopes that hold a lock.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

template <class D>
class Guards : public BehaviourTest<D> {
protected:
    using Guard = typename D::Guard;

    bool becomesFree(const std::string& name)
    {
        return eventually([&] { return !this->raw.exists(name); });
    }
};

using GuardDrivers = DriversWith<Feature::guards, Feature::leases>;
TYPED_TEST_SUITE(Guards, GuardDrivers, DriverNames);

/// Guards inside other holds of their thread.
template <class D>
class NestedGuards : public Guards<D> {
};

using NestingDrivers = DriversWith<Feature::guards, Feature::leases, Feature::reentrance, Feature::threadHolds>;
TYPED_TEST_SUITE(NestedGuards, NestingDrivers, DriverNames);

/// Guards beside others who want the lock.
template <class D>
class ExclusiveGuards : public Guards<D> {
};

using ExclusiveGuardDrivers = DriversWith<Feature::guards, Feature::leases, Feature::exclusion>;
TYPED_TEST_SUITE(ExclusiveGuards, ExclusiveGuardDrivers, DriverNames);

TYPED_TEST(Guards, GuardHoldsForItsScope)
{
    const auto lock = this->make();
    {
        const auto held = must(TypeParam::guard(lock));
        EXPECT_TRUE(static_cast<bool>(held));
        EXPECT_EQ(this->countOf(lock.name()), "1");
        EXPECT_EQ(lock.isHeldByCurrentThread(), supports<TypeParam>(Feature::threadHolds));
        EXPECT_GT(held.validFor(), 0ms);
        EXPECT_FALSE(held.stopToken().stop_requested());
    }
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(this->becomesFree(lock.name()));
    EXPECT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_EQ(this->observer()->of("released").front().how, Unlocked::released);
}

TYPED_TEST(Guards, ReleaseWaitsForTheAnswer)
{
    const auto lock = this->make();
    auto held = must(TypeParam::guard(lock, 10s));
    EXPECT_EQ(TypeParam::release(held), Unlocked::released);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_EQ(held.validFor(), 0ms);
    EXPECT_TRUE(held.stopToken().stop_requested());
    EXPECT_EQ(TypeParam::release(held), Errc::notHeld);
}

TYPED_TEST(Guards, EmptyGuardHoldsNothing)
{
    typename TypeParam::Guard empty;
    EXPECT_FALSE(static_cast<bool>(empty));
    EXPECT_EQ(empty.validFor(), 0ms);
    EXPECT_TRUE(empty.stopToken().stop_requested());
    EXPECT_EQ(TypeParam::release(empty), Errc::notHeld);
}

TYPED_TEST(ExclusiveGuards, GuardIsEmptyWhenTheWaitIsOver)
{
    const auto lock = this->make();
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock), true);
    other.run([&] {
        for (const auto wait : {0ms, 100ms}) {
            const Stopwatch watch;
            auto held = must(TypeParam::guard(lock, wait, 10s));
            EXPECT_GE(watch.elapsed(), wait);
            EXPECT_FALSE(static_cast<bool>(held));
            EXPECT_EQ(TypeParam::release(held), Errc::notHeld);
        }
    });
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    auto held = must(TypeParam::guard(lock, 0ms, 10s));
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_GT(held.validFor(), 9s);
    EXPECT_EQ(TypeParam::release(held), Unlocked::released);
}

TYPED_TEST(Guards, GuardWithAFixedLeaseIsNotRenewedAndOneWithoutIs)
{
    const auto lock = this->make();
    const auto renewed = this->make();
    const auto fixedGuard = must(TypeParam::guard(lock, 300ms));
    const auto renewedGuard = must(TypeParam::guard(renewed, 0ms, keepRenewing));
    ASSERT_TRUE(this->observer()->await("renewed", renewed.name(), 3));
    EXPECT_FALSE(static_cast<bool>(fixedGuard));
    EXPECT_TRUE(static_cast<bool>(renewedGuard));
    EXPECT_EQ(this->observer()->count("renewed", lock.name()), 0U);
}

TYPED_TEST(Guards, MovingPassesTheHoldOn)
{
    const auto lock = this->make();
    auto first = must(TypeParam::guard(lock));
    auto second = std::move(first);
    EXPECT_FALSE(static_cast<bool>(first)); // NOLINT: documented
    EXPECT_EQ(TypeParam::release(first), Errc::notHeld);
    EXPECT_TRUE(static_cast<bool>(second));
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::release(second), Unlocked::released);
}

TYPED_TEST(Guards, AssigningEndsTheOwnHoldFirst)
{
    const auto one = this->make();
    const auto two = this->make();
    auto held = must(TypeParam::guard(one));
    held = must(TypeParam::guard(two));
    EXPECT_TRUE(this->becomesFree(one.name()));
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(this->countOf(two.name()), "1");
    held = typename TypeParam::Guard();
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_TRUE(this->becomesFree(two.name()));
}

TYPED_TEST(NestedGuards, AssigningANestedGuardToTheOuterOneKeepsTheLock)
{
    const auto lock = this->make();
    auto held = must(TypeParam::guard(lock));
    held = must(TypeParam::guard(lock));
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return this->countOf(lock.name()) == "1"; }));
    EXPECT_EQ(TypeParam::release(held), Unlocked::released);
}

TYPED_TEST(ExclusiveGuards, GuardMayBeEndedOnAnotherThread)
{
    const auto lock = this->make();
    Worker other;
    auto held = must(TypeParam::guard(lock));
    other.run([&, moved = std::move(held)]() mutable {
        EXPECT_TRUE(static_cast<bool>(moved));
        EXPECT_FALSE(lock.isHeldByCurrentThread()) << "until it ends, who made it counts as the holder";
        EXPECT_EQ(TypeParam::tryLock(lock), false);
        EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
        EXPECT_EQ(TypeParam::release(moved), Unlocked::released);
    });
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(this->raw.exists(lock.name()));
}

TYPED_TEST(NestedGuards, ThreadThatMadeAGuardStaysTheHolderUntilItIsEndedElsewhere)
{
    const auto lock = this->make();
    Worker other;
    auto outer = std::make_unique<typename TypeParam::Guard>(must(TypeParam::guard(lock)));
    auto ending = other.start([&, moved = std::move(outer)] { EXPECT_TRUE(static_cast<bool>(*moved)); });
    ending.get();
    other.run([] {}); // the task, and the guard in it, are gone now
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(this->becomesFree(lock.name()));
    // the same with a level of this thread inside
    auto again = must(TypeParam::guard(lock));
    EXPECT_EQ(TypeParam::lock(lock), true);
    other.run([&] { EXPECT_EQ(TypeParam::release(again), Unlocked::stillHeld); });
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedGuards, GuardsLevelIsNotForUnlock)
{
    const auto lock = this->make();
    auto held = must(TypeParam::guard(lock));
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(TypeParam::release(held), Unlocked::released);
}

TYPED_TEST(NestedGuards, NestedGuardsMayEndInAnyOrder)
{
    const auto lock = this->make();
    auto outer = must(TypeParam::guard(lock));
    auto middle = must(TypeParam::guard(lock, 10s));
    auto inner = must(TypeParam::guard(lock, 0ms, 10s));
    EXPECT_EQ(lock.holdCount(), 3U);
    EXPECT_EQ(TypeParam::release(outer), Unlocked::stillHeld);
    EXPECT_EQ(this->countOf(lock.name()), "2");
    EXPECT_EQ(TypeParam::release(inner), Unlocked::stillHeld);
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_TRUE(static_cast<bool>(middle));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(TypeParam::release(middle), Unlocked::released);
}

TYPED_TEST(NestedGuards, DestructorOfANestedGuardLowersTheCountAndNotMore)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 10s), true);
    {
        const auto nested = must(TypeParam::guard(lock, 60s));
        EXPECT_EQ(this->countOf(lock.name()), "2");
    }
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return this->countOf(lock.name()) == "1"; }));
    EXPECT_LE(lock.validFor(), 10s);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Guards, LostGuardSaysSoAndEndsQuietly)
{
    const auto lock = this->make();
    auto held = must(TypeParam::guard(lock, 300ms));
    const auto token = held.stopToken();
    EXPECT_FALSE(token.stop_requested());
    ASSERT_TRUE(eventually([&] { return !held; }));
    EXPECT_EQ(held.validFor(), 0ms);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(TypeParam::release(held), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::release(held), Errc::notHeld);
}

TYPED_TEST(ExclusiveGuards, LostGuardDoesNotTouchTheNextHolder)
{
    const auto lock = this->make();
    std::optional held = must(TypeParam::guard(lock, 200ms));
    ASSERT_TRUE(eventually([&] { return !*held && !this->raw.exists(lock.name()); }));
    Worker other;
    EXPECT_EQ(other.run([&] { return TypeParam::lock(lock); }), true);
    const auto holder = this->holderOf(lock.name());
    held.reset();
    EXPECT_EQ(TypeParam::tryLock(lock), false); // goes behind whatever the guard sent
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Guards, LockIsFreeForItsClientTheMomentAGuardEnds)
{
    const auto lock = this->make();
    Worker other;
    for (int round = 0; round < 100; ++round) {
        {
            const auto held = must(TypeParam::guard(lock));
        }
        ASSERT_EQ(TypeParam::tryLock(lock), true);
        ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
        {
            const auto held = must(TypeParam::guard(lock));
        }
        ASSERT_EQ(other.run([&] { return TypeParam::tryLock(lock); }), true);
        ASSERT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    }
}

TYPED_TEST(ExclusiveGuards, WaitersAreWokenByAGuardsEnd)
{
    Config config = this->config();
    config.watchdogTimeout = 30s;
    const Client far(config);
    const auto name = this->uniqueName();
    const auto here = this->make(far, name);
    const auto there = this->make(name);
    Worker other;
    std::optional held = must(TypeParam::guard(here));
    auto waiter = other.start([&] { return TypeParam::lock(there); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    const Stopwatch watch;
    held.reset();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(there); }), Unlocked::released);
}

TYPED_TEST(Guards, ExceptionEndsTheHold)
{
    const auto lock = this->make();
    try {
        const auto held = must(TypeParam::guard(lock));
        throw std::runtime_error("sold out");
    } catch (const std::runtime_error&) {
        EXPECT_FALSE(lock.isHeldByCurrentThread());
    }
    EXPECT_TRUE(this->becomesFree(lock.name()));
}

TYPED_TEST(Guards, ManyGuardsLiveInAContainer)
{
    std::vector<typename TypeParam::Guard> guards;
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
        names.push_back(this->uniqueName());
        guards.push_back(must(TypeParam::guard(this->make(names.back()))));
    }
    for (const auto& held : guards) {
        EXPECT_TRUE(static_cast<bool>(held));
    }
    guards.clear();
    for (const auto& name : names) {
        EXPECT_TRUE(this->becomesFree(name));
    }
}

TYPED_TEST(Guards, GuardOutlivesItsLockAndAfterItsClientDoesNothing)
{
    const auto name = this->uniqueName();
    std::optional<Client> ending(this->config());
    auto held = must(TypeParam::guard(this->make(*ending, name)));
    EXPECT_TRUE(static_cast<bool>(held));
    const auto token = held.stopToken();
    ending.reset();
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_TRUE(token.stop_requested());
    EXPECT_EQ(TypeParam::release(held), Unlocked::alreadyLost);
}

} // namespace
} // namespace redislock::test
