// Many threads and clients, few locks: nobody is ever inside together, and everybody comes in.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
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

template <class D>
class Contention : public BehaviourTest<D> {
protected:
    /// Runs a function with 0, 1 ... in as many threads at the same time.
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

using ContendedDrivers = DriversWith<Feature::exclusion, Feature::waiting, Feature::guards, Feature::leases>;
TYPED_TEST_SUITE(Contention, ContendedDrivers, DriverNames);

TYPED_TEST(Contention, ThreadsOnOneObjectCountExactly)
{
    const auto lock = this->make();
    FragileCounter counter;
    this->inThreads(16, [&](std::size_t) {
        for (int round = 0; round < 50; ++round) {
            ASSERT_EQ(TypeParam::lock(lock), true);
            counter.count();
            ASSERT_TRUE(lock.isHeldByCurrentThread());
            ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
        }
    });
    EXPECT_EQ(counter.value(), 16 * 50);
}

TYPED_TEST(Contention, ThreadsOnSeveralNamesCountExactlyWithEveryFormOfLocking)
{
    constexpr std::size_t nameCount = 4;
    std::array<FragileCounter, nameCount> counters;
    std::array<std::string, nameCount> names;
    for (auto& name : names) {
        name = this->uniqueName();
    }
    std::array<std::atomic<int>, nameCount> entered{};
    this->inThreads(16, [&](std::size_t thread) {
        for (std::size_t round = 0; round < 40; ++round) {
            const auto which = (thread + round) % nameCount;
            const auto lock = this->make(names.at(which)); // a new object each time
            if ((thread + round) % 3 == 0) {
                const auto held = must(TypeParam::guard(lock));
                counters.at(which).count();
            } else {
                if (round % 2 == 0) {
                    ASSERT_EQ(TypeParam::lock(lock, 20s), true);
                } else {
                    ASSERT_EQ(TypeParam::tryLock(lock, 20s), true);
                }
                counters.at(which).count();
                ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
            }
            ++entered.at(which);
        }
    });
    for (std::size_t i = 0; i < nameCount; ++i) {
        EXPECT_EQ(counters.at(i).value(), entered.at(i));
    }
}

TYPED_TEST(Contention, ClientsCountExactly)
{
    const auto name = this->uniqueName();
    FragileCounter counter;
    std::deque<Client> clients;
    for (int i = 0; i < 16; ++i) {
        clients.emplace_back(this->config());
    }
    this->inThreads(clients.size(), [&](std::size_t i) {
        const auto lock = this->make(clients.at(i), name);
        for (int round = 0; round < 15; ++round) {
            ASSERT_EQ(TypeParam::lock(lock), true);
            counter.count();
            ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
        }
    });
    EXPECT_EQ(counter.value(), 16 * 15);
}

TYPED_TEST(Contention, ThreadsOfTwoClientsCountExactly)
{
    const Client other(this->config());
    const auto here = this->make();
    const auto there = this->make(other, here.name());
    FragileCounter counter;
    this->inThreads(12, [&](std::size_t i) {
        const auto& lock = i % 2 == 0 ? here : there;
        for (int round = 0; round < 25; ++round) {
            if (round % 2 == 0) {
                const auto held = must(TypeParam::guard(lock, 20s));
                counter.count();
            } else {
                ASSERT_EQ(TypeParam::lock(lock), true);
                counter.count();
                ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
            }
        }
    });
    EXPECT_EQ(counter.value(), 12 * 25);
}

TYPED_TEST(Contention, WhoGetsInByOneAttemptIsAlone)
{
    const auto lock = this->make();
    FragileCounter counter;
    std::atomic<int> entered{0};
    this->inThreads(16, [&](std::size_t) {
        for (int round = 0; round < 200; ++round) {
            const auto result = TypeParam::tryLock(lock);
            ASSERT_FALSE(result.error) << result.error.message();
            if (result.value) {
                counter.count();
                ++entered;
                ASSERT_TRUE(lock.isHeldByCurrentThread());
                ASSERT_GT(lock.validFor(), 0ms);
                ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
            }
        }
    });
    EXPECT_GT(entered, 0);
    EXPECT_EQ(counter.value(), entered);
}

TYPED_TEST(Contention, LeasesThatRunOutLetTheNextOneInAndNobodyTwice)
{
    const Client other(this->config());
    const auto name = this->uniqueName();
    FragileCounter counter;
    this->inThreads(4, [&](std::size_t i) {
        const auto lock = this->make(i % 2 == 0 ? this->client : other, name);
        for (int round = 0; round < 2; ++round) {
            ASSERT_EQ(TypeParam::lock(lock, 200ms), true);
            counter.count();
            ASSERT_TRUE(eventually([&] { return !lock.isHeldByCurrentThread(); }));
            ASSERT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
        }
    });
    EXPECT_EQ(counter.value(), 8);
}

TYPED_TEST(Contention, ManyJobsOnFewNamesLeaveNoSubscription)
{
    std::array<std::string, 5> names;
    for (auto& name : names) {
        name = this->uniqueName();
    }
    const Client far(this->config());
    const auto held = this->make(far, this->uniqueName());
    ASSERT_EQ(TypeParam::lock(held), true);
    this->inThreads(16, [&](std::size_t thread) {
        for (std::size_t job = 0; job < 60; ++job) {
            const bool inVain = job % 20 == 19;
            const auto lock = this->make(inVain ? held.name() : names.at((thread * 7 + job * 3) % names.size()));
            const auto result = TypeParam::tryLock(lock, milliseconds(inVain ? 1000 : job % 4 * 1000), 20s);
            ASSERT_FALSE(result.error) << result.error.message();
            if (result.value) {
                ASSERT_EQ(TypeParam::unlock(lock), Unlocked::released);
            }
        }
    });
    EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return this->channels().empty(); }));
    EXPECT_LE(this->observer()->count("connected:notifications"), 1U);
}

} // namespace
} // namespace redislock::test
