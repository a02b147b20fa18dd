// What an observer is told of a lock's life.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <string>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;

class Observing : public BehaviourTest {};

INSTANTIATE_TEST_SUITE_P(, Observing, driversWith({Feature::leases, Feature::waiting}), driverName);

/// Of holds with several levels.
class NestedObserving : public Observing {};

INSTANTIATE_TEST_SUITE_P(, NestedObserving, driversWith({Feature::leases, Feature::reentrance}), driverName);

/// Of calls that others keep waiting.
class ObservingWaits : public Observing {};

INSTANTIATE_TEST_SUITE_P(, ObservingWaits, driversWith({Feature::leases, Feature::waiting, Feature::exclusion}),
                         driverName);

TEST_P(Observing, WholeStoryOfAHoldIsToldInOrder)
{
    const auto lock = make();
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(), true);
    const auto granted = watch.elapsed();
    const auto holder = holderOf(lock.name());
    ASSERT_TRUE(observer()->await("renewed", lock.name(), 2));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(observer()->await("released", lock.name()));
    EXPECT_THAT(observer()->story(lock.name()), ElementsAre("acquired", "renewed", "released"));
    for (const auto& told : observer()->all()) {
        if (!told.name.empty()) {
            EXPECT_EQ(told.holder, holder) << told.what;
        }
    }
    const auto acquired = observer()->of("acquired").front();
    EXPECT_GT(acquired.time, 0ns);
    EXPECT_LE(acquired.time, granted);
    EXPECT_EQ(acquired.attempts, 1U);
    const auto released = observer()->of("released").front();
    EXPECT_EQ(released.how, Unlocked::released);
    EXPECT_GE(released.time, 350ms) << "two renewals";
    EXPECT_LE(released.time, watch.elapsed());
}

TEST_P(NestedObserving, NestedLevelsAreNoStoriesOfTheirOwn)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(observer()->await("released", lock.name()));
    EXPECT_EQ(observer()->count("released"), 1U);
}

TEST_P(ObservingWaits, RefusedCallIsToldWithItsWaitAndItsAttempts)
{
    const Client other(config());
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    EXPECT_EQ(elsewhere.lock(30s), true);
    EXPECT_EQ(lock.tryLock(), false);
    EXPECT_EQ(lock.tryLock(200ms), false);
    ASSERT_TRUE(observer()->await("contended", lock.name(), 2));
    const auto contended = observer()->of("contended");
    EXPECT_EQ(contended[0].attempts, 1U);
    EXPECT_GE(contended[1].time, 200ms);
    EXPECT_EQ(contended[1].attempts, 2U) << "one, and one behind the subscription";
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
}

TEST_P(ObservingWaits, WaitIsToldWithTheGrant)
{
    const Client other(config());
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    EXPECT_EQ(elsewhere.lock(300ms), true);
    EXPECT_EQ(lock.lock(), true);
    ASSERT_TRUE(observer()->await("acquired", lock.name()));
    EXPECT_GE(observer()->of("acquired").front().time, 250ms);
    EXPECT_GE(observer()->of("acquired").front().attempts, 2U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(elsewhere.unlock(), Unlocked::alreadyLost);
}

TEST_P(Observing, LossIsToldOnceAndTheLateUnlockNotAtAll)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(250ms), true);
    ASSERT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(observer()->await("released", lock.name()));
    EXPECT_EQ(observer()->count("lost"), 1U);
    EXPECT_EQ(observer()->count("released"), 1U);
}

TEST_P(Observing, LockThatIsGoneAtItsUnlockIsReleasedAsAlreadyLost)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(30s), true);
    raw.command({"DEL", lock.name()});
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    ASSERT_TRUE(observer()->await("released", lock.name()));
    EXPECT_EQ(observer()->of("released").front().how, Unlocked::alreadyLost);
}

TEST_P(ObservingWaits, ConnectionsAreToldByTheirPurpose)
{
    const Client other(config());
    const auto lock = make();
    EXPECT_EQ(make(other, lock.name()).lock(300ms), true);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_TRUE(observer()->await("connected:notifications"));
    EXPECT_TRUE(observer()->await("connected:renewals"));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    const std::size_t own = supports(Feature::blocking) ? 1 : 0; // who blocks no thread needs none
    EXPECT_EQ(observer()->count("connected:commands"), own);
    EXPECT_EQ(observer()->count("connected:notifications"), 1U);
    EXPECT_EQ(make(other, lock.name()).unlock(), Unlocked::alreadyLost);
}

} // namespace
} // namespace redislock::test
