// Threads that wait for a lock that others hold. The poll comes after a minute: whoever is quicker was told.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <array>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

template <class D>
class Waiting : public BehaviourTest<D> {
protected:
    /// Another client, whose locks stay for longer than any test.
    Client far{[] {
        Config config = LockTest::config();
        config.watchdogTimeout = 30s;
        return config;
    }()};
};

using WaitingDrivers = DriversWith<Feature::exclusion, Feature::waiting, Feature::leases>;
TYPED_TEST_SUITE(Waiting, WaitingDrivers, DriverNames);

/// Several waiters of one client of which only one listens, and not all ask.
template <class D>
class WaitingOnOneChannel : public Waiting<D> {
};

using OneChannelDrivers = DriversWith<Feature::oneChannel, Feature::exclusion, Feature::waiting, Feature::leases>;
TYPED_TEST_SUITE(WaitingOnOneChannel, OneChannelDrivers, DriverNames);

TYPED_TEST(Waiting, TryLockWithoutWaitAsksRedisOnceAndReturns)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    EXPECT_EQ(TypeParam::lock(held), true);
    const auto before = this->scriptCalls();
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::tryLock(lock), false);
    EXPECT_EQ(TypeParam::tryLock(lock, 0ms), false);
    EXPECT_EQ(TypeParam::tryLock(lock, -1h, 5s), false);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(this->scriptCalls(), before + 3);
    EXPECT_EQ(this->listeners(name), 0);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
}

TYPED_TEST(Waiting, TryLockGivesUpWhenItsWaitIsOver)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    EXPECT_EQ(TypeParam::lock(held), true);
    EXPECT_EQ(TypeParam::isLocked(lock), true); // and is connected
    for (const auto wait : {400ms, 500ms, 600ms}) {
        const Stopwatch watch;
        EXPECT_EQ(TypeParam::tryLock(lock, wait), false);
        EXPECT_GE(watch.elapsed(), wait);
        EXPECT_LT(watch.elapsed(), wait + soon);
    }
    EXPECT_TRUE(this->observer()->await("contended", name, 3));
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    EXPECT_FALSE(this->raw.exists(name));
}

TYPED_TEST(WaitingOnOneChannel, TryLockGivesUpInTimeWhenAThreadOfTheSameClientHolds)
{
    const auto lock = this->make();
    Worker other;
    EXPECT_EQ(TypeParam::tryLock(lock, 5s, 60s), true); // nothing is renewed
    const auto before = this->scriptCalls();
    for (const auto wait : {1ms, 300ms}) {
        const Stopwatch watch;
        EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock, wait, 5s); }), false);
        EXPECT_GE(watch.elapsed(), wait);
        EXPECT_LT(watch.elapsed(), wait + soon);
    }
    EXPECT_EQ(this->scriptCalls(), before);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterIsWokenByTheUnlockOfAnotherClient)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker other;
    EXPECT_EQ(TypeParam::lock(held), true);
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    EXPECT_TRUE(this->observer()->await("acquired", name));
    EXPECT_EQ(this->observer()->count("pushMissed"), 0U);
}

TYPED_TEST(Waiting, WaiterIsWokenByTheUnlockOfAnotherThreadOfItsClient)
{
    const auto lock = this->make(this->far, this->uniqueName());
    Worker other;
    EXPECT_EQ(TypeParam::lock(lock), true);
    auto waiter = other.start([&] { return TypeParam::tryLock(lock, 50s); });
    EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterIsWokenByAMessageOfAForeignClient)
{
    const auto name = this->uniqueName();
    const auto lock = this->make(name);
    this->heldByAStranger(name, 30s);
    Worker other;
    auto waiter = other.start([&] { return TypeParam::tryLock(lock, waitForever); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    const Stopwatch watch;
    this->raw.command({"DEL", name});
    this->tellWaiters(name);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterIsWokenByForceUnlock)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker other;
    EXPECT_EQ(TypeParam::lock(held), true);
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::forceUnlock(this->make(this->far, name)), true);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::alreadyLost);
    EXPECT_TRUE(other.run([&] { return lock.isHeldByCurrentThread(); }));
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterGetsTheLockWhenTheHoldersLeaseIsOverAndNotBefore)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker other;
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(held, 700ms), true);
    EXPECT_EQ(other.run([&] { return TypeParam::lock(lock); }), true);
    EXPECT_GE(watch.elapsed(), 700ms);
    EXPECT_LT(watch.elapsed(), 700ms + soon);
    EXPECT_EQ(held.holdCount(), 0U);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::alreadyLost);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterGetsTheLockWhenTheLeaseOfAThreadOfItsClientIsOver)
{
    const auto lock = this->make();
    Worker other;
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::lock(lock, 500ms), true);
    EXPECT_EQ(other.run([&] { return TypeParam::lock(lock); }), true);
    EXPECT_GE(watch.elapsed(), 480ms);
    EXPECT_LT(watch.elapsed(), 500ms + soon);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, ThePollFindsALockThatWasFreedSilently)
{
    Config config = this->observed();
    config.pollInterval = 100ms;
    const Client own(config);
    const auto name = this->uniqueName();
    const auto lock = this->make(own, name);
    this->heldByAStranger(name, 30s);
    Worker other;
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    const auto before = this->scriptCalls();
    // one is the try that follows the subscription, and must not be the one that succeeds
    ASSERT_TRUE(eventually([&] { return this->scriptCalls() >= before + 4; }));
    this->raw.command({"DEL", name});
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    EXPECT_TRUE(this->observer()->await("pushMissed", name));
}

TYPED_TEST(Waiting, KeyWithoutTimeToLiveIsReportedAndWaitedForByPolling)
{
    Config config = this->observed();
    config.pollInterval = 100ms;
    const Client own(config);
    const auto name = this->uniqueName();
    const auto lock = this->make(own, name);
    this->heldByAStranger(name, std::nullopt);
    EXPECT_EQ(TypeParam::tryLock(lock), false);
    EXPECT_EQ(TypeParam::remainingTimeToLive(lock), std::optional(milliseconds::max()));
    EXPECT_EQ(TypeParam::tryLock(lock, 150ms), false);
    EXPECT_TRUE(this->observer()->await("keyWithoutTtl", name, 2));
    EXPECT_TRUE(this->holderOf(name).starts_with("stranger:1"));
    Worker other;
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    this->raw.command({"DEL", name});
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, MessagesWithoutAFreeLockDoNotLengthenTheWait)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker other;
    EXPECT_EQ(TypeParam::lock(held), true);
    const Stopwatch watch;
    auto waiter = other.start([&] { return TypeParam::tryLock(lock, 400ms); });
    while (waiter.wait_for(5ms) == std::future_status::timeout) {
        ASSERT_LT(watch.elapsed(), 400ms + soon);
        this->tellWaiters(name);
    }
    EXPECT_EQ(waiter.get(), false);
    EXPECT_GE(watch.elapsed(), 400ms);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterThatGivesUpLetsTheNextOneIn)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker first;
    Worker second;
    EXPECT_EQ(TypeParam::lock(held), true);
    auto impatient = first.start([&] { return TypeParam::tryLock(lock, 200ms); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    auto patient = second.start([&] { return TypeParam::lock(lock); });
    EXPECT_EQ(impatient.get(), false);
    EXPECT_EQ(patient.wait_for(0ms), std::future_status::timeout);
    const Stopwatch watch;
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    EXPECT_EQ(patient.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(second.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterThatGivesUpLetsTheNextOneLookForItselfThoughNobodyIsToldAnything)
{
    const auto name = this->uniqueName();
    const auto lock = this->make(name);
    Worker first;
    Worker second;
    this->heldByAStranger(name, 600ms);
    auto impatient = first.start([&] { return TypeParam::tryLock(lock, 200ms); });
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    auto patient = second.start([&] { return TypeParam::tryLock(lock, 20s); });
    EXPECT_EQ(impatient.get(), false);
    EXPECT_EQ(patient.wait_for(10s), std::future_status::ready) << "the lease of the holder is over";
    EXPECT_EQ(patient.get(), true);
    EXPECT_EQ(second.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(Waiting, WaiterThatGaveUpLeavesNothingThatIsRenewed)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    EXPECT_EQ(TypeParam::lock(held), true);
    EXPECT_EQ(TypeParam::tryLock(lock, 100ms), false);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    // a release of the attempt that gave up would come now; its place in a queue may still be on the way out
    const auto other = this->make(this->far, name);
    EXPECT_EQ(TypeParam::tryLock(other, soon), true);
    EXPECT_EQ(TypeParam::unlock(other), Unlocked::released);
    EXPECT_EQ(this->observer()->count("renewed", name), 0U);
}

TYPED_TEST(Waiting, UnlockRightBehindTheSubscriptionIsNotMissedOnABusyMachine)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    Worker other;
    std::vector<std::jthread> busy;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
        busy.emplace_back([](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
            }
        });
    }
    for (int round = 0; round < 80; ++round) {
        ASSERT_EQ(TypeParam::lock(held, 6s), true);
        auto waiter = other.start([&] { return TypeParam::lock(lock); });
        while (this->listeners(name) == 0) {
        }
        const Stopwatch watch;
        while (watch.elapsed() < round * 5us) { // the waiter's second try comes first, or not
        }
        ASSERT_EQ(TypeParam::unlock(held), Unlocked::released);
        ASSERT_EQ(waiter.get(), true);
        ASSERT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
        ASSERT_LT(watch.elapsed(), 5s) << "it waited until the lease was over, in round " << round;
        ASSERT_TRUE(eventually([&] { return this->listeners(name) == 0; }));
    }
}

TYPED_TEST(Waiting, TurnThatComesWhenTheWaitEndsLeavesNoLockToNobody)
{
    const auto name = this->uniqueName();
    const auto lock = this->make(name);
    Worker other;
    for (const auto& held : {lock, this->make(this->far, name)}) {
        for (int round = 0; round < 25; ++round) {
            ASSERT_EQ(TypeParam::lock(held, 20s), true);
            auto waiter = other.start([&] { return TypeParam::tryLock(lock, 100ms, 20s); });
            const auto unlockAt = bootTime() + 99'800us + round * 20us;
            while (bootTime() < unlockAt) { // to the microsecond: a sleep would be too coarse
            }
            ASSERT_EQ(TypeParam::unlock(held), Unlocked::released);
            const auto result = waiter.get();
            ASSERT_FALSE(result.error) << result.error.message();
            if (result.value) {
                ASSERT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
            }
            ASSERT_TRUE(eventually([&] { return !this->raw.exists(name); }, soon)) << "round " << round;
        }
    }
}

TYPED_TEST(Waiting, SilenceWhileNobodyAsksIsNoUnreachableServer)
{
    Config config = this->config();
    config.unreachableAfter = 200ms;
    const Client impatient(config);
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(impatient, name);
    Worker other;
    EXPECT_EQ(TypeParam::lock(held), true);
    auto waiter = other.start([&] { return TypeParam::lock(lock); });
    EXPECT_EQ(waiter.wait_for(400ms), std::future_status::timeout);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
}

TYPED_TEST(WaitingOnOneChannel, ManyWaitersOfOneNameNeedOneSubscriptionWhichEndsWithTheLast)
{
    const auto name = this->uniqueName();
    const auto held = this->make(this->far, name);
    const auto lock = this->make(name);
    EXPECT_EQ(TypeParam::lock(held), true);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<Result<Unlocked>>> waiters;
    for (int i = 0; i < 6; ++i) {
        workers.push_back(std::make_unique<Worker>());
        waiters.push_back(workers.back()->start([&] {
            EXPECT_EQ(TypeParam::lock(lock), true);
            return TypeParam::unlock(lock);
        }));
    }
    ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
    EXPECT_EQ(this->channels().size(), 1U);
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.get(), Unlocked::released);
    }
    EXPECT_TRUE(eventually([&] { return this->channels().empty(); }));
}

TYPED_TEST(Waiting, OneConnectionListensForAllNames)
{
    Config config = this->config();
    config.clientName = "listening";
    const Client own(config);
    std::array<std::string, 5> names;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<Result<bool>>> waiters;
    for (auto& name : names) {
        name = this->uniqueName();
        EXPECT_EQ(TypeParam::lock(this->make(this->far, name)), true);
        workers.push_back(std::make_unique<Worker>());
        waiters.push_back(workers.back()->start([&, lock = this->make(own, name)] {
            const auto result = TypeParam::lock(lock);
            EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
            return result;
        }));
    }
    ASSERT_TRUE(eventually([&] { return this->channels().size() == names.size(); }));
    const auto clients = this->raw.command({"CLIENT", "LIST", "TYPE", "pubsub"}).text();
    EXPECT_NE(clients.find(" sub=5 "), std::string::npos) << clients;
    for (const auto& name : names) {
        EXPECT_EQ(TypeParam::unlock(this->make(this->far, name)), Unlocked::released);
    }
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.get(), true);
    }
}

TYPED_TEST(Waiting, FewNamesAndShortWaitsServeAllThreads)
{
    const std::array names{this->uniqueName(), this->uniqueName()};
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<void>> done;
    for (std::size_t i = 0; i < 4; ++i) {
        workers.push_back(std::make_unique<Worker>());
        done.push_back(workers.back()->start([&, lock = this->make(names.at(i % 2))] {
            for (int round = 0; round < 50; ++round) {
                ASSERT_EQ(TypeParam::tryLock(lock, soon), true);
                ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
            }
        }));
    }
    for (auto& each : done) {
        each.get();
    }
}

} // namespace
} // namespace redislock::test
