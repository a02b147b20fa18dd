// Threads that wait for a lock that others hold. The poll comes after a minute: a waiter that is quicker got a message.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

class Waiting : public BehaviourTest {
protected:
    /// Another client, whose locks stay for longer than any test.
    Client far{[] {
        Config config = LockTest::config();
        config.watchdogTimeout = 30s;
        return config;
    }()};
};

INSTANTIATE_TEST_SUITE_P(, Waiting, driversWith({Feature::exclusion, Feature::waiting, Feature::leases}), driverName);

/// Several waiters of one client, of which only one listens and not all ask.
class WaitingOnOneChannel : public Waiting {};

INSTANTIATE_TEST_SUITE_P(, WaitingOnOneChannel,
                         driversWith({Feature::oneChannel, Feature::exclusion, Feature::waiting, Feature::leases}),
                         driverName);

TEST_P(Waiting, TryLockWithoutWaitAsksRedisOnceAndReturns)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    EXPECT_EQ(held.lock(), true);
    const auto before = scriptCalls();
    const Stopwatch watch;
    EXPECT_EQ(lock.tryLock(), false);
    EXPECT_EQ(lock.tryLock(0ms), false);
    EXPECT_EQ(lock.tryLock(-1h, 5s), false);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(scriptCalls(), before + 3);
    EXPECT_EQ(listeners(name), 0);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_P(Waiting, TryLockGivesUpWhenItsWaitIsOver)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    EXPECT_EQ(held.lock(), true);
    EXPECT_EQ(lock.isLocked(), true); // so that the client is connected
    for (const auto wait : {400ms, 500ms, 600ms}) {
        const Stopwatch watch;
        EXPECT_EQ(lock.tryLock(wait), false);
        EXPECT_GE(watch.elapsed(), wait);
        EXPECT_LT(watch.elapsed(), wait + soon);
    }
    EXPECT_TRUE(observer()->await("contended", name, 3));
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(raw.exists(name));
}

TEST_P(WaitingOnOneChannel, TryLockGivesUpInTimeWhenAThreadOfTheSameClientHolds)
{
    const auto lock = make();
    Worker other;
    EXPECT_EQ(lock.tryLock(5s, 60s), true); // nothing is renewed
    const auto before = scriptCalls();
    for (const auto wait : {1ms, 300ms}) {
        const Stopwatch watch;
        EXPECT_EQ(other.run([&] { return lock.tryLock(wait, 5s); }), false);
        EXPECT_GE(watch.elapsed(), wait);
        EXPECT_LT(watch.elapsed(), wait + soon);
    }
    EXPECT_EQ(scriptCalls(), before);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Waiting, WaiterIsWokenByTheUnlockOfAnotherClient)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker other;
    EXPECT_EQ(held.lock(), true);
    auto waiter = other.start([&] { return lock.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const Stopwatch watch;
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    EXPECT_TRUE(observer()->await("acquired", name));
    EXPECT_EQ(observer()->count("pushMissed"), 0U);
}

TEST_P(Waiting, WaiterIsWokenByTheUnlockOfAnotherThreadOfItsClient)
{
    const auto lock = make(far, uniqueName());
    Worker other;
    EXPECT_EQ(lock.lock(), true);
    auto waiter = other.start([&] { return lock.tryLock(50s); });
    EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
    const Stopwatch watch;
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterIsWokenByAMessageOfAForeignClient)
{
    const auto name = uniqueName();
    const auto lock = make(name);
    heldByAStranger(name, 30s);
    Worker other;
    auto waiter = other.start([&] { return lock.tryLock(waitForever); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const Stopwatch watch;
    raw.command({"DEL", name});
    tellWaiters(name);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterIsWokenByForceUnlock)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker other;
    EXPECT_EQ(held.lock(), true);
    auto waiter = other.start([&] { return lock.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const Stopwatch watch;
    EXPECT_EQ(make(far, name).forceUnlock(), true);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_TRUE(other.run([&] { return lock.isHeldByCurrentThread(); }));
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterGetsTheLockWhenTheHoldersLeaseIsOverAndNotBefore)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker other;
    const Stopwatch watch;
    EXPECT_EQ(held.lock(700ms), true);
    EXPECT_EQ(other.run([&] { return lock.lock(); }), true);
    EXPECT_GE(watch.elapsed(), 700ms);
    EXPECT_LT(watch.elapsed(), 700ms + soon);
    EXPECT_EQ(held.holdCount(), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterGetsTheLockWhenTheLeaseOfAThreadOfItsClientIsOver)
{
    const auto lock = make();
    Worker other;
    const Stopwatch watch;
    EXPECT_EQ(lock.lock(500ms), true);
    EXPECT_EQ(other.run([&] { return lock.lock(); }), true);
    EXPECT_GE(watch.elapsed(), 480ms);
    EXPECT_LT(watch.elapsed(), 500ms + soon);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, ThePollFindsALockThatWasFreedSilently)
{
    Config config = observed();
    config.pollInterval = 100ms;
    const Client own(config);
    const auto name = uniqueName();
    const auto lock = make(own, name);
    heldByAStranger(name, 30s);
    Worker other;
    auto waiter = other.start([&] { return lock.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const auto before = scriptCalls();
    // one of them is the try after the subscription, which must not be the one that succeeds
    ASSERT_TRUE(eventually([&] { return scriptCalls() >= before + 4; }));
    raw.command({"DEL", name});
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    EXPECT_TRUE(observer()->await("pushMissed", name));
}

TEST_P(Waiting, KeyWithoutTimeToLiveIsReportedAndWaitedForByPolling)
{
    Config config = observed();
    config.pollInterval = 100ms;
    const Client own(config);
    const auto name = uniqueName();
    const auto lock = make(own, name);
    heldByAStranger(name, std::nullopt);
    EXPECT_EQ(lock.tryLock(), false);
    EXPECT_EQ(lock.remainingTimeToLive(), std::optional(milliseconds::max()));
    EXPECT_EQ(lock.tryLock(150ms), false);
    EXPECT_TRUE(observer()->await("keyWithoutTtl", name, 2));
    EXPECT_TRUE(holderOf(name).starts_with("stranger:1"));
    Worker other;
    auto waiter = other.start([&] { return lock.lock(); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    raw.command({"DEL", name});
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, MessagesWithoutAFreeLockDoNotLengthenTheWait)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker other;
    EXPECT_EQ(held.lock(), true);
    const Stopwatch watch;
    auto waiter = other.start([&] { return lock.tryLock(400ms); });
    while (waiter.wait_for(5ms) == std::future_status::timeout) {
        ASSERT_LT(watch.elapsed(), 400ms + soon);
        tellWaiters(name);
    }
    EXPECT_EQ(waiter.get(), false);
    EXPECT_GE(watch.elapsed(), 400ms);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_P(Waiting, WaiterThatGivesUpLetsTheNextOneIn)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker first;
    Worker second;
    EXPECT_EQ(held.lock(), true);
    auto impatient = first.start([&] { return lock.tryLock(200ms); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    auto patient = second.start([&] { return lock.lock(); });
    EXPECT_EQ(impatient.get(), false);
    EXPECT_EQ(patient.wait_for(0ms), std::future_status::timeout);
    const Stopwatch watch;
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(patient.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(second.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterThatGivesUpLetsTheNextOneLookForItselfThoughNobodyIsToldAnything)
{
    const auto name = uniqueName();
    const auto lock = make(name);
    Worker first;
    Worker second;
    heldByAStranger(name, 600ms);
    auto impatient = first.start([&] { return lock.tryLock(200ms); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    auto patient = second.start([&] { return lock.tryLock(20s); });
    EXPECT_EQ(impatient.get(), false);
    EXPECT_EQ(patient.wait_for(10s), std::future_status::ready) << "the lease of the holder is over";
    EXPECT_EQ(patient.get(), true);
    EXPECT_EQ(second.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Waiting, WaiterThatGaveUpLeavesNothingThatIsRenewed)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    EXPECT_EQ(held.lock(), true);
    EXPECT_EQ(lock.tryLock(100ms), false);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    // a release of the attempt that gave up would come now; the removal of its place in a queue may still be under way
    const auto other = make(far, name);
    EXPECT_EQ(other.tryLock(soon), true);
    EXPECT_EQ(other.unlock(), Unlocked::released);
    EXPECT_EQ(observer()->count("renewed", name), 0U);
}

TEST_P(Waiting, UnlockRightBehindTheSubscriptionIsNotMissedOnABusyMachine)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    Worker other;
    std::vector<std::jthread> busy;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
        busy.emplace_back([](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
            }
        });
    }
    for (int round = 0; round < 80; ++round) {
        ASSERT_EQ(held.lock(6s), true);
        auto waiter = other.start([&] { return lock.lock(); });
        while (listeners(name) == 0) {
        }
        const Stopwatch watch;
        while (watch.elapsed() < round * 5us) { // the waiter's second try comes first, or it does not
        }
        ASSERT_EQ(held.unlock(), Unlocked::released);
        ASSERT_EQ(waiter.get(), true);
        ASSERT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
        ASSERT_LT(watch.elapsed(), 5s) << "it waited until the lease was over, in round " << round;
        ASSERT_TRUE(eventually([&] { return listeners(name) == 0; }));
    }
}

TEST_P(Waiting, TurnThatComesWhenTheWaitEndsLeavesNoLockToNobody)
{
    const auto name = uniqueName();
    const auto lock = make(name);
    Worker other;
    for (const auto& held : {lock, make(far, name)}) {
        for (int round = 0; round < 25; ++round) {
            ASSERT_EQ(held.lock(20s), true);
            auto waiter = other.start([&] { return lock.tryLock(100ms, 20s); });
            const auto unlockAt = bootTime() + 99'800us + round * 20us;
            while (bootTime() < unlockAt) { // to the microsecond: a sleep would be too coarse
            }
            ASSERT_EQ(held.unlock(), Unlocked::released);
            const auto result = waiter.get();
            // a machine may be so busy that no answer came in all that time
            ASSERT_TRUE(!result.error || result == Errc::unreachable) << result.error.message();
            if (result.value) {
                ASSERT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
            }
            ASSERT_TRUE(eventually([&] { return !raw.exists(name); }, soon)) << "round " << round;
        }
    }
}

TEST_P(Waiting, SilenceWhileNobodyAsksIsNoUnreachableServer)
{
    Config config = LockTest::config();
    config.unreachableAfter = 200ms;
    const Client impatient(config);
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(impatient, name);
    Worker other;
    EXPECT_EQ(held.lock(), true);
    auto waiter = other.start([&] { return lock.lock(); });
    EXPECT_EQ(waiter.wait_for(400ms), std::future_status::timeout);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(WaitingOnOneChannel, ManyWaitersOfOneNameNeedOneSubscriptionWhichEndsWithTheLast)
{
    const auto name = uniqueName();
    const auto held = make(far, name);
    const auto lock = make(name);
    EXPECT_EQ(held.lock(), true);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<Result<Unlocked>>> waiters;
    for (int i = 0; i < 6; ++i) {
        workers.push_back(std::make_unique<Worker>());
        waiters.push_back(workers.back()->start([&] {
            EXPECT_EQ(lock.lock(), true);
            return lock.unlock();
        }));
    }
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    EXPECT_EQ(channels().size(), 1U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    for (auto& waiter : waiters) {
        EXPECT_TRUE(isEnded(waiter.get()));
    }
    EXPECT_TRUE(eventually([&] { return channels().empty(); }));
}

TEST_P(Waiting, OneConnectionListensForAllNames)
{
    Config config = LockTest::config();
    config.clientName = "listening";
    const Client own(config);
    std::array<std::string, 5> names;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<Result<bool>>> waiters;
    for (auto& name : names) {
        name = uniqueName();
        EXPECT_EQ(make(far, name).lock(), true);
        workers.push_back(std::make_unique<Worker>());
        waiters.push_back(workers.back()->start([&, lock = make(own, name)] {
            const auto result = lock.lock();
            EXPECT_EQ(lock.unlock(), Unlocked::released);
            return result;
        }));
    }
    EXPECT_TRUE(eventually(
        [&] { return std::ranges::all_of(names, [&](const std::string& name) { return listeners(name) == 1; }); }));
    const auto clients = raw.command({"CLIENT", "LIST", "TYPE", "pubsub"}).text();
    EXPECT_NE(clients.find(supports(Feature::oneChannel) ? " sub=5 " : " sub=1 "), std::string::npos) << clients;
    for (const auto& name : names) {
        EXPECT_EQ(make(far, name).unlock(), Unlocked::released);
    }
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.get(), true);
    }
}

TEST_P(Waiting, FewNamesAndShortWaitsServeAllThreads)
{
    const std::array names{uniqueName(), uniqueName()};
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<void>> done;
    for (std::size_t i = 0; i < 4; ++i) {
        workers.push_back(std::make_unique<Worker>());
        done.push_back(workers.back()->start([&, lock = make(names.at(i % 2))] {
            for (int round = 0; round < 50; ++round) {
                ASSERT_EQ(lock.tryLock(soon), true);
                ASSERT_TRUE(isEnded(lock.unlock()));
            }
        }));
    }
    for (auto& each : done) {
        each.get();
    }
}

} // namespace
} // namespace redislock::test
