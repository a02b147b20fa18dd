// The events of a lock's life that an observer gets.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/counter_test.hpp"
#include "behaviour/group_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/logging_observer.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;

class Observing : public BehaviourTest {};

INSTANTIATE_TEST_SUITE_P(, Observing, driversWith({Feature::leases, Feature::waiting}), driverName);

/// Events of holds with several levels.
class NestedObserving : public Observing {};

INSTANTIATE_TEST_SUITE_P(, NestedObserving, driversWith({Feature::leases, Feature::reentrance}), driverName);

/// Events of calls that others keep waiting.
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
    for (const auto& told : contended) {
        EXPECT_EQ(told.holder, holderOf(lock.name())) << "not who asked";
        EXPECT_LE(told.left, 30s);
        EXPECT_GT(told.left, 30s - soon);
    }
    EXPECT_EQ(contended[0].attempts, 1U);
    EXPECT_GE(contended[1].time, 200ms);
    EXPECT_EQ(contended[1].attempts, 2U) << "one, and one behind the subscription";
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
}

TEST_P(ObservingWaits, KeyWithoutATimeToLiveIsToldWithWhoHasIt)
{
    const Client other(config());
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    EXPECT_EQ(elsewhere.lock(30s), true);
    raw.command({"PERSIST", lock.name()});
    EXPECT_EQ(lock.tryLock(), false);
    ASSERT_TRUE(observer()->await("contended", lock.name()));
    ASSERT_EQ(observer()->count("keyWithoutTtl"), 1U);
    EXPECT_EQ(observer()->of("keyWithoutTtl").front().holder, holderOf(lock.name()));
    EXPECT_EQ(observer()->of("contended").front().left, std::nullopt);
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
    EXPECT_EQ(observer()->of("lost").front().reason, LossReason::leaseEnded);
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
    const std::size_t own = supports(Feature::blocking) ? 1 : 0; // calls that block no thread use none of their own
    EXPECT_EQ(observer()->count("connected:commands"), own);
    EXPECT_EQ(observer()->count("connected:notifications"), 1U);
    EXPECT_EQ(make(other, lock.name()).unlock(), Unlocked::alreadyLost);
}

// --- Why a hold was lost
// ------------------------------------------------------------------------------------------------

class ObservingLosses : public LockTest {
protected:
    /// The reason why the last hold was lost, and before that at risk.
    [[nodiscard]] LossReason reasonTold(const char* what = "lost")
    {
        EXPECT_TRUE(observer()->await(what, lock.name()));
        const auto told = observer()->of(what, lock.name());
        return told.empty() ? LossReason{} : told.back().reason;
    }

    /// On a busy machine the client's thread may run late, by less than the time from the risk to the loss of a hold.
    static Config longLeases()
    {
        Config config = LockTest::config();
        config.watchdogTimeout = 3s;
        return config;
    }

    Client client{observed(longLeases())};
    RedisLock lock = client.getLock(uniqueName());
};

TEST_F(ObservingLosses, ServerThatIsSilentIsNoServerThatRefuses)
{
    lock.lock();
    server().freeze();
    EXPECT_EQ(reasonTold("atRisk"), LossReason::unrenewed);
    EXPECT_EQ(reasonTold(), LossReason::unrenewed);
    server().thaw();
    lock.lock();
    raw.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_TRUE(observer()->await("lost", lock.name(), 2));
    raw.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_EQ(reasonTold(), LossReason::refused);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_F(ObservingLosses, EndByForceFromHereIsToldApartFromOneFromElsewhere)
{
    lock.lock();
    EXPECT_TRUE(lock.forceUnlock());
    EXPECT_EQ(reasonTold(), LossReason::forced);
    lock.lock();
    const Client other(config());
    EXPECT_TRUE(other.getLock(lock.name()).forceUnlock());
    ASSERT_TRUE(observer()->await("lost", lock.name(), 2));
    EXPECT_EQ(reasonTold(), LossReason::gone);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_F(ObservingLosses, HoldIsLostToTheClientsEnd)
{
    lock.lock();
    client.shutdown();
    EXPECT_EQ(reasonTold(), LossReason::shutDown);
}

TEST_F(ObservingLosses, WaiterBehindItsOwnClientIsToldOfThatHold)
{
    lock.lock();
    EXPECT_FALSE(std::async(std::launch::async, [this] { return lock.tryLock(50ms); }).get());
    ASSERT_TRUE(observer()->await("contended", lock.name()));
    const auto told = observer()->of("contended").front();
    EXPECT_EQ(told.holder, holderOf(lock.name()));
    EXPECT_EQ(told.attempts, 0U);
    EXPECT_TRUE(told.left);
    lock.unlock();
}

// --- Groups
// -------------------------------------------------------------------------------------------------------------

class ObservingGroups : public GroupTest {
protected:
    /// The events about single members.
    [[nodiscard]] std::vector<std::string> toldOfMembers()
    {
        std::vector<std::string> kinds;
        for (const auto& told : observer()->all()) {
            if (told.name == first || told.name == second) {
                kinds.push_back(told.what);
            }
        }
        return kinds;
    }

    const std::string first = uniqueName();
    const std::string second = uniqueName();
    const std::string both = first + ", " + second;
    Client observedClient{observed()};
    const MultiLock group{{observedClient.getLock(first), observedClient.getLock(second)}};
};

TEST_F(ObservingGroups, GroupIsToldOfAsOne)
{
    group.lock(30s);
    EXPECT_EQ(group.unlock(), Unlocked::released);
    ASSERT_TRUE(observer()->await("released", both));
    EXPECT_THAT(observer()->story(both), ElementsAre("acquired", "released"));
    EXPECT_EQ(observer()->count("acquired"), 1U);
    EXPECT_EQ(observer()->of("acquired").front().kind, ObjectKind::multiLock);
    {
        const GroupGuard guard(group, Lease(30s));
    }
    ASSERT_TRUE(observer()->await("released", both, 2)) << "a guard's end, too";
    EXPECT_THAT(toldOfMembers(), ElementsAre());
}

TEST_F(ObservingGroups, MembersThatAreGivenBackDoNotCountAsAcquired)
{
    const Client elsewhere(config());
    const auto kept = elsewhere.getLock(second);
    kept.lock(30s);
    EXPECT_FALSE(group.tryLock(100ms));
    ASSERT_TRUE(observer()->await("contended", both));
    EXPECT_TRUE(eventually([&] { return !raw.exists(first); }));
    EXPECT_THAT(toldOfMembers(), ElementsAre());
    kept.unlock();
}

TEST_F(ObservingGroups, LossOfAMemberIsThatOfTheGroupWithItsReason)
{
    group.lock();
    raw.command({"DEL", first});
    ASSERT_TRUE(observer()->await("lost", both));
    EXPECT_EQ(observer()->of("lost").front().reason, LossReason::gone);
    EXPECT_EQ(group.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(observer()->count("lost"), 1U);
    EXPECT_EQ(observer()->count("released"), 0U);
    group.lock(300ms);
    ASSERT_TRUE(observer()->await("lost", both, 2));
    EXPECT_EQ(observer()->of("atRisk").back().reason, LossReason::leaseEnded);
    EXPECT_EQ(observer()->of("lost").back().reason, LossReason::leaseEnded);
    EXPECT_EQ(group.unlock(), Unlocked::alreadyLost);
}

// --- Semaphores and latches
// ---------------------------------------------------------------------------------------------

class ObservingCounters : public CounterTest {
protected:
    Client observedClient{observed()};
};

TEST_F(ObservingCounters, PermitsOfASemaphoreAreAcquiredContendedAndReleased)
{
    const auto semaphore = observedClient.getSemaphore(counterName());
    semaphore.trySetPermits(1);
    semaphore.acquire();
    EXPECT_FALSE(semaphore.tryAcquire(1, 50ms));
    semaphore.release();
    ASSERT_TRUE(observer()->await("released", semaphore.name()));
    EXPECT_THAT(observer()->story(semaphore.name()), ElementsAre("acquired", "contended", "released"));
    EXPECT_EQ(observer()->of("acquired").front().kind, ObjectKind::semaphore);
    EXPECT_GE(observer()->of("contended").front().time, 50ms);
}

TEST_F(ObservingCounters, PermitIsToldByItsId)
{
    const auto semaphore = observedClient.getPermitExpirableSemaphore(counterName());
    semaphore.trySetPermits(1);
    auto permit = semaphore.acquire(30s);
    const auto id = permit.id();
    EXPECT_FALSE(semaphore.tryAcquire(50ms, 30s));
    EXPECT_EQ(permit.release(), Unlocked::released);
    {
        const auto another = semaphore.acquire(30s);
    }
    ASSERT_TRUE(observer()->await("released", semaphore.name(), 2)) << "a permit's end, too";
    EXPECT_EQ(observer()->of("acquired").front().holder, id);
    EXPECT_EQ(observer()->of("released").front().holder, id);
    EXPECT_GE(observer()->of("released").front().time, 50ms);
    EXPECT_EQ(observer()->of("released").back().how, Unlocked::released);
    EXPECT_GT(observer()->of("contended").front().left, 30s - soon);
}

TEST_F(ObservingCounters, OpenLatchIsAcquiredAndAClosedOneContended)
{
    const auto latch = observedClient.getCountDownLatch(counterName());
    latch.trySetCount(1);
    EXPECT_FALSE(latch.wait(50ms));
    latch.countDown();
    latch.wait();
    ASSERT_TRUE(observer()->await("acquired", latch.name()));
    EXPECT_THAT(observer()->story(latch.name()), ElementsAre("contended", "acquired"));
    EXPECT_EQ(observer()->of("acquired").front().kind, ObjectKind::countDownLatch);
}

// --- Lines of a log
// -----------------------------------------------------------------------------------------------------

class ObservingLines : public LockTest {
protected:
    /// The settings with an observer that keeps its lines.
    Config logged()
    {
        Config config = LockTest::config();
        config.observer = std::make_shared<LoggingObserver>([this](LogLevel level, std::string_view line) {
            const std::lock_guard lock(mutex_);
            lines_.push_back(std::string(toString(level)) + ": " + std::string(line));
        });
        return config;
    }
    [[nodiscard]] std::vector<std::string> linesWith(std::string_view part)
    {
        const std::lock_guard lock(mutex_);
        auto found = lines_;
        std::erase_if(found, [part](const std::string& line) { return line.find(part) == std::string::npos; });
        return found;
    }
    [[nodiscard]] bool await(std::string_view part)
    {
        return eventually([&] { return !linesWith(part).empty(); }, 15s);
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

TEST_F(ObservingLines, EachEventOfALockIsALine)
{
    using ::testing::StartsWith;
    const Client client(logged());
    const auto lock = client.getLock(uniqueName("\n"));
    const auto object = "redisLock \"" + lock.name().substr(0, lock.name().size() - 1) + "\\x0a\"";
    lock.lock();
    const auto holder = holderOf(lock.name());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(await("released"));
    EXPECT_THAT(linesWith(object), ElementsAre(StartsWith("debug: " + object + ": acquired by " + holder + " after "),
                                               StartsWith("debug: " + object + " held by " + holder + ": released ")));
    EXPECT_THAT(linesWith("connection for commands"), ElementsAre("info: connection for commands: connected"));
}

TEST_F(ObservingLines, LossIsAnErrorWithItsReason)
{
    const Client client(logged());
    const auto lock = client.getLock(uniqueName());
    lock.lock();
    raw.command({"DEL", lock.name()});
    ASSERT_TRUE(await("lost"));
    EXPECT_THAT(linesWith("lost"),
                ElementsAre(::testing::AllOf(::testing::StartsWith("error: "), ::testing::EndsWith(": lost: gone"))));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_F(ObservingLines, NoLineHasThePassword)
{
    auto config = logged();
    config.password = "pass-that-nobody-set";
    const Client client(config);
    EXPECT_THROW(client.connect(), LockError);
    ASSERT_TRUE(await("warning: connection for commands: "));
    EXPECT_THAT(linesWith(config.password), ElementsAre());
}

} // namespace
} // namespace redislock::test
