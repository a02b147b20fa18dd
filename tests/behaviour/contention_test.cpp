// Many threads and clients, few locks: no two are ever inside together, and all come in.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

/// A count that is right only if no two threads count at the same time.
class FragileCounter {
public:
    void count()
    {
        EXPECT_EQ(inside_.fetch_add(1), 0) << "two inside";
        const int before = value_.load(std::memory_order_relaxed);
        std::this_thread::yield();
        value_.store(before + 1, std::memory_order_relaxed);
        inside_.fetch_sub(1);
    }
    [[nodiscard]] int value() const { return value_.load(); }

private:
    std::atomic<int> inside_{0};
    std::atomic<int> value_{0};
};

class Contention : public BehaviourTest {
protected:
    /// Runs a function with the numbers 0, 1 ... in @p count threads at the same time.
    template <class Function>
    static void inThreads(std::size_t count, Function function)
    {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < count; ++i) {
            threads.emplace_back([&function, i] { function(i); });
        }
        for (auto& thread : threads) {
            thread.join();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(, Contention,
                         driversWith({Feature::exclusion, Feature::waiting, Feature::guards, Feature::leases}),
                         driverName);

TEST_P(Contention, ThreadsOnOneObjectCountExactly)
{
    const auto lock = make();
    FragileCounter counter;
    inThreads(16, [&](std::size_t) {
        for (int round = 0; round < 50; ++round) {
            ASSERT_EQ(lock.lock(), true);
            counter.count();
            ASSERT_TRUE(lock.isHeldByCurrentThread());
            ASSERT_TRUE(isEnded(lock.unlock()));
        }
    });
    EXPECT_EQ(counter.value(), 16 * 50);
}

TEST_P(Contention, ThreadsOnSeveralNamesCountExactlyWithEveryFormOfLocking)
{
    constexpr std::size_t nameCount = 4;
    std::array<FragileCounter, nameCount> counters;
    std::array<std::string, nameCount> names;
    for (auto& name : names) {
        name = uniqueName();
    }
    std::array<std::atomic<int>, nameCount> entered{};
    inThreads(16, [&](std::size_t thread) {
        for (std::size_t round = 0; round < 40; ++round) {
            const auto which = (thread + round) % nameCount;
            const auto lock = make(names.at(which)); // a new object each time
            if ((thread + round) % 3 == 0) {
                const auto held = must(lock.guard());
                counters.at(which).count();
            } else {
                if (round % 2 == 0) {
                    ASSERT_EQ(lock.lock(20s), true);
                } else {
                    ASSERT_EQ(lock.tryLock(20s), true);
                }
                counters.at(which).count();
                ASSERT_TRUE(isEnded(lock.unlock()));
            }
            ++entered.at(which);
        }
    });
    for (std::size_t i = 0; i < nameCount; ++i) {
        EXPECT_EQ(counters.at(i).value(), entered.at(i));
    }
}

TEST_P(Contention, ClientsCountExactly)
{
    const auto name = uniqueName();
    FragileCounter counter;
    std::deque<Client> clients;
    for (int i = 0; i < 16; ++i) {
        clients.emplace_back(config());
    }
    inThreads(clients.size(), [&](std::size_t i) {
        const auto lock = make(clients.at(i), name);
        for (int round = 0; round < 15; ++round) {
            ASSERT_EQ(lock.lock(), true);
            counter.count();
            ASSERT_EQ(lock.unlock(), Unlocked::released);
        }
    });
    EXPECT_EQ(counter.value(), 16 * 15);
}

TEST_P(Contention, ThreadsOfTwoClientsCountExactly)
{
    const Client other(config());
    const auto here = make();
    const auto there = make(other, here.name());
    FragileCounter counter;
    inThreads(12, [&](std::size_t i) {
        const auto& lock = i % 2 == 0 ? here : there;
        for (int round = 0; round < 25; ++round) {
            if (round % 2 == 0) {
                const auto held = must(lock.guard(20s));
                counter.count();
            } else {
                ASSERT_EQ(lock.lock(), true);
                counter.count();
                ASSERT_TRUE(isEnded(lock.unlock()));
            }
        }
    });
    EXPECT_EQ(counter.value(), 12 * 25);
}

TEST_P(Contention, WhoGetsInByOneAttemptIsAlone)
{
    const auto lock = make();
    FragileCounter counter;
    std::atomic<int> entered{0};
    inThreads(16, [&](std::size_t) {
        for (int round = 0; round < 200; ++round) {
            const auto result = lock.tryLock();
            ASSERT_FALSE(result.error) << result.error.message();
            if (result.value) {
                counter.count();
                ++entered;
                ASSERT_TRUE(lock.isHeldByCurrentThread());
                ASSERT_GT(lock.validFor(), 0ms);
                ASSERT_TRUE(isEnded(lock.unlock()));
            }
        }
    });
    EXPECT_GT(entered, 0);
    EXPECT_EQ(counter.value(), entered);
}

TEST_P(Contention, LeasesThatRunOutLetTheNextOneInAndNobodyTwice)
{
    const Client other(config());
    const auto name = uniqueName();
    FragileCounter counter;
    inThreads(4, [&](std::size_t i) {
        const auto lock = make(i % 2 == 0 ? client : other, name);
        for (int round = 0; round < 2; ++round) {
            ASSERT_EQ(lock.lock(200ms), true);
            counter.count();
            ASSERT_TRUE(eventually([&] { return !lock.isHeldByCurrentThread(); }));
            ASSERT_EQ(lock.unlock(), Unlocked::alreadyLost);
        }
    });
    EXPECT_EQ(counter.value(), 8);
}

TEST_P(Contention, ManyJobsOnFewNamesLeaveNoSubscription)
{
    std::array<std::string, 5> names;
    for (auto& name : names) {
        name = uniqueName();
    }
    const Client far(config());
    const auto held = make(far, uniqueName());
    ASSERT_EQ(held.lock(), true);
    inThreads(16, [&](std::size_t thread) {
        for (std::size_t job = 0; job < 60; ++job) {
            const bool inVain = job % 20 == 19;
            const auto lock = make(inVain ? held.name() : names.at((thread * 7 + job * 3) % names.size()));
            const auto result = lock.tryLock(milliseconds(inVain ? 1000 : job % 4 * 1000), 20s);
            ASSERT_FALSE(result.error) << result.error.message();
            if (result.value) {
                ASSERT_TRUE(isEnded(lock.unlock()));
            }
        }
    });
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return channels().empty(); }));
    EXPECT_LE(observer()->count("connected:notifications"), 1U);
}

} // namespace
} // namespace redislock::test
