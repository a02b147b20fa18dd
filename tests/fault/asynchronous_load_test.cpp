// Asynchronous calls that a release hands the lock to: on a thread that is late, and while connections end at any time.
#include "fault/asynchronous_test.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

/// Chains of asynchronous calls that take a lock in turn with threads: each handler begins the next call.
class BusyChains {
public:
    explicit BusyChains(std::vector<RedisLock> locks) : locks_(std::move(locks))
    {
        for (std::size_t i = 0; i < locks_.size(); ++i) {
            underWay_ += 2;
            lockNext(i, 0);
            lockNext(i, 1);
            threads_.emplace_back([this, i] {
                while (!ending_) {
                    std::error_code ec;
                    const LockGuard held(locks_[i], 20s, 20s, ec);
                    work(held);
                }
            });
        }
    }
    BusyChains(const BusyChains&) = delete;
    BusyChains& operator=(const BusyChains&) = delete;
    ~BusyChains() { (void)end(); }

    /// @return whether every chain ended.
    [[nodiscard]] bool end()
    {
        ending_ = true;
        for (auto& thread : threads_) {
            thread.join();
        }
        threads_.clear();
        return eventually([this] { return underWay_ == 0; }, 30s);
    }

    std::atomic<int> rounds{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> failures{0};
    std::atomic<int> wrongReleases{0};

private:
    void lockNext(std::size_t i, int round)
    {
        if (ending_) {
            --underWay_;
            return;
        }
        locks_[i].asyncTryLock(20s, 20s, [this, i, round](error_code, LockGuard held) {
            work(held);
            if (round % 2 == 0) {
                held = LockGuard();
                return lockNext(i, round + 1);
            }
            held.asyncRelease([this, i, round](error_code, Unlocked how) {
                wrongReleases += how == Unlocked::released ? 0 : 1;
                lockNext(i, round + 1);
            });
        });
    }

    void work(const LockGuard& held)
    {
        failures += held ? 0 : 1;
        if (held) {
            overlaps += ++inside_ == 1 ? 0 : 1;
            ++rounds;
            --inside_;
        }
    }

    std::vector<RedisLock> locks_;
    std::atomic<bool> ending_{false};
    std::atomic<int> underWay_{0};
    std::atomic<int> inside_{0};
    std::vector<std::thread> threads_;
};

using AsyncHandOver = AsynchronousFaultTest;
using AsyncKilledConnection = AsynchronousFaultTest;

/// The release of one hold carries the next waiter's request. On a busy machine the answer may come before the waiter
/// has looked at its state: gates make the client's own thread read first.
TEST_F(AsyncHandOver, AnswerThatComesBeforeTheWaiterLooksIsTaken)
{
    config.watchdogTimeout = 60s; // so that a command has the time commandTimeout
    config.commandTimeout = 5s;
    config.unreachableAfter = 20s;
    config.turn = 100ms; // otherwise a gap may follow a hold of some milliseconds
    auto held = lock().asyncLock(60s, asio::use_future).get();
    auto other = lockOf("other").asyncLock(60s, asio::use_future).get();
    WatchedCall<LockGuard> waiting([&](auto token) { lock().asyncLock(60s, std::move(token)); });
    awaitThread();
    const auto earlier = inject(reply(redisLockPttl), Action::pass());
    auto asked = lock().asyncIsLocked(asio::use_future);
    awaitThread(); // the question is queued
    Gate first(lock());
    first.await(); // it was sent
    ASSERT_TRUE(proxy.awaitHits(earlier)) << "there is something to read";
    Gate second(lock());
    other = LockGuard(); // its release will be sent between these gates
    Gate third(lock());
    first.open(); // the thread sees that there is something to read, which it will do after the third gate
    second.await();
    const auto handed = inject(reply(redisLockLock), Action::pass());
    held = LockGuard(); // this release is sent together with the other; the waiter looks when the thread has read
    second.open();
    third.await();
    ASSERT_TRUE(proxy.awaitHits(handed)) << "the answer to the waiter's request";
    const Stopwatch watch;
    third.open();
    ASSERT_TRUE(waiting.finish());
    EXPECT_LT(watch.elapsed(), slack) << "it waited for an answer that had come";
    EXPECT_FALSE(waiting.error);
    EXPECT_EQ(waiting.value.asyncRelease(asio::use_future).get(), Unlocked::released);
    EXPECT_TRUE(asked.get());
    expectNothingLeft();
}

/// Two kinds of lock with one name.
struct TwoKinds {
    const char* name;
    std::function<Lock(const Client&, const std::string&)> held;
    std::function<Lock(const Client&, const std::string&)> asked;
    const Script& question; ///< of the second
};

std::vector<TwoKinds> kindsThatExcludeEachOther()
{
    const auto plain = [](const Client& client, const std::string& name) { return client.getLock(name); };
    const auto spin = [](const Client& client, const std::string& name) {
        return client.getSpinLock(name, RetryPolicy::fixed(1h));
    };
    const auto fair = [](const Client& client, const std::string& name) { return client.getFairLock(name); };
    const auto reader = [](const Client& client, const std::string& name) {
        return client.getReadWriteLock(name).readLock();
    };
    const auto writer = [](const Client& client, const std::string& name) {
        return client.getReadWriteLock(name).writeLock();
    };
    using namespace detail::scripts;
    return {{"plain", plain, plain, redisLockLock},
            {"plain, then spinning", plain, spin, redisLockLock},
            {"fair", fair, fair, fairLockLock},
            {"writer, then reader", writer, reader, readLockLock},
            {"reader, then writer", reader, writer, writeLockLock}};
}

/// A guard ends, and an acquire over the other connection overtakes its release. The release is answered before anybody
/// looks at the refusal: gates and the proxy bring this about.
class OwnRelease : public AsynchronousFaultTest {
protected:
    OwnRelease()
    {
        config.watchdogTimeout = 60s; // so that a command has the time commandTimeout
        config.commandTimeout = 10s;
        config.unreachableAfter = 20s;
    }

    const RetryPolicy never = RetryPolicy::fixed(1h);
};

TEST_F(OwnRelease, OfAnAsynchronousHoldIsNoContentionForAThread)
{
    for (const auto& kinds : kindsThatExcludeEachOther()) {
        for (const bool waits : {false, true}) {
            SCOPED_TRACE(std::string(kinds.name) + (waits ? ", waiting" : ", one attempt"));
            const Lock asked = kinds.asked(client(), name);
            ASSERT_TRUE(asked.tryLock(10s, 10s)) << "the server knows the script";
            ASSERT_EQ(asked.unlock(), Unlocked::released);
            auto guard = kinds.held(client(), name).asyncLock(60s, asio::use_future).get();
            const auto before = seen->count(Recorder::Event::released);
            Gate gate(lock());
            gate.await();
            guard = LockGuard(); // its release is sent behind the gate
            const auto refusal = inject(reply(kinds.question), Action::stallDirection(), 1);
            auto call = std::async(std::launch::async, [&] {
                const bool got = waits ? asked.tryLock(5s, 10s, never) : asked.tryLock();
                return got ? asked.unlock() : Unlocked::alreadyLost;
            });
            ASSERT_TRUE(proxy.awaitHits(refusal));
            gate.open();
            ASSERT_TRUE(seen->await(Recorder::Event::released, before + 1));
            proxy.resume();
            EXPECT_EQ(call.get(), Unlocked::released);
        }
    }
}

TEST_F(OwnRelease, OfAThreadsHoldIsNoContentionForAnAsynchronousCall)
{
    for (const auto& kinds : kindsThatExcludeEachOther()) {
        for (const bool waits : {false, true}) {
            SCOPED_TRACE(std::string(kinds.name) + (waits ? ", waiting" : ", one attempt"));
            const Lock asked = kinds.asked(client(), name);
            ASSERT_EQ(asked.asyncLock(10s, asio::use_future).get().release(), Unlocked::released);
            auto guard = std::optional<LockGuard>(std::in_place, kinds.held(client(), name), Lease(60s));
            const auto release = inject({.command = "EVALSHA", .script = name}, Action::stallDirection(), 1);
            guard.reset();
            ASSERT_TRUE(proxy.awaitHits(release));
            const auto refusal = inject(reply(kinds.question), Action::stallDirection(), 1);
            auto call =
                waits ? asked.asyncTryLock(5s, 10s, never, asio::use_future) : asked.asyncTryLock(asio::use_future);
            ASSERT_TRUE(proxy.awaitHits(refusal));
            Gate gate(lock());
            gate.await();
            proxy.resume();
            EXPECT_FALSE(lockOf("another").isLocked()) << "reads the answer to the release, too";
            gate.open();
            auto got = call.get();
            ASSERT_TRUE(got);
            EXPECT_EQ(got.release(), Unlocked::released);
        }
    }
}

TEST_F(AsyncKilledConnection, AnyOfThemAtAnyTimeKeepsEveryCountExact)
{
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    BusyChains chains({lock(), other.getLock(name)});
    std::mt19937 chance(104); // NOLINT: the same each time
    std::size_t killed = 0;
    const Stopwatch watch;
    while (watch.elapsed() < 1500ms) {
        const int before = chains.rounds;
        ASSERT_TRUE(eventually([&] { return chains.rounds >= before + 5; }, 20s)) << "nobody gets on";
        killed += proxy.connections();
        proxy.closeAll(chance() % 2 == 0 ? FaultProxy::Close::orderly : FaultProxy::Close::reset);
        std::this_thread::sleep_for(std::chrono::microseconds(chance() % 3000));
    }
    EXPECT_TRUE(chains.end());
    expectFault(killed > 10, "connections that were killed");
    EXPECT_GT(chains.rounds, 50) << "the load was not there";
    EXPECT_EQ(chains.overlaps, 0);
    EXPECT_EQ(chains.failures, 0);
    EXPECT_EQ(chains.wrongReleases, 0);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    expectNothingLeft();
}

} // namespace
} // namespace redislock::test
