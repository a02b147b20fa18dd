// How long a hold lasts: with fixed leases, renewed leases, and both nested in each other.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <optional>
#include <string>

namespace redislock::test {
namespace {

class Leases : public BehaviourTest {
protected:
    /// Expects the time to live in Redis to be @p lease, less the time since @p watch began.
    void expectTtl(const AnyLock& lock, milliseconds lease, const Stopwatch& watch)
    {
        const auto ttl = raw.pttl(lock.name());
        EXPECT_LE(ttl, lease + 1ms);
        EXPECT_GE(ttl, lease - watch.elapsedMs() - 2ms);
    }

    /// Expects this thread to believe in its hold for at most as long as Redis grants it, and not much less.
    void expectBelief(const AnyLock& lock, milliseconds lease, const Stopwatch& watch)
    {
        const auto before = bootTime();
        const auto validFor = lock.validFor();
        const auto ttl = raw.pttl(lock.name());
        EXPECT_LE(before + validFor, bootTime() + ttl + 1ms) << "a belief beyond the lease";
        EXPECT_GE(validFor, lease - lease / 100 - 4ms - watch.elapsedMs());
    }
};

INSTANTIATE_TEST_SUITE_P(, Leases, driversWith({Feature::leases}), driverName);

/// Leases inside other leases.
class NestedLeases : public Leases {};

INSTANTIATE_TEST_SUITE_P(, NestedLeases, driversWith({Feature::leases, Feature::reentrance}), driverName);

/// Leases after which another holds the lock.
class ExclusiveLeases : public Leases {};

INSTANTIATE_TEST_SUITE_P(, ExclusiveLeases, driversWith({Feature::leases, Feature::exclusion}), driverName);

TEST_P(Leases, FixedLeaseIsTheTimeToLive)
{
    const auto lock = make();
    for (const milliseconds lease : {500ms, 10'000ms, 3'600'000ms}) {
        const Stopwatch watch;
        EXPECT_EQ(lock.lock(lease), true);
        expectTtl(lock, lease, watch);
        expectBelief(lock, lease, watch);
        const auto left = must(lock.remainingTimeToLive());
        ASSERT_TRUE(left);
        EXPECT_LE(*left, lease);
        EXPECT_GE(*left, lease - watch.elapsedMs() - 2ms);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_EQ(lock.remainingTimeToLive(), std::optional<milliseconds>());
    }
}

TEST_P(Leases, OneObjectMayBeHeldWithAFixedLeaseAndThenWithTheWatchdogs)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(1h), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(), true);
    expectTtl(lock, client.config().watchdogTimeout, watch);
    expectBelief(lock, client.config().watchdogTimeout, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Leases, ShortestAndLongestLeasesAreGranted)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(minLease), true);
    EXPECT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(maxLease), true);
    expectTtl(lock, maxLease, watch);
    expectBelief(lock, maxLease, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Leases, FixedLeaseEndsByItselfAndIsNotRenewed)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.tryLock(0ms, 400ms), true);
    ASSERT_TRUE(eventually([&] { return !lock.isHeldByCurrentThread(); }));
    EXPECT_GE(watch.elapsed(), 390ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_TRUE(lock.stopToken().stop_requested());
    EXPECT_TRUE(eventually([&] { return lock.isLocked() == false; }));
    EXPECT_GE(watch.elapsed(), 400ms);
    EXPECT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(observer()->count("renewed"), 0U);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
}

TEST_P(Leases, RenewedLeaseOutlivesTheWatchdogsTimeout)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(), true);
    const auto holder = holderOf(lock.name());
    ASSERT_TRUE(observer()->await("renewed", lock.name(), 6));
    EXPECT_GE(watch.elapsed(), 900ms) << "renewed more often than needed";
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_FALSE(lock.stopToken().stop_requested());
    EXPECT_GT(raw.pttl(lock.name()), 0ms);
    EXPECT_GT(lock.validFor(), 0ms);
    EXPECT_EQ(observer()->count("lost"), 0U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Leases, LockIsNoLongerRenewedAfterItsUnlock)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    // if anything renewed the first hold it would renew this one too, whose lease lasts longer than three renewals
    const auto witness = make();
    EXPECT_EQ(witness.lock(), true);
    ASSERT_TRUE(observer()->await("renewed", witness.name(), 4));
    EXPECT_EQ(observer()->count("renewed", lock.name()), 0U);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_EQ(witness.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, NestedShorterLeaseNeverShortens)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(10s), true);
    EXPECT_EQ(lock.lock(300ms), true);
    expectTtl(lock, 10s, watch);
    expectBelief(lock, 10s, watch);
    EXPECT_EQ(lock.lock(), true);
    expectTtl(lock, 10s, watch);
    expectBelief(lock, 10s, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    expectTtl(lock, 10s, watch);
    expectBelief(lock, 10s, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, UnlocksOfEqualLeasesLeaveTheirLeaseAndNotTheWatchdogs)
{
    const auto lock = make();
    const Stopwatch watch;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(lock.lock(10s), true);
    }
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    expectTtl(lock, 10s, watch);
    expectBelief(lock, 10s, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, InnerUnlockLeavesTheMaximumOfTheRest)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(4s), true);
    EXPECT_EQ(lock.lock(8s), true);
    EXPECT_EQ(lock.lock(60s), true);
    expectTtl(lock, 60s, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    expectBelief(lock, 8s, watch);
    EXPECT_LE(lock.validFor(), 8s);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    expectBelief(lock, 4s, watch);
    EXPECT_LE(lock.validFor(), 4s);
    expectTtl(lock, 60s, watch); // a late copy of an unlock must not cut a later level
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, FixedLeaseInsideARenewedOneDoesNotEndTheRenewal)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.lock(300ms), true);
    ASSERT_TRUE(observer()->await("renewed", lock.name(), 4));
    EXPECT_EQ(lock.holdCount(), 2U) << "the inner level lives as long as the hold";
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    const auto renewals = observer()->count("renewed", lock.name());
    ASSERT_TRUE(observer()->await("renewed", lock.name(), renewals + 3));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, LongLeaseInsideARenewedOneGivesWayToTheWatchdogs)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(1h), true);
    ASSERT_TRUE(observer()->await("renewed", lock.name()));
    expectTtl(lock, 1h, watch);
    expectBelief(lock, 1h, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    expectTtl(lock, 1h, watch);
    expectBelief(lock, client.config().watchdogTimeout, watch);
    EXPECT_LE(lock.validFor(), client.config().watchdogTimeout);
    const auto renewals = observer()->count("renewed", lock.name());
    ASSERT_TRUE(observer()->await("renewed", lock.name(), renewals + 4));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, RenewalGoesOnWhileAnInnerLevelAsksForItAndNoLonger)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(4s), true);
    EXPECT_EQ(lock.lock(), true);
    ASSERT_TRUE(observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    const auto renewals = observer()->count("renewed", lock.name());
    expectTtl(lock, 4s, watch);
    expectBelief(lock, 4s, watch);
    const auto witness = make();
    EXPECT_EQ(witness.lock(), true);
    ASSERT_TRUE(observer()->await("renewed", witness.name(), 2));
    EXPECT_EQ(witness.unlock(), Unlocked::released);
    EXPECT_LE(observer()->count("renewed", lock.name()), renewals + 1) << "one may have been under way";
    expectTtl(lock, 4s, watch);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedLeases, OuterLevelThatRanOutIsLostWhenTheInnerOneEnds)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(300ms), true);
    EXPECT_EQ(lock.lock(), true);
    ASSERT_TRUE(observer()->await("renewed", lock.name(), 2)); // about 400 ms
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(lock.unlock(), Unlocked::released) << "nothing is left that would keep it";
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost) << "a level that was never ended";
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
}

TEST_P(NestedLeases, NewHoldAfterALossCountsFromOne)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(200ms), true);
    EXPECT_EQ(lock.lock(200ms), true);
    const auto first = holderOf(lock.name());
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0 && !raw.exists(lock.name()); }));
    EXPECT_EQ(lock.lock(10s), true);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_NE(holderOf(lock.name()), first);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
}

TEST_P(ExclusiveLeases, LateUnlockDoesNotTouchTheNextHolder)
{
    const auto lock = make();
    Worker other;
    EXPECT_EQ(lock.lock(200ms), true);
    EXPECT_EQ(other.run([&] { return lock.lock(10s); }), true);
    const auto holder = holderOf(lock.name());
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_TRUE(other.run([&] { return lock.isHeldByCurrentThread(); }));
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(ExclusiveLeases, BeliefOfOneHolderEndsBeforeTheNextOneHasTheLock)
{
    const auto name = uniqueName();
    const auto lock = make(name);
    const Client otherClient(config());
    const auto same = make(otherClient, name);
    Worker other;
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(lock.lock(250ms), true);
        auto next = other.start([&] {
            EXPECT_EQ(same.lock(), true);
            return bootTime();
        });
        std::chrono::nanoseconds believed{};
        for (auto now = bootTime(); lock.isHeldByCurrentThread(); now = bootTime()) {
            believed = now; // read a moment before the answer
        }
        EXPECT_LT(believed, next.get());
        EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
        EXPECT_EQ(other.run([&] { return same.unlock(); }), Unlocked::released);
    }
}

} // namespace
} // namespace redislock::test
