// A fair lock with hundreds of waiters in several processes.
#include "behaviour/lock_test.hpp"
#include "integration/crowd_process.hpp"

#include <redislock/redislock.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class FairCrowd : public LockTest {
protected:
    struct Served {
        std::string holder;
        std::int64_t microseconds = 0;
    };

    void TearDown() override
    {
        processes.clear();
        raw.command({"DEL", CrowdProcess::servedKey(name)});
        LockTest::TearDown();
        EXPECT_FALSE(raw.exists(queueKey)) << "a waiter was left in the queue";
        EXPECT_FALSE(raw.exists(timesKey));
    }

    CrowdProcess& start(milliseconds pollInterval)
    {
        processes.push_back(
            std::make_unique<CrowdProcess>(server().url(), name, CrowdProcess::Wants::fairLock, pollInterval));
        ids.push_back(processes.back()->line());
        EXPECT_EQ(ids.back().size(), 36U);
        return *processes.back();
    }
    /// Adds @p count waiters to each process, and waits until all of them are in the queue and listen.
    void joinEach(std::size_t count)
    {
        const auto ahead = queue();
        queued += processes.size() * count;
        for (const auto& process : processes) {
            process->join(count);
        }
        ASSERT_TRUE(eventually([&] { return queue().size() == queued && heard() == queued; }, patience));
        const auto all = queue();
        EXPECT_TRUE(std::ranges::equal(ahead, std::span(all).first(ahead.size()))) << "who comes later is behind";
    }

    std::vector<std::string> queue()
    {
        std::vector<std::string> holders;
        for (const auto& each : raw.command({"LRANGE", queueKey, "0", "-1"}).elements) {
            holders.push_back(each.text());
        }
        return holders;
    }
    /// How many waiters the server knows to have a client that listens to grants: their records have four parts.
    std::size_t heard()
    {
        const auto records = raw.command({"HVALS", "redislock_places:{" + name + "}"}).elements;
        return static_cast<std::size_t>(std::ranges::count_if(
            records, [](const Value& record) { return std::ranges::count(record.text(), ' ') == 4; }));
    }
    std::vector<Served> served()
    {
        std::vector<Served> all;
        for (const auto& each : raw.command({"LRANGE", CrowdProcess::servedKey(name), "0", "-1"}).elements) {
            std::istringstream words(each.text());
            words >> all.emplace_back().holder >> all.back().microseconds;
        }
        return all;
    }
    static std::vector<std::string> holdersOf(const std::vector<Served>& all)
    {
        std::vector<std::string> holders;
        std::ranges::transform(all, std::back_inserter(holders), &Served::holder);
        return holders;
    }

    const std::string name = uniqueName();
    const std::string queueKey = "redisson_lock_queue:{" + name + "}";
    const std::string timesKey = "redisson_lock_timeout:{" + name + "}";
    std::vector<std::unique_ptr<CrowdProcess>> processes;
    std::vector<std::string> ids; ///< of their clients
    std::size_t queued = 0;
    const Client client{config()};
    const FairLock lock = client.getFairLock(name);
};

TEST_F(FairCrowd, FiveHundredOfEightProcessesAreServedInTheOrderOfTheQueueWithThreeRequestsEach)
{
    lock.lock();
    lock.unlock(); // from now on the server knows the scripts
    lock.lock(10min);
    const auto before = scriptCalls();
    for (int i = 0; i < 8; ++i) {
        start(1min);
    }
    joinEach(60);
    processes.front()->join(20);
    ASSERT_TRUE(eventually([&] { return queue().size() == 500U && heard() == 500U; }, patience));
    const auto order = queue();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(eventually([&] { return served().size() == 500U; }, patience));
    EXPECT_EQ(holdersOf(served()), order);
    ASSERT_TRUE(eventually([&] { return !raw.exists(name); }, patience)) << "the last release";
    EXPECT_LE(scriptCalls() - before, 3U * 500U + 501U) << "besides the releases";
}

TEST_F(FairCrowd, DeadStoppedAndCancelledWaitersCostOnePlacesLifeTogetherAndNobodysPlace)
{
    constexpr milliseconds pollInterval = 1s;
    lock.lock(10min);
    for (int i = 0; i < 10; ++i) {
        start(pollInterval);
    }
    for (int i = 0; i < 5; ++i) {
        joinEach(10); // so that there are some of each process everywhere in the queue
    }
    const auto before = queue();
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        cancelled += std::stoul(processes[i]->ask("cancel"));
    }
    EXPECT_EQ(cancelled, 8U * 5U);
    ASSERT_TRUE(eventually([&] { return queue().size() == queued - cancelled; }));
    processes[8]->freeze();
    processes[9]->kill();
    const auto rest = queue();
    const auto isAlive = [&](const std::string& holder) {
        return !holder.starts_with(ids[8]) && !holder.starts_with(ids[9]);
    };
    std::vector<std::string> alive;
    std::ranges::copy_if(rest, std::back_inserter(alive), isAlive);
    EXPECT_EQ(alive.size(), 400U - cancelled);
    EXPECT_TRUE(std::ranges::includes(std::set(before.begin(), before.end()), std::set(rest.begin(), rest.end())));

    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(eventually([&] { return served().size() >= alive.size(); }, patience));
    const auto first = served();
    EXPECT_EQ(holdersOf(first), alive);
    std::chrono::microseconds lost{0};
    for (std::size_t i = 1; i < first.size(); ++i) {
        const auto mine = std::ranges::find(rest, first[i].holder);
        if (mine != rest.end() && mine != rest.begin() && !isAlive(mine[-1])) {
            lost += std::chrono::microseconds(first[i].microseconds - first[i - 1].microseconds);
        }
    }
    RecordProperty("lost_ms", std::to_string(lost.count() / 1000));
    EXPECT_LE(lost, 6 * pollInterval);

    processes[8]->thaw();
    ASSERT_TRUE(eventually([&] { return served().size() == alive.size() + 50U; }, patience)) << "they come back";
    ASSERT_TRUE(eventually([&] { return !raw.exists(name); }, patience)) << "the last release";
}

} // namespace
} // namespace redislock::test
