// LockGuard: scopes that hold a lock.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

class Guards : public BehaviourTest {
protected:
    bool becomesFree(const std::string& name)
    {
        return eventually([&] { return !raw.exists(name); });
    }
};

INSTANTIATE_TEST_SUITE_P(, Guards, driversWith({Feature::guards, Feature::leases}), driverName);

/// Guards inside other holds of their thread.
class NestedGuards : public Guards {};

INSTANTIATE_TEST_SUITE_P(, NestedGuards,
                         driversWith({Feature::guards, Feature::leases, Feature::reentrance, Feature::threadHolds}),
                         driverName);

/// Guards while others want the lock.
class ExclusiveGuards : public Guards {};

INSTANTIATE_TEST_SUITE_P(, ExclusiveGuards, driversWith({Feature::guards, Feature::leases, Feature::exclusion}),
                         driverName);

TEST_P(Guards, GuardHoldsForItsScope)
{
    const auto lock = make();
    {
        const auto held = must(lock.guard());
        EXPECT_TRUE(static_cast<bool>(held));
        EXPECT_EQ(countOf(lock.name()), "1");
        EXPECT_EQ(lock.isHeldByCurrentThread(), supports(Feature::threadHolds));
        EXPECT_GT(held.validFor(), 0ms);
        EXPECT_FALSE(held.stopToken().stop_requested());
    }
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(becomesFree(lock.name()));
    EXPECT_TRUE(observer()->await("released", lock.name()));
    EXPECT_EQ(observer()->of("released").front().how, Unlocked::released);
}

TEST_P(Guards, ReleaseWaitsForTheAnswer)
{
    const auto lock = make();
    auto held = must(lock.guard(10s));
    EXPECT_EQ(release(held), Unlocked::released);
    EXPECT_FALSE(raw.exists(lock.name()));
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_EQ(held.validFor(), 0ms);
    EXPECT_TRUE(held.stopToken().stop_requested());
    EXPECT_EQ(release(held), Errc::notHeld);
}

TEST_P(Guards, EmptyGuardHoldsNothing)
{
    LockGuard empty;
    EXPECT_FALSE(static_cast<bool>(empty));
    EXPECT_EQ(empty.validFor(), 0ms);
    EXPECT_TRUE(empty.stopToken().stop_requested());
    EXPECT_EQ(release(empty), Errc::notHeld);
}

TEST_P(ExclusiveGuards, GuardIsEmptyWhenTheWaitIsOver)
{
    const auto lock = make();
    Worker other;
    EXPECT_EQ(lock.lock(), true);
    other.run([&] {
        for (const auto wait : {0ms, 100ms}) {
            const Stopwatch watch;
            auto held = must(lock.guard(wait, 10s));
            EXPECT_GE(watch.elapsed(), wait);
            EXPECT_FALSE(static_cast<bool>(held));
            EXPECT_EQ(release(held), Errc::notHeld);
        }
    });
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    auto held = must(lock.guard(0ms, 10s));
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_GT(held.validFor(), 9s);
    EXPECT_EQ(release(held), Unlocked::released);
}

TEST_P(Guards, GuardWithAFixedLeaseIsNotRenewedAndOneWithoutIs)
{
    const auto lock = make();
    const auto renewed = make();
    const auto fixedGuard = must(lock.guard(300ms));
    const auto renewedGuard = must(renewed.guard(0ms, keepRenewing));
    ASSERT_TRUE(observer()->await("renewed", renewed.name(), 3));
    EXPECT_FALSE(static_cast<bool>(fixedGuard));
    EXPECT_TRUE(static_cast<bool>(renewedGuard));
    EXPECT_EQ(observer()->count("renewed", lock.name()), 0U);
}

TEST_P(Guards, MovingPassesTheHoldOn)
{
    const auto lock = make();
    auto first = must(lock.guard());
    auto second = std::move(first);
    EXPECT_FALSE(static_cast<bool>(first)); // NOLINT: documented
    EXPECT_EQ(release(first), Errc::notHeld);
    EXPECT_TRUE(static_cast<bool>(second));
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(release(second), Unlocked::released);
}

TEST_P(Guards, AssigningEndsTheOwnHoldFirst)
{
    const auto one = make();
    const auto two = make();
    auto held = must(one.guard());
    held = must(two.guard());
    EXPECT_TRUE(becomesFree(one.name()));
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(countOf(two.name()), "1");
    held = LockGuard();
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_TRUE(becomesFree(two.name()));
}

TEST_P(NestedGuards, AssigningANestedGuardToTheOuterOneKeepsTheLock)
{
    const auto lock = make();
    auto held = must(lock.guard());
    held = must(lock.guard());
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return countOf(lock.name()) == "1"; }));
    EXPECT_EQ(release(held), Unlocked::released);
}

TEST_P(ExclusiveGuards, GuardMayBeEndedOnAnotherThread)
{
    const auto lock = make();
    Worker other;
    auto held = must(lock.guard());
    other.run([&, moved = std::move(held)]() mutable {
        EXPECT_TRUE(static_cast<bool>(moved));
        EXPECT_FALSE(lock.isHeldByCurrentThread()) << "until it ends, who made it counts as the holder";
        EXPECT_EQ(lock.tryLock(), false);
        EXPECT_EQ(lock.unlock(), Errc::notHeld);
        EXPECT_EQ(release(moved), Unlocked::released);
    });
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(raw.exists(lock.name()));
}

TEST_P(NestedGuards, ThreadThatMadeAGuardStaysTheHolderUntilItIsEndedElsewhere)
{
    const auto lock = make();
    Worker other;
    auto outer = std::make_unique<LockGuard>(must(lock.guard()));
    auto ending = other.start([&, moved = std::move(outer)] { EXPECT_TRUE(static_cast<bool>(*moved)); });
    ending.get();
    other.run([] {}); // the task, and the guard in it, are gone now
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(becomesFree(lock.name()));
    // the same with a nested level of this thread
    auto again = must(lock.guard());
    EXPECT_EQ(lock.lock(), true);
    other.run([&] { EXPECT_EQ(release(again), Unlocked::stillHeld); });
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(NestedGuards, GuardsLevelIsNotForUnlock)
{
    const auto lock = make();
    auto held = must(lock.guard());
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_TRUE(static_cast<bool>(held));
    EXPECT_EQ(release(held), Unlocked::released);
}

TEST_P(NestedGuards, NestedGuardsMayEndInAnyOrder)
{
    const auto lock = make();
    auto outer = must(lock.guard());
    auto middle = must(lock.guard(10s));
    auto inner = must(lock.guard(0ms, 10s));
    EXPECT_EQ(lock.holdCount(), 3U);
    EXPECT_EQ(release(outer), Unlocked::stillHeld);
    EXPECT_EQ(countOf(lock.name()), "2");
    EXPECT_EQ(release(inner), Unlocked::stillHeld);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_TRUE(static_cast<bool>(middle));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(release(middle), Unlocked::released);
}

TEST_P(NestedGuards, DestructorOfANestedGuardLowersTheCountAndNotMore)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(10s), true);
    {
        const auto nested = must(lock.guard(60s));
        EXPECT_EQ(countOf(lock.name()), "2");
    }
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return countOf(lock.name()) == "1"; }));
    EXPECT_LE(lock.validFor(), 10s);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Guards, LostGuardSaysSoAndEndsQuietly)
{
    const auto lock = make();
    auto held = must(lock.guard(300ms));
    const auto token = held.stopToken();
    EXPECT_FALSE(token.stop_requested());
    ASSERT_TRUE(eventually([&] { return !held; }));
    EXPECT_EQ(held.validFor(), 0ms);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_EQ(release(held), Unlocked::alreadyLost);
    EXPECT_EQ(release(held), Errc::notHeld);
}

TEST_P(ExclusiveGuards, LostGuardDoesNotTouchTheNextHolder)
{
    const auto lock = make();
    std::optional held = must(lock.guard(200ms));
    ASSERT_TRUE(eventually([&] { return !*held && !raw.exists(lock.name()); }));
    Worker other;
    EXPECT_EQ(other.run([&] { return lock.lock(); }), true);
    const auto holder = holderOf(lock.name());
    held.reset();
    EXPECT_EQ(lock.tryLock(), false); // its request follows any request of the guard
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Guards, LockIsFreeForItsClientTheMomentAGuardEnds)
{
    const auto lock = make();
    Worker other;
    for (int round = 0; round < 100; ++round) {
        {
            const auto held = must(lock.guard());
        }
        ASSERT_EQ(lock.tryLock(), true);
        ASSERT_EQ(lock.unlock(), Unlocked::released);
        {
            const auto held = must(lock.guard());
        }
        ASSERT_EQ(other.run([&] { return lock.tryLock(); }), true);
        ASSERT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    }
}

TEST_P(ExclusiveGuards, WaitersAreWokenByAGuardsEnd)
{
    Config config = LockTest::config();
    config.watchdogTimeout = 30s;
    const Client far(config);
    const auto name = uniqueName();
    const auto here = make(far, name);
    const auto there = make(name);
    Worker other;
    std::optional held = must(here.guard());
    auto waiter = other.start([&] { return there.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const Stopwatch watch;
    held.reset();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return there.unlock(); }), Unlocked::released);
}

TEST_P(Guards, ExceptionEndsTheHold)
{
    const auto lock = make();
    try {
        const auto held = must(lock.guard());
        throw std::runtime_error("sold out");
    } catch (const std::runtime_error&) {
        EXPECT_FALSE(lock.isHeldByCurrentThread());
    }
    EXPECT_TRUE(becomesFree(lock.name()));
}

TEST_P(Guards, ManyGuardsLiveInAContainer)
{
    std::vector<LockGuard> guards;
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
        names.push_back(uniqueName());
        guards.push_back(must(make(names.back()).guard()));
    }
    for (const auto& held : guards) {
        EXPECT_TRUE(static_cast<bool>(held));
    }
    guards.clear();
    for (const auto& name : names) {
        EXPECT_TRUE(becomesFree(name));
    }
}

TEST_P(Guards, GuardOutlivesItsLockAndAfterItsClientDoesNothing)
{
    const auto name = uniqueName();
    std::optional<Client> ending(config());
    auto held = must(make(*ending, name).guard());
    EXPECT_TRUE(static_cast<bool>(held));
    const auto token = held.stopToken();
    ending.reset();
    EXPECT_FALSE(static_cast<bool>(held));
    EXPECT_TRUE(token.stop_requested());
    EXPECT_EQ(release(held), Unlocked::alreadyLost);
}

} // namespace
} // namespace redislock::test
