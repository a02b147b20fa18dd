// Blocking calls of every kind that a stop token calls off while they wait: they end, and leave nothing behind.
#include "behaviour/group_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/redislock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace redislock::test {
namespace {

/// An object to wait for: how another client takes it, how this client waits for it, and how it is freed.
struct Awaited {
    const char* name;
    std::function<void()> occupy;
    std::function<void()> free;
    /// Waits for the object, and gives it back. @return whether the wait got it
    std::function<bool(std::stop_token, std::error_code&)> wait;
    std::string channel; ///< the channel of its waiters; empty: not known
};

class CallingOff : public GroupTest {
protected:
    template <class Lock>
    Awaited lockOf(const char* what, const Lock& held, const Lock& lock, std::string channel)
    {
        return {what, [held] { held.lock(); }, [held] { EXPECT_EQ(held.unlock(), Unlocked::released); },
                [lock](const std::stop_token& stop, std::error_code& ec) {
                    const bool granted = lock.lock(stop, ec);
                    if (granted) {
                        EXPECT_EQ(lock.unlock(), Unlocked::released);
                    }
                    return granted;
                },
                std::move(channel)};
    }

    std::vector<Awaited> locks()
    {
        const auto plain = channelOf(name);
        const auto policy = RetryPolicy::fixed(1ms);
        std::vector<Awaited> all;
        all.push_back(lockOf("RedisLock", far.getLock(name), client.getLock(name), plain));
        all.push_back(
            lockOf("NonReentrantLock", far.getNonReentrantLock(name), client.getNonReentrantLock(name), plain));
        all.push_back(lockOf("FencedLock", far.getFencedLock(name), client.getFencedLock(name), plain));
        all.push_back(lockOf("SpinLock", far.getSpinLock(name, policy), client.getSpinLock(name, policy), {}));
        all.push_back(lockOf("FairLock", far.getFairLock(name), client.getFairLock(name), {}));
        all.push_back(
            lockOf("WriteLock", far.getReadWriteLock(name).writeLock(), client.getReadWriteLock(name).writeLock(), {}));
        all.push_back({"ReadLock",
                       [this] { far.getReadWriteLock(name).lock(); },
                       [this] { far.getReadWriteLock(name).unlock(); },
                       [this](const std::stop_token& stop, std::error_code& ec) {
                           const LockGuard held(client.getReadWriteLock(name).readLock(), stop, ec);
                           return static_cast<bool>(held);
                       },
                       {}});
        all.push_back({"LockGuard", [this] { far.getLock(name).lock(); }, [this] { far.getLock(name).unlock(); },
                       [this](const std::stop_token& stop, std::error_code& ec) {
                           const LockGuard held(client.getLock(name), 1h, 10s, stop, ec);
                           return static_cast<bool>(held);
                       },
                       plain});
        all.push_back({"with a policy",
                       [this] { far.getLock(name).lock(); },
                       [this] { far.getLock(name).unlock(); },
                       [this](const std::stop_token& stop, std::error_code& ec) {
                           const auto lock = client.getLock(name);
                           return lock.tryLock(1h, 10s, RetryPolicy::fixed(1ms), stop, ec) &&
                                  lock.unlock() == Unlocked::released;
                       },
                       {}});
        return all;
    }

    std::vector<Awaited> counters()
    {
        return {
            {"Semaphore",
             [this] {
                 deleteCounter();
                 far.getSemaphore(counter).trySetPermits(1);
                 far.getSemaphore(counter).acquire();
             },
             [this] { far.getSemaphore(counter).release(); },
             [this](const std::stop_token& stop, std::error_code& ec) {
                 const auto semaphore = client.getSemaphore(counter);
                 const bool taken = semaphore.acquire(1, stop, ec);
                 if (taken) {
                     semaphore.release();
                 }
                 return taken;
             },
             "redisson_sc:{" + counter + "}"},
            {"PermitExpirableSemaphore",
             [this] {
                 deleteCounter();
                 const auto permits = far.getPermitExpirableSemaphore(counter);
                 permits.trySetPermits(1);
                 permit = permits.acquire(1h);
             },
             [this] { EXPECT_EQ(permit.release(), Unlocked::released); },
             [this](const std::stop_token& stop, std::error_code& ec) {
                 Permit taken = client.getPermitExpirableSemaphore(counter).acquire(10s, stop, ec);
                 return taken && taken.release() == Unlocked::released;
             },
             "redisson_sc:{" + counter + "}"},
            {"CountDownLatch",
             [this] {
                 deleteCounter();
                 far.getCountDownLatch(counter).trySetCount(1);
             },
             [this] { far.getCountDownLatch(counter).countDown(); },
             [this](const std::stop_token& stop, std::error_code& ec) {
                 return client.getCountDownLatch(counter).wait(stop, ec);
             },
             "redisson_countdownlatch__channel__{" + counter + "}"},
        };
    }

    std::vector<Awaited> groups()
    {
        const auto members = locksOn(3);
        const auto occupy = [this] { far.getLock(name).lock(); };
        const auto release = [this] { EXPECT_EQ(far.getLock(name).unlock(), Unlocked::released); };
        const auto wait = [](auto group) {
            return [group](const std::stop_token& stop, std::error_code& ec) {
                const bool granted = group.lock(stop, ec);
                return granted && group.unlock() == Unlocked::released;
            };
        };
        return {
            {"MultiLock", occupy, release, wait(MultiLock(members)), channelOf(name)},
            {"RedLock",
             [=, this] {
                 occupy();
                 second = std::make_unique<Client>(configOf(1));
                 second->getLock(name).lock();
             },
             [=, this] {
                 release();
                 second->getLock(name).unlock();
             },
             wait(RedLock(members)), channelOf(name)},
            {"GroupGuard", occupy, release,
             [group = MultiLock(members)](const std::stop_token& stop, std::error_code& ec) {
                 GroupGuard held(group, 1h, 10s, stop, ec);
                 return held && held.release() == Unlocked::released;
             },
             channelOf(name)},
        };
    }

    std::vector<Awaited> all()
    {
        auto awaited = locks();
        for (auto each : {counters(), groups()}) {
            awaited.insert(awaited.end(), each.begin(), each.end());
        }
        return awaited;
    }

    /// Whether a waiter has asked, and listens if its kind listens.
    bool isAsleep(const Awaited& awaited, std::uint64_t scriptsBefore)
    {
        return eventually([&] {
            const bool asked = scriptCalls() > scriptsBefore + (awaited.channel.empty() ? 0U : 1U);
            const auto listen = [&] {
                return raw.command({"PUBSUB", "NUMSUB", awaited.channel}).elements.at(1).integer() > 0;
            };
            return asked && (awaited.channel.empty() || listen());
        });
    }

    void deleteCounter() { raw.command({"DEL", counter, "{" + counter + "}:timeout"}); }

    void TearDown() override
    {
        deleteCounter();
        GroupTest::TearDown();
    }

    const std::string counter = uniqueName();
    const Client client{config()};
    const Client far{config()};
    Permit permit;
    std::unique_ptr<Client> second;
};

TEST_F(CallingOff, BeforeTheCallSendsNothing)
{
    std::stop_source source;
    source.request_stop();
    for (const auto& each : all()) {
        SCOPED_TRACE(each.name);
        const auto before = scriptCalls();
        std::error_code ec = make_error_code(Errc::lost);
        EXPECT_FALSE(each.wait(source.get_token(), ec));
        EXPECT_EQ(ec, std::error_code());
        EXPECT_EQ(scriptCalls(), before);
    }
    std::error_code ec;
    EXPECT_FALSE(client.getLock(name).lock(1ms, source.get_token(), ec));
    EXPECT_EQ(ec, Errc::invalidArgument) << "a mistake is one all the same";
    EXPECT_FALSE(client.getSemaphore(counter).acquire(-1, source.get_token(), ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
}

TEST_F(CallingOff, WhileAnotherHasItLeavesNothingAndTheNextGetsIt)
{
    Worker behind;
    for (const auto& each : all()) {
        SCOPED_TRACE(each.name);
        each.occupy();
        std::stop_source source;
        const auto before = scriptCalls();
        const auto wait = [&](std::stop_token stop) {
            return [&, stop = std::move(stop)] {
                std::error_code ec;
                const bool had = each.wait(stop, ec);
                EXPECT_EQ(ec, std::error_code());
                return had;
            };
        };
        auto waiter = other.start(wait(source.get_token()));
        EXPECT_TRUE(isAsleep(each, before));
        auto next = behind.start(wait(std::stop_token()));
        const Stopwatch watch;
        source.request_stop();
        EXPECT_FALSE(waiter.get());
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(next.wait_for(0ms), std::future_status::timeout) << "still waits";
        each.free();
        EXPECT_EQ(next.wait_for(soon), std::future_status::ready);
        EXPECT_TRUE(next.get());
        EXPECT_TRUE(eventually([&] { return channels().empty(); })) << "a subscription was left";
        EXPECT_TRUE(eventually([&] { return !raw.exists(name); }));
    }
}

TEST_F(CallingOff, WaiterOfAFairLockGivesUpItsPlace)
{
    const auto held = far.getFairLock(name);
    held.lock();
    std::stop_source source;
    auto waiter = other.start([&] { return client.getFairLock(name).lock(source.get_token()); });
    const auto queued = [&] { return raw.command({"LLEN", "redisson_lock_queue:{" + name + "}"}).integer(); };
    EXPECT_TRUE(eventually([&] { return queued() == 1; }));
    source.request_stop();
    EXPECT_FALSE(waiter.get());
    EXPECT_TRUE(eventually([&] { return queued() == 0; }));
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(held.tryLock()) << "nobody is before it";
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(CallingOff, OfAServerThatIsFrozenEndsAndIsMadeUpForLater)
{
    testing::RedisServer frozen = testServer();
    RawRedis truth(frozen);
    Config config = testConfig(frozen);
    config.commandTimeout = config.unreachableAfter = 60s;
    const Client asking(config);
    asking.connect();
    const auto lock = asking.getLock(name);
    const auto semaphore = asking.getSemaphore(counter);
    semaphore.trySetPermits(1);
    const MultiLock group({asking.getLock(name + ":a"), asking.getLock(name + ":b")});
    const std::function<bool(std::stop_token)> calls[] = {
        [&](std::stop_token stop) { return lock.lock(std::move(stop)); },
        [&](std::stop_token stop) { return semaphore.acquire(1, std::move(stop)); },
        [&](std::stop_token stop) { return group.lock(std::move(stop)); },
    };
    for (const auto& call : calls) {
        frozen.freeze();
        std::stop_source source;
        auto waiter = other.start([&] { return call(source.get_token()); });
        EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
        source.request_stop();
        EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready);
        EXPECT_FALSE(waiter.get());
        frozen.thaw();
        EXPECT_TRUE(eventually([&] {
            return truth.get(counter) == "1" && !truth.exists(name) && !truth.exists(name + ":a") &&
                   !truth.exists(name + ":b");
        }));
        EXPECT_TRUE(call(std::stop_token()));
        lock.isHeldByCurrentThread() ? (void)lock.unlock() : (void)0;
        group.isHeldByCurrentThread() ? (void)group.unlock() : (void)0;
        truth.command({"SET", counter, "1"});
    }
}

/// Stops a stop source on the client's own thread.
struct Stopper : Observer {
    void lost(const LockEvent& /*event*/, LossReason /*reason*/) noexcept override { source.request_stop(); }
    std::stop_source source;
};

TEST_F(CallingOff, ByAnObserverAndByTheLossOfAnotherLock)
{
    const auto stopper = std::make_shared<Stopper>();
    Config config = this->config();
    config.observer = stopper;
    const Client observing(config);
    const auto held = far.getLock(name);
    held.lock();
    const auto mine = observing.getLock(uniqueName());
    std::promise<std::stop_token> lostToken;
    auto byObserver = other.start([&] {
        const LockGuard brief(mine, Lease(300ms));
        lostToken.set_value(brief.stopToken());
        return observing.getLock(name).lock(stopper->source.get_token());
    });
    EXPECT_FALSE(observing.getLock(name).lock(lostToken.get_future().get())) << "stopped when the other lock is lost";
    EXPECT_FALSE(byObserver.get());
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(observing.getLock(name).tryLock(soon));
    EXPECT_EQ(observing.getLock(name).unlock(), Unlocked::released);
}

// Whether the stop or the end of the call comes first, both are safe, and the next call gets what this call left.
TEST_F(CallingOff, AtAnyMomentNothingStaysBehind)
{
    constexpr int rounds = 300;
    client.getSemaphore(counter).trySetPermits(1);
    const MultiLock group({client.getLock(name + ":a"), client.getLock(name + ":b")});
    for (int round = 0; round < rounds; ++round) {
        std::stop_source source;
        std::atomic<bool> begun{false};
        auto stopped = other.start([&] {
            while (!begun) {
            }
            for (const auto then = BootClock::now() + round * 1us; BootClock::now() < then;) {
            }
            source.request_stop();
        });
        begun = true;
        switch (round % 4) {
        case 0:
            if (const auto lock = client.getLock(name); lock.lock(source.get_token())) {
                EXPECT_EQ(lock.unlock(), Unlocked::released);
            }
            break;
        case 1:
            if (client.getSemaphore(counter).acquire(1, source.get_token())) {
                client.getSemaphore(counter).release();
            }
            break;
        case 2:
            (void)LockGuard(client.getFairLock(name), source.get_token());
            break;
        default:
            (void)GroupGuard(group, source.get_token());
        }
        stopped.get();
    }
    EXPECT_TRUE(client.getLock(name).tryLock(soon));
    EXPECT_EQ(client.getLock(name).unlock(), Unlocked::released);
    EXPECT_TRUE(client.getSemaphore(counter).tryAcquire(1, soon));
    client.getSemaphore(counter).release();
    EXPECT_TRUE(GroupGuard(group, soon, 10s));
    EXPECT_TRUE(eventually([&] { return raw.get(counter) == "1" && !raw.exists(name + ":a"); }));
}

} // namespace
} // namespace redislock::test
