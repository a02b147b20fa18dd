// How long a hold lasts: fixed leases, renewed ones, and both nested in each other.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <optional>
#include <string>

namespace redislock::test {
namespace {

template <class D>
class Leases : public BehaviourTest<D> {
protected:
    using Lock = typename D::Lock;

    /// Expects the time to live in Redis to be @p lease, less what the test took since @p watch began.
    void expectTtl(const Lock& lock, milliseconds lease, const Stopwatch& watch)
    {
        const auto ttl = this->raw.pttl(lock.name());
        EXPECT_LE(ttl, lease + 1ms);
        EXPECT_GE(ttl, lease - watch.elapsedMs() - 2ms);
    }

    /// Expects this thread's belief to be at most what Redis grants, and not much less.
    void expectBelief(const Lock& lock, milliseconds lease, const Stopwatch& watch)
    {
        const auto before = bootTime();
        const auto validFor = lock.validFor();
        const auto ttl = this->raw.pttl(lock.name());
        EXPECT_LE(before + validFor, bootTime() + ttl + 1ms) << "a belief beyond the lease";
        EXPECT_GE(validFor, lease - lease / 100 - 4ms - watch.elapsedMs());
    }
};

using LeaseDrivers = DriversWith<Feature::leases>;
TYPED_TEST_SUITE(Leases, LeaseDrivers, DriverNames);

/// Leases inside other leases.
template <class D>
class NestedLeases : public Leases<D> {
};

using NestedLeaseDrivers = DriversWith<Feature::leases, Feature::reentrance>;
TYPED_TEST_SUITE(NestedLeases, NestedLeaseDrivers, DriverNames);

/// Leases after which somebody else holds.
template <class D>
class ExclusiveLeases : public Leases<D> {
};

using ExclusiveLeaseDrivers = DriversWith<Feature::leases, Feature::exclusion>;
TYPED_TEST_SUITE(ExclusiveLeases, ExclusiveLeaseDrivers, DriverNames);

TYPED_TEST(Leases, FixedLeaseIsTheTimeToLive)
{
    const auto lock = this->make();
    for (const milliseconds lease : {500ms, 10'000ms, 3'600'000ms}) {
        const Stopwatch watch;
        EXPECT_EQ(TypeParam::lock(lock, lease), true);
        this->expectTtl(lock, lease, watch);
        this->expectBelief(lock, lease, watch);
        const auto left = must(TypeParam::remainingTimeToLive(lock));
        ASSERT_TRUE(left);
        EXPECT_LE(*left, lease);
        EXPECT_GE(*left, lease - watch.elapsedMs() - 2ms);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
        EXPECT_EQ(TypeParam::remainingTimeToLive(lock), std::optional<milliseconds>());
    }
}

TYPED_TEST(Leases, OneObjectMayBeHeldWithAFixedLeaseAndThenWithTheWatchdogs)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 1h), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock), true);
    this->expectTtl(lock, this->client.config().watchdogTimeout, watch);
    this->expectBelief(lock, this->client.config().watchdogTimeout, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Leases, ShortestAndLongestLeasesAreGranted)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, minLease), true);
    EXPECT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, maxLease), true);
    this->expectTtl(lock, maxLease, watch);
    this->expectBelief(lock, maxLease, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Leases, FixedLeaseEndsByItselfAndIsNotRenewed)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::tryLock(lock, 0ms, 400ms), true);
    ASSERT_TRUE(eventually([&] { return !lock.isHeldByCurrentThread(); }));
    EXPECT_GE(watch.elapsed(), 390ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_TRUE(lock.stopToken().stop_requested());
    EXPECT_TRUE(eventually([&] { return TypeParam::isLocked(lock) == false; }));
    EXPECT_GE(watch.elapsed(), 400ms);
    EXPECT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(this->observer()->count("renewed"), 0U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
}

TYPED_TEST(Leases, RenewedLeaseOutlivesTheWatchdogsTimeout)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto holder = this->holderOf(lock.name());
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), 6));
    EXPECT_GE(watch.elapsed(), 900ms) << "renewed more often than needed";
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_FALSE(lock.stopToken().stop_requested());
    EXPECT_GT(this->raw.pttl(lock.name()), 0ms);
    EXPECT_GT(lock.validFor(), 0ms);
    EXPECT_EQ(this->observer()->count("lost"), 0U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Leases, LockIsNoLongerRenewedAfterItsUnlock)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    // what would renew the first hold would renew this one, which lasts longer than three of its renewals
    const auto witness = this->make();
    EXPECT_EQ(TypeParam::lock(witness), true);
    ASSERT_TRUE(this->observer()->await("renewed", witness.name(), 4));
    EXPECT_EQ(this->observer()->count("renewed", lock.name()), 0U);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_EQ(TypeParam::unlock(witness), Unlocked::released);
}

TYPED_TEST(NestedLeases, NestedShorterLeaseNeverShortens)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 10s), true);
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    this->expectTtl(lock, 10s, watch);
    this->expectBelief(lock, 10s, watch);
    EXPECT_EQ(TypeParam::lock(lock), true);
    this->expectTtl(lock, 10s, watch);
    this->expectBelief(lock, 10s, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    this->expectTtl(lock, 10s, watch);
    this->expectBelief(lock, 10s, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, UnlocksOfEqualLeasesLeaveTheirLeaseAndNotTheWatchdogs)
{
    const auto lock = this->make();
    const Stopwatch watch;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(TypeParam::lock(lock, 10s), true);
    }
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    this->expectTtl(lock, 10s, watch);
    this->expectBelief(lock, 10s, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, InnerUnlockLeavesTheMaximumOfTheRest)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 4s), true);
    EXPECT_EQ(TypeParam::lock(lock, 8s), true);
    EXPECT_EQ(TypeParam::lock(lock, 60s), true);
    this->expectTtl(lock, 60s, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    this->expectBelief(lock, 8s, watch);
    EXPECT_LE(lock.validFor(), 8s);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    this->expectBelief(lock, 4s, watch);
    EXPECT_LE(lock.validFor(), 4s);
    this->expectTtl(lock, 60s, watch); // a late copy of an unlock must not cut what came after it
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, FixedLeaseInsideARenewedOneDoesNotEndTheRenewal)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), 4));
    EXPECT_EQ(lock.holdCount(), 2U) << "the inner level lives as long as the hold";
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    const auto renewals = this->observer()->count("renewed", lock.name());
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), renewals + 3));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, LongLeaseInsideARenewedOneGivesWayToTheWatchdogs)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 1h), true);
    ASSERT_TRUE(this->observer()->await("renewed", lock.name()));
    this->expectTtl(lock, 1h, watch);
    this->expectBelief(lock, 1h, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    this->expectTtl(lock, 1h, watch);
    this->expectBelief(lock, this->client.config().watchdogTimeout, watch);
    EXPECT_LE(lock.validFor(), this->client.config().watchdogTimeout);
    const auto renewals = this->observer()->count("renewed", lock.name());
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), renewals + 4));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, RenewalGoesOnWhileAnInnerLevelAsksForItAndNoLonger)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 4s), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    const auto renewals = this->observer()->count("renewed", lock.name());
    this->expectTtl(lock, 4s, watch);
    this->expectBelief(lock, 4s, watch);
    const auto witness = this->make();
    EXPECT_EQ(TypeParam::lock(witness), true);
    ASSERT_TRUE(this->observer()->await("renewed", witness.name(), 2));
    EXPECT_EQ(TypeParam::unlock(witness), Unlocked::released);
    EXPECT_LE(this->observer()->count("renewed", lock.name()), renewals + 1) << "one may have been under way";
    this->expectTtl(lock, 4s, watch);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(NestedLeases, OuterLevelThatRanOutIsLostWhenTheInnerOneEnds)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), 2)); // about 400 ms
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released) << "nothing is left that would keep it";
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost) << "a level that was never ended";
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
}

TYPED_TEST(NestedLeases, NewHoldAfterALossCountsFromOne)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 200ms), true);
    EXPECT_EQ(TypeParam::lock(lock, 200ms), true);
    const auto first = this->holderOf(lock.name());
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0 && !this->raw.exists(lock.name()); }));
    EXPECT_EQ(TypeParam::lock(lock, 10s), true);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_NE(this->holderOf(lock.name()), first);
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
}

TYPED_TEST(ExclusiveLeases, LateUnlockDoesNotTouchTheNextHolder)
{
    const auto lock = this->make();
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock, 200ms), true);
    EXPECT_EQ(other.run([&] { return TypeParam::lock(lock); }), true);
    const auto holder = this->holderOf(lock.name());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_TRUE(other.run([&] { return lock.isHeldByCurrentThread(); }));
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(ExclusiveLeases, BeliefOfOneHolderEndsBeforeTheNextOneHasTheLock)
{
    const auto name = this->uniqueName();
    const auto lock = this->make(name);
    const Client otherClient(this->config());
    const auto same = this->make(otherClient, name);
    Worker other;
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(TypeParam::lock(lock, 250ms), true);
        auto next = other.start([&] {
            EXPECT_EQ(TypeParam::lock(same), true);
            return bootTime();
        });
        std::chrono::nanoseconds believed{};
        for (auto now = bootTime(); lock.isHeldByCurrentThread(); now = bootTime()) {
            believed = now; // a moment before it said so
        }
        EXPECT_LT(believed, next.get());
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
        EXPECT_EQ(other.run([&] { return TypeParam::unlock(same); }), Unlocked::released);
    }
}

} // namespace
} // namespace redislock::test
