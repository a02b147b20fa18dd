// A client that hands its lock on within itself must not keep it from others, whether it knows of them or not.
#include "behaviour/lock_test.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/spin_lock.hpp"

#include <atomic>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using FairChance = LockTest;

TEST_F(FairChance, WaiterOfAnotherClientGetsInWhileManyThreadsPassTheLockAmongThemselves)
{
    const Client crowd(config());
    const Client other(config());
    const std::string name = uniqueName();
    std::atomic<bool> done{false};
    std::atomic<int> passed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, lock = crowd.getLock(name)] {
            while (!done) {
                const std::scoped_lock held(lock);
                ++passed;
            }
        });
    }
    EXPECT_TRUE(eventually([&] { return passed > 100; }));

    const auto lock = other.getLock(name);
    constexpr int turns = 10;
    constexpr int mostBetween = 20'000; // without a fair chance there is no bound at all
    const int before = passed;
    for (int i = 0; i < turns; ++i) {
        const LockGuard held(lock, 20s, keepRenewing);
        EXPECT_TRUE(held) << "kept out, turn " << i;
    }
    EXPECT_LT(passed - before, turns * mostBetween);
    done = true;
    for (auto& thread : threads) {
        thread.join();
    }
}

/// Threads of one client that want a lock again as soon as they have released it, while this object lives.
class BusyThreads {
public:
    template <class BusyLock>
    BusyThreads(const BusyLock& lock, int threads, Lease lease)
    {
        for (int i = 0; i < threads; ++i) {
            threads_.emplace_back([this, lock, lease](const std::stop_token& stop) {
                while (!stop.stop_requested()) {
                    const LockGuard held(lock, 20s, lease);
                    ++holds;
                    std::this_thread::sleep_for(300us);
                }
            });
        }
        EXPECT_TRUE(eventually([&] { return holds > 100; }));
    }

    std::atomic<int> holds{0};

private:
    std::vector<std::jthread> threads_; // ends first
};

/// A loop of single attempts gets the lock several times.
template <class AskedLock>
void expectSomeAttemptsToSucceed(const AskedLock& lock)
{
    int got = 0;
    EXPECT_TRUE(eventually(
        [&] {
            std::this_thread::sleep_for(1ms);
            if (lock.tryLock()) {
                ++got;
                lock.unlock();
            }
            return got == 3;
        },
        30s))
        << "got it " << got << " times";
}

TEST_F(FairChance, SingleAttemptsSucceedBesideBusyThreadsOfAnyKindThatHandsOn)
{
    const Client crowd(config());
    const Client other(config());
    for (const int threads : {1, 3}) {
        for (const Lease lease : {Lease(keepRenewing), Lease(10s)}) {
            SCOPED_TRACE(std::to_string(threads) + (lease.isRenewed() ? ", renewed" : ", fixed"));
            const auto beside = [&](const auto& lock) {
                const BusyThreads busy(lock, threads, lease);
                expectSomeAttemptsToSucceed(other.getSpinLock(lock.name()));
            };
            beside(crowd.getLock(uniqueName()));
            beside(crowd.getNonReentrantLock(uniqueName()));
            beside(crowd.getSpinLock(uniqueName()));
            beside(crowd.getFencedLock(uniqueName()));
        }
    }
    const std::string name = uniqueName();
    const BusyThreads busy(crowd.getReadWriteLock(name).writeLock(), 3, keepRenewing);
    expectSomeAttemptsToSucceed(other.getReadWriteLock(name).writeLock());
}

TEST_F(FairChance, SingleAttemptsToWriteSucceedBesideReadersThatOverlap)
{
    const Client crowd(config());
    const Client other(config());
    const std::string name = uniqueName();
    const BusyThreads busy(crowd.getReadWriteLock(name).readLock(), 3, keepRenewing);
    expectSomeAttemptsToSucceed(other.getReadWriteLock(name).writeLock());
}

TEST_F(FairChance, AnotherKindOfTheSameClientIsAmongTheOthers)
{
    const Client client(config());
    const std::string name = uniqueName();
    const BusyThreads busy(client.getLock(name), 2, keepRenewing);
    EXPECT_TRUE(client.getSpinLock(name).tryLock(30s));
    client.getSpinLock(name).unlock();
}

TEST_F(FairChance, PolicyOfAnotherClientGetsInBesideBusyThreadsWithAPolicy)
{
    const Client crowd(config());
    const Client other(config());
    const std::string name = uniqueName();
    const BusyThreads busy(crowd.getSpinLock(name), 3, keepRenewing);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(other.getLock(name).tryLock(30s, keepRenewing, RetryPolicy::fixed(5ms))) << i;
        other.getLock(name).unlock();
    }
}

} // namespace
} // namespace redislock::test
