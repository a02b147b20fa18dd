// Everything at once: many threads, clients and names, random pauses, connections that are killed.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "redislock/random.hpp"
#include "support/yields.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Hammer : public LockTest {
protected:
    static constexpr std::size_t nameCount = 5;

    /// Calls @p take, which takes a lock, and notes the longest of these calls.
    template <class Take>
    auto timed(Take take)
    {
        const Stopwatch watch;
        auto taken = take();
        const auto took = watch.elapsed();
        for (auto longest = longest_.load(); took > longest && !longest_.compare_exchange_weak(longest, took);) {
        }
        return taken;
    }

    /// The work of one thread: @p rounds sections under random locks, in random forms, with random pauses.
    void work(const Client& client, std::uint64_t seed, int rounds)
    {
        Random random(seed);
        for (int round = 0; round < rounds; ++round) {
            const auto which = random.next() % nameCount;
            const auto lock = client.getLock(names_.at(which));
            switch (random.next() % 4) {
            case 0:
                if (attempt([&] { return D::tryLock(lock); })) {
                    section(which, random);
                    unlock(lock);
                }
                break;
            case 1:
                if (attempt([&] { return D::tryLock(lock, milliseconds(random.next() % 30), 20s); })) {
                    section(which, random);
                    unlock(lock);
                }
                break;
            case 2: {
                const auto held = timed([&] { return must(D::guard(lock)); });
                section(which, random);
                break;
            }
            default:
                timed([&] { return must(D::lock(lock, 20s)); });
                must(D::lock(lock)); // nested
                section(which, random);
                unlock(lock);
                unlock(lock);
            }
            pause(random, 500);
        }
    }

    void expectExact()
    {
        int all = 0;
        for (std::size_t i = 0; i < nameCount; ++i) {
            EXPECT_EQ(values_.at(i), entered_.at(i)) << names_.at(i);
            all += entered_.at(i);
        }
        EXPECT_GT(all, 0);
        EXPECT_LT(longest_.load(), 9s) << "somebody waited until a lease was over";
    }

    void nameAll()
    {
        for (auto& name : names_) {
            name = uniqueName();
        }
    }

private:
    static void pause(Random& random, std::uint64_t upToMicroseconds)
    {
        std::this_thread::sleep_for(std::chrono::microseconds(random.next() % upToMicroseconds));
    }

    /// A short try; while a connection is being made it may fail with `unreachable`.
    template <class Try>
    bool attempt(Try tryLock)
    {
        const auto result = timed(tryLock);
        EXPECT_TRUE(!result.error || result.error == Errc::unreachable) << result.error.message();
        return result.value;
    }

    static void unlock(const RedisLock& lock)
    {
        const auto how = must(D::unlock(lock));
        EXPECT_TRUE(how == Unlocked::released || how == Unlocked::passedOn || how == Unlocked::stillHeld) << how;
    }

    /// Counts in a way that is correct only for one thread at a time.
    void section(std::size_t which, Random& random)
    {
        EXPECT_EQ(inside_.at(which).fetch_add(1), 0) << "two inside";
        const int before = values_.at(which).load(std::memory_order_relaxed);
        pause(random, 200);
        values_.at(which).store(before + 1, std::memory_order_relaxed);
        inside_.at(which).fetch_sub(1);
        entered_.at(which).fetch_add(1);
    }

    std::atomic<std::chrono::nanoseconds> longest_{0ns}; ///< of the calls that take a lock
    std::array<std::string, nameCount> names_;
    std::array<std::atomic<int>, nameCount> inside_{};
    std::array<std::atomic<int>, nameCount> values_{};
    std::array<std::atomic<int>, nameCount> entered_{};
};

TEST_F(Hammer, ManyThreadsOfThreeClientsCountExactly)
{
    nameAll();
    const std::array clients{Client(config()), Client(config()), Client(config())};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 24; ++i) {
        threads.emplace_back([&, i] { work(clients.at(i % clients.size()), i, 60); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    expectExact();
}

TEST_F(Hammer, ThreadsThatAreInterruptedWhereTheyHandOnCountExactly)
{
    nameAll();
    const auto before = Yields::count();
    {
        const Yields yields(6);
        const Client client(config());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 12; ++i) {
            threads.emplace_back([&, i] { work(client, 200 + i, 80); });
        }
        for (auto& thread : threads) {
            thread.join();
        }
    }
    expectExact();
    EXPECT_GT(Yields::count() - before, 1000U);
}

TEST_F(Hammer, ConnectionsThatAreKilledAllTheTimeChangeNoCount)
{
    nameAll();
    Config patient = observed();
    patient.watchdogTimeout = 20s;
    patient.pollInterval = 1s;
    const std::array clients{Client(patient), Client(patient)};
    std::atomic<int> working{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 8; ++i) {
        ++working;
        threads.emplace_back([&, i] {
            work(clients.at(i % clients.size()), 100 + i, 100);
            --working;
        });
    }
    int kills = 0;
    while (working > 0) {
        kills += static_cast<int>(raw.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer());
        kills += static_cast<int>(raw.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer());
        (void)eventually([&] { return working == 0; }, 20ms);
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_GT(kills, 0);
    expectExact();
    EXPECT_EQ(observer()->count("lost"), 0U);
}

} // namespace
} // namespace redislock::test
