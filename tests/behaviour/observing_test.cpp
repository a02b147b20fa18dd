// What an observer is told of a lock's life.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <string>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;

template <class D>
class Observing : public BehaviourTest<D> {
};

using ObservedDrivers = DriversWith<Feature::leases, Feature::waiting>;
TYPED_TEST_SUITE(Observing, ObservedDrivers, DriverNames);

/// Of holds with several levels.
template <class D>
class NestedObserving : public Observing<D> {
};

using NestedObservedDrivers = DriversWith<Feature::leases, Feature::reentrance>;
TYPED_TEST_SUITE(NestedObserving, NestedObservedDrivers, DriverNames);

/// Of calls that others keep waiting.
template <class D>
class ObservingWaits : public Observing<D> {
};

using ObservedWaitDrivers = DriversWith<Feature::leases, Feature::waiting, Feature::exclusion>;
TYPED_TEST_SUITE(ObservingWaits, ObservedWaitDrivers, DriverNames);

TYPED_TEST(Observing, WholeStoryOfAHoldIsToldInOrder)
{
    const auto lock = this->make();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto granted = watch.elapsed();
    const auto holder = this->holderOf(lock.name());
    ASSERT_TRUE(this->observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    ASSERT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_THAT(this->observer()->story(lock.name()), ElementsAre("acquired", "renewed", "released"));
    for (const auto& told : this->observer()->all()) {
        if (!told.name.empty()) {
            EXPECT_EQ(told.holder, holder) << told.what;
        }
    }
    const auto acquired = this->observer()->of("acquired").front();
    EXPECT_GT(acquired.time, 0ns);
    EXPECT_LE(acquired.time, granted);
    EXPECT_EQ(acquired.attempts, 1U);
    const auto released = this->observer()->of("released").front();
    EXPECT_EQ(released.how, Unlocked::released);
    EXPECT_GE(released.time, 350ms) << "two renewals";
    EXPECT_LE(released.time, watch.elapsed());
}

TYPED_TEST(NestedObserving, NestedLevelsAreNoStoriesOfTheirOwn)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::stillHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    ASSERT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_EQ(this->observer()->count("released"), 1U);
}

TYPED_TEST(ObservingWaits, RefusedCallIsToldWithItsWaitAndItsAttempts)
{
    const Client other(this->config());
    const auto lock = this->make();
    const auto elsewhere = this->make(other, lock.name());
    EXPECT_EQ(TypeParam::lock(elsewhere, 30s), true);
    EXPECT_EQ(TypeParam::tryLock(lock), false);
    EXPECT_EQ(TypeParam::tryLock(lock, 200ms), false);
    ASSERT_TRUE(this->observer()->await("contended", lock.name(), 2));
    const auto contended = this->observer()->of("contended");
    EXPECT_EQ(contended[0].attempts, 1U);
    EXPECT_GE(contended[1].time, 200ms);
    EXPECT_EQ(contended[1].attempts, 2U) << "one, and one behind the subscription";
    EXPECT_EQ(TypeParam::unlock(elsewhere), Unlocked::released);
}

TYPED_TEST(ObservingWaits, WaitIsToldWithTheGrant)
{
    const Client other(this->config());
    const auto lock = this->make();
    const auto elsewhere = this->make(other, lock.name());
    EXPECT_EQ(TypeParam::lock(elsewhere, 300ms), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    ASSERT_TRUE(this->observer()->await("acquired", lock.name()));
    EXPECT_GE(this->observer()->of("acquired").front().time, 250ms);
    EXPECT_GE(this->observer()->of("acquired").front().attempts, 2U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(TypeParam::unlock(elsewhere), Unlocked::alreadyLost);
}

TYPED_TEST(Observing, LossIsToldOnceAndTheLateUnlockNotAtAll)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 250ms), true);
    ASSERT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    ASSERT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_EQ(this->observer()->count("lost"), 1U);
    EXPECT_EQ(this->observer()->count("released"), 1U);
}

TYPED_TEST(Observing, LockThatIsGoneAtItsUnlockIsReleasedAsAlreadyLost)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 30s), true);
    this->raw.command({"DEL", lock.name()});
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    ASSERT_TRUE(this->observer()->await("released", lock.name()));
    EXPECT_EQ(this->observer()->of("released").front().how, Unlocked::alreadyLost);
}

TYPED_TEST(ObservingWaits, ConnectionsAreToldByTheirPurpose)
{
    const Client other(this->config());
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(this->make(other, lock.name()), 300ms), true);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_TRUE(this->observer()->await("connected:notifications"));
    EXPECT_TRUE(this->observer()->await("connected:renewals"));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    constexpr std::size_t own = supports<TypeParam>(Feature::blocking) ? 1 : 0; // who blocks no thread needs none
    EXPECT_EQ(this->observer()->count("connected:commands"), own);
    EXPECT_EQ(this->observer()->count("connected:notifications"), 1U);
    EXPECT_EQ(TypeParam::unlock(this->make(other, lock.name())), Unlocked::alreadyLost);
}

} // namespace
} // namespace redislock::test
