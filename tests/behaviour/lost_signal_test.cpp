// How a holder learns that it lost its lock.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <gmock/gmock.h>

#include <algorithm>
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

class LostSignal : public BehaviourTest {};

INSTANTIATE_TEST_SUITE_P(, LostSignal, driversWith({Feature::leases, Feature::guards}), driverName);

/// The same with several levels.
class NestedLostSignal : public LostSignal {};

INSTANTIATE_TEST_SUITE_P(, NestedLostSignal, driversWith({Feature::leases, Feature::guards, Feature::reentrance}),
                         driverName);

TEST_P(LostSignal, AtRiskComesBeforeLostAndLostWhenTheLeaseIsOver)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(2s), true);
    const auto token = lock.stopToken();
    const auto validUntil = bootTime() + lock.validFor();
    ASSERT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_THAT(observer()->story(lock.name()), ElementsAre("acquired", "atRisk", "lost"));
    const auto risk = observer()->of("atRisk").front();
    EXPECT_LE(risk.time, 500ms) << "a quarter of the lease";
    EXPECT_GT(risk.time, 0ms);
    EXPECT_EQ(risk.reason, LossReason::leaseEnded) << "nothing failed";
    const auto lost = observer()->of("lost").front();
    EXPECT_GE(lost.at, validUntil);
    EXPECT_LT(lost.at, validUntil + soon);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_P(LostSignal, LossThatTheRenewalFindsIsToldLongBeforeTheLeaseIsOver)
{
    Config config = observed();
    config.watchdogTimeout = 3s;
    const Client slow(config);
    const auto lock = make(slow, uniqueName());
    EXPECT_EQ(lock.lock(), true);
    const auto token = lock.stopToken();
    raw.command({"DEL", lock.name()});
    ASSERT_TRUE(observer()->await("lost", lock.name())); // a third of the lease later
    EXPECT_THAT(observer()->story(lock.name()), ElementsAre("acquired", "lost"));
    EXPECT_EQ(observer()->of("lost").front().reason, LossReason::gone);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_P(LostSignal, KeyOfAnotherTypeInTheLocksPlaceIsALoss)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    raw.command({"SET", lock.name(), "mine"});
    ASSERT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(raw.get(lock.name()), "mine");
    raw.command({"DEL", lock.name()});
}

TEST_P(LostSignal, RegularUnlockStopsNoToken)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    const auto token = lock.stopToken();
    EXPECT_TRUE(token.stop_possible());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_FALSE(token.stop_requested());
    std::optional held = must(lock.guard());
    const auto another = held->stopToken();
    held.reset();
    EXPECT_FALSE(another.stop_requested());
    EXPECT_TRUE(observer()->await("released", lock.name(), 2));
    EXPECT_EQ(observer()->count("lost"), 0U);
}

TEST_P(NestedLostSignal, NestedHoldsShareOneTokenAndOneLoss)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(300ms), true);
    const auto outer = lock.stopToken();
    EXPECT_EQ(lock.lock(300ms), true);
    auto held = must(lock.guard(300ms));
    const auto inner = held.stopToken();
    EXPECT_EQ(outer, inner);
    EXPECT_TRUE(eventually([&] { return inner.stop_requested(); }));
    EXPECT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(release(held), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(observer()->count("lost"), 1U);
}

TEST_P(LostSignal, TokensOfALaterHoldAreNotStoppedByAnEarlierLoss)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(200ms), true);
    const auto first = lock.stopToken();
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    EXPECT_EQ(lock.lock(), true);
    const auto second = lock.stopToken();
    EXPECT_TRUE(eventually([&] { return first.stop_requested(); }));
    ASSERT_TRUE(observer()->await("renewed", lock.name()));
    EXPECT_FALSE(second.stop_requested());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_P(LostSignal, StopCallbackRunsOnTheClientsThread)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(300ms), true);
    std::atomic<bool> called{false};
    std::thread::id where;
    const std::stop_callback callback(lock.stopToken(), [&] {
        where = std::this_thread::get_id();
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_NE(where, std::this_thread::get_id());
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_P(LostSignal, ForgottenLockIsReportedAndEndsByItself)
{
    Config config = observed();
    config.maxHold = 900ms;
    const Client capped(config);
    const auto lock = make(capped, uniqueName());
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(), true);
    const auto token = lock.stopToken();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(watch.elapsed(), 900ms);
    const auto story = observer()->story(lock.name());
    const auto tooLong = std::ranges::find(story, "heldTooLong");
    EXPECT_THAT(std::vector(story.begin(), std::ranges::find(story, "renewed")), ElementsAre("acquired"));
    EXPECT_THAT(std::vector(tooLong, story.end()), ElementsAre("heldTooLong", "atRisk", "lost"));
    const auto reports = observer()->of("heldTooLong");
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_GE(reports.front().time, 900ms);
    EXPECT_EQ(observer()->of("atRisk").back().reason, LossReason::heldTooLong);
    EXPECT_EQ(observer()->of("lost").back().reason, LossReason::heldTooLong);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    // the next hold has a deadline of its own
    EXPECT_EQ(lock.lock(), true);
    const auto renewals = observer()->count("renewed");
    EXPECT_TRUE(observer()->await("renewed", lock.name(), renewals + 2));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(LostSignal, LockWithTheLongestLimitIsRenewed)
{
    Config config = observed();
    config.maxHold = std::chrono::milliseconds::max();
    const Client unlimited(config);
    const auto lock = make(unlimited, uniqueName());
    EXPECT_EQ(lock.lock(), true);
    EXPECT_TRUE(observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(observer()->count("heldTooLong"), 0U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

// --- On the client's own thread
// ----------------------------------------------------------------------------------------

/// Calls in observers and stop callbacks.
class OnTheClientsThread : public LostSignal {};

INSTANTIATE_TEST_SUITE_P(, OnTheClientsThread,
                         driversWith({Feature::blocking, Feature::threadHolds, Feature::leases, Feature::guards,
                                      Feature::reentrance}),
                         driverName);

TEST_P(OnTheClientsThread, CallsThatWouldWaitAreRefusedInAStopCallback)
{
    const auto lost = make();
    const auto lock = make();
    EXPECT_EQ(lost.lock(300ms), true);
    std::vector<std::error_code> errors;
    std::atomic<bool> called{false};
    const std::stop_callback callback(lost.stopToken(), [&] {
        errors = {lock.lock().error,        lock.lock(10s).error,  lock.tryLock().error,
                  lock.tryLock(10s).error,  lock.isLocked().error, lock.remainingTimeToLive().error,
                  lock.forceUnlock().error, lock.guard().error,    lock.guard(0ms, 10s).error};
        std::error_code ec;
        client.connect(ec);
        errors.push_back(ec);
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_THAT(errors, ::testing::Each(Cause::clientsThread));
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_EQ(lost.unlock(), Unlocked::alreadyLost);
}

TEST_P(OnTheClientsThread, GuardMayBeEndedInAStopCallback)
{
    const auto lost = make();
    const auto lock = make();
    EXPECT_EQ(lost.lock(300ms), true);
    auto released = must(lock.guard());
    std::optional nested = must(lock.guard());
    const auto other = make();
    std::optional destroyed = must(other.guard());
    std::atomic<bool> called{false};
    Result<Unlocked> inner;
    Result<Unlocked> outer;
    const std::stop_callback callback(lost.stopToken(), [&] {
        inner = release(*nested);
        outer = release(released);
        destroyed.reset();
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(inner, Unlocked::stillHeld);
    EXPECT_EQ(outer, Unlocked::unconfirmed) << "it is sent and not waited for";
    EXPECT_TRUE(observer()->await("released", lock.name()));
    EXPECT_TRUE(observer()->await("released", other.name()));
    EXPECT_EQ(observer()->of("released", lock.name()).front().how, Unlocked::released);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lost.unlock(), Unlocked::alreadyLost);
}

TEST_P(OnTheClientsThread, UnlockInACallbackHasNoHoldToEndAndDoesNotWait)
{
    const auto lost = make();
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lost.lock(300ms), true);
    std::atomic<bool> called{false};
    Result<Unlocked> result;
    const std::stop_callback callback(lost.stopToken(), [&] {
        result = lock.unlock();
        called = true;
    });
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(result, Errc::notHeld) << "holds belong to the thread that took them";
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(lost.unlock(), Unlocked::alreadyLost);
}

TEST_P(OnTheClientsThread, ObserverMayAskLocallyAndEndGuardsButNotWait)
{
    const auto lock = make();
    std::optional held = must(make().guard());
    std::atomic<bool> called{false};
    std::error_code refused;
    observer()->react([&](const Told& told) {
        if (told.what == "acquired" && told.name == lock.name()) {
            EXPECT_FALSE(lock.isHeldByCurrentThread());
            EXPECT_EQ(lock.validFor(), 0ms);
            refused = lock.lock().error;
            held.reset();
            called = true;
        }
    });
    EXPECT_EQ(lock.lock(), true);
    ASSERT_TRUE(eventually([&] { return called.load(); }));
    EXPECT_EQ(refused, Errc::wouldDeadlock);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    observer()->react({});
}

} // namespace
} // namespace redislock::test
