// How a holder learns that it lost its lock.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;

template <class D>
class LostSignal : public BehaviourTest<D> {
};

using LosingDrivers = DriversWith<Feature::leases, Feature::guards>;
TYPED_TEST_SUITE(LostSignal, LosingDrivers, DriverNames);

/// The same with several levels.
template <class D>
class NestedLostSignal : public LostSignal<D> {
};

using NestedLosingDrivers = DriversWith<Feature::leases, Feature::guards, Feature::reentrance>;
TYPED_TEST_SUITE(NestedLostSignal, NestedLosingDrivers, DriverNames);

TYPED_TEST(LostSignal, AtRiskComesBeforeLostAndLostWhenTheLeaseIsOver)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 2s), true);
    const auto token = lock.stopToken();
    const auto validUntil = bootTime() + lock.validFor();
    ASSERT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_THAT(this->observer()->story(lock.name()), ElementsAre("acquired", "atRisk", "lost"));
    const auto risk = this->observer()->of("atRisk").front();
    EXPECT_LE(risk.time, 500ms) << "a quarter of the lease";
    EXPECT_GT(risk.time, 0ms);
    const auto lost = this->observer()->of("lost").front();
    EXPECT_GE(lost.at, validUntil);
    EXPECT_LT(lost.at, validUntil + soon);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
}

TYPED_TEST(LostSignal, LossThatTheRenewalFindsIsToldLongBeforeTheLeaseIsOver)
{
    Config config = this->observed();
    config.watchdogTimeout = 3s;
    const Client slow(config);
    const auto lock = this->make(slow, this->uniqueName());
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto token = lock.stopToken();
    this->raw.command({"DEL", lock.name()});
    ASSERT_TRUE(this->observer()->await("lost", lock.name())); // a third of the lease later
    EXPECT_THAT(this->observer()->story(lock.name()), ElementsAre("acquired", "lost"));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
}

TYPED_TEST(LostSignal, KeyOfAnotherTypeInTheLocksPlaceIsALoss)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    this->raw.command({"SET", lock.name(), "mine"});
    ASSERT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(this->raw.get(lock.name()), "mine");
    this->raw.command({"DEL", lock.name()});
}

TYPED_TEST(LostSignal, RegularUnlockStopsNoToken)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto token = lock.stopToken();
    EXPECT_TRUE(token.stop_possible());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_FALSE(token.stop_requested());
    std::optional held = must(TypeParam::guard(lock));
    const auto another = held->stopToken();
    held.reset();
    EXPECT_FALSE(another.stop_requested());
    EXPECT_TRUE(this->observer()->await("released", lock.name(), 2));
    EXPECT_EQ(this->observer()->count("lost"), 0U);
}

TYPED_TEST(NestedLostSignal, NestedHoldsShareOneTokenAndOneLoss)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    const auto outer = lock.stopToken();
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    auto held = must(TypeParam::guard(lock, 300ms));
    const auto inner = held.stopToken();
    EXPECT_EQ(outer, inner);
    EXPECT_TRUE(eventually([&] { return inner.stop_requested(); }));
    EXPECT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(TypeParam::release(held), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(this->observer()->count("lost"), 1U);
}

TYPED_TEST(LostSignal, TokensOfALaterHoldAreNotStoppedByAnEarlierLoss)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 200ms), true);
    const auto first = lock.stopToken();
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto second = lock.stopToken();
    EXPECT_TRUE(eventually([&] { return first.stop_requested(); }));
    ASSERT_TRUE(this->observer()->await("renewed", lock.name()));
    EXPECT_FALSE(second.stop_requested());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
}

TYPED_TEST(LostSignal, StopCallbackRunsOnTheClientsThread)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 300ms), true);
    std::atomic<bool> called{false};
    std::thread::id where;
    const std::stop_callback callback(lock.stopToken(), [&] {
        where = std::this_thread::get_id();
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_NE(where, std::this_thread::get_id());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
}

TYPED_TEST(LostSignal, ForgottenLockIsReportedAndEndsByItself)
{
    Config config = this->observed();
    config.maxHold = 900ms;
    const Client capped(config);
    const auto lock = this->make(capped, this->uniqueName());
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto token = lock.stopToken();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(watch.elapsed(), 900ms);
    EXPECT_THAT(this->observer()->story(lock.name()),
                ElementsAre("acquired", "renewed", "heldTooLong", "atRisk", "lost"));
    const auto reports = this->observer()->of("heldTooLong");
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_GE(reports.front().time, 900ms);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    // the next hold has a time of its own
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto renewals = this->observer()->count("renewed");
    EXPECT_TRUE(this->observer()->await("renewed", lock.name(), renewals + 2));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(LostSignal, LockWithTheLongestLimitIsRenewed)
{
    Config config = this->observed();
    config.maxHold = std::chrono::milliseconds::max();
    const Client unlimited(config);
    const auto lock = this->make(unlimited, this->uniqueName());
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_TRUE(this->observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(this->observer()->count("heldTooLong"), 0U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

// --- On the client's own thread ----------------------------------------------------------------------------------------

/// Calls in observers and stop callbacks.
template <class D>
class OnTheClientsThread : public LostSignal<D> {
};

using BlockingDrivers =
    DriversWith<Feature::blocking, Feature::threadHolds, Feature::leases, Feature::guards, Feature::reentrance>;
TYPED_TEST_SUITE(OnTheClientsThread, BlockingDrivers, DriverNames);

TYPED_TEST(OnTheClientsThread, CallsThatWouldWaitAreRefusedInAStopCallback)
{
    const auto lost = this->make();
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lost, 300ms), true);
    std::vector<std::error_code> errors;
    std::atomic<bool> called{false};
    const std::stop_callback callback(lost.stopToken(), [&] {
        errors = {TypeParam::lock(lock).error,           TypeParam::lock(lock, 10s).error,
                  TypeParam::tryLock(lock).error,        TypeParam::tryLock(lock, 10s).error,
                  TypeParam::isLocked(lock).error,       TypeParam::remainingTimeToLive(lock).error,
                  TypeParam::forceUnlock(lock).error,    TypeParam::guard(lock).error,
                  TypeParam::guard(lock, 0ms, 10s).error};
        std::error_code ec;
        this->client.connect(ec);
        errors.push_back(ec);
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_THAT(errors, ::testing::Each(Errc::wouldDeadlock));
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_EQ(TypeParam::unlock(lost), Unlocked::alreadyLost);
}

TYPED_TEST(OnTheClientsThread, GuardMayBeEndedInAStopCallback)
{
    const auto lost = this->make();
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lost, 300ms), true);
    auto released = must(TypeParam::guard(lock));
    std::optional nested = must(TypeParam::guard(lock));
    const auto other = this->make();
    std::optional destroyed = must(TypeParam::guard(other));
    std::atomic<bool> called{false};
    Result<Unlocked> inner;
    Result<Unlocked> outer;
    const std::stop_callback callback(lost.stopToken(), [&] {
        inner = TypeParam::release(*nested);
        outer = TypeParam::release(released);
        destroyed.reset();
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(inner, Unlocked::stillHeld);
    EXPECT_EQ(outer, Unlocked::unconfirmed) << "it is sent and not waited for";
    EXPECT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_TRUE(this->observer()->await("released", other.name()));
    EXPECT_EQ(this->observer()->of("released", lock.name()).front().how, Unlocked::released);
    EXPECT_FALSE(this->raw.exists(lock.name()));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::unlock(lost), Unlocked::alreadyLost);
}

TYPED_TEST(OnTheClientsThread, UnlockInACallbackHasNoHoldToEndAndDoesNotWait)
{
    const auto lost = this->make();
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::lock(lost, 300ms), true);
    std::atomic<bool> called{false};
    Result<Unlocked> result;
    const std::stop_callback callback(lost.stopToken(), [&] {
        result = TypeParam::unlock(lock);
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(result, Errc::notHeld) << "holds belong to the thread that took them";
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(TypeParam::unlock(lost), Unlocked::alreadyLost);
}

TYPED_TEST(OnTheClientsThread, ObserverMayAskLocallyAndEndGuardsButNotWait)
{
    const auto lock = this->make();
    std::optional held = must(TypeParam::guard(this->make()));
    std::atomic<bool> called{false};
    std::error_code refused;
    this->observer()->react([&](const Told& told) {
        if (told.what == "acquired" && told.name == lock.name()) {
            EXPECT_FALSE(lock.isHeldByCurrentThread());
            EXPECT_EQ(lock.validFor(), 0ms);
            refused = TypeParam::lock(lock).error;
            held.reset();
            called = true;
        }
    });
    EXPECT_EQ(TypeParam::lock(lock), true);
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(refused, Errc::wouldDeadlock);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    this->observer()->react({});
}

} // namespace
} // namespace redislock::test
