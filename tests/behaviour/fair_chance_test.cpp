// A process that hands its lock on from thread to thread must not keep it from other processes.
#include "behaviour/lock_test.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <atomic>
#include <mutex>
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

} // namespace
} // namespace redislock::test
