// Real clients of a real server: the records of both fit together, and a false record is found.
#include "history/recorded_group.hpp"
#include "history/recorded_guard.hpp"
#include "history/report.hpp"
#include "history/truth_recorder.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test::history {
namespace {

using namespace std::chrono_literals;

class Recording : public ::testing::Test {
protected:
    void SetUp() override
    {
        TruthRecorder::recordClock(*recorder);
        truth.attach();
    }

    std::unique_ptr<Client> makeClient()
    {
        auto config = Config::fromUrl(server.url());
        config.watchdogTimeout = 300ms;
        config.observer = std::make_shared<HistoryObserver>(recorder);
        auto client = std::make_unique<Client>(config);
        recordSettings(*recorder, *client);
        return client;
    }

    RecordedLock lockOf(const Client& client, int thread) { return {recorder, client, "stock:42", thread}; }

    RecordedGroup groupOf(const Client& client, int thread)
    {
        return {recorder, "multi", "both", {{client, "stock:1"}, {client, "stock:2"}}, thread};
    }

    [[nodiscard]] std::ptrdiff_t told(Op op) const
    {
        const auto records = readHistory(folder.path());
        return std::count_if(records.begin(), records.end(), [&](const Record& record) { return record.op == op; });
    }

    /// Observers are called a moment after the call has returned.
    [[nodiscard]] bool allAreTold() const
    {
        const auto records = readHistory(folder.path());
        std::ptrdiff_t holds = 0;
        for (const auto& record : records) {
            const bool isHold = record.op == Op::lock && record.phase == Phase::ok && record.count == 1;
            holds += isHold && record.kind != "multi" ? 1 : 0; // a group's events have no holder
        }
        return told(Op::acquired) == holds;
    }

    History read()
    {
        EXPECT_TRUE(eventually([this] { return allAreTold(); }));
        EXPECT_TRUE(truth.awaitCaughtUp());
        truth.detach();
        TruthRecorder::recordClock(*recorder);
        return understand(readHistory(folder.path()));
    }

    testing::detail::TemporaryFolder folder;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>(folder.path() / "clients.jsonl");
    testing::RedisServer server{{.arguments = {"--repl-diskless-sync-delay", "0"}}};
    TruthRecorder truth{server, std::make_shared<Recorder>(folder.path() / "truth.jsonl")};
};

TEST_F(Recording, OfTwoClientsIsWithoutViolationAndHasItsTruth)
{
    const auto first = makeClient();
    const auto second = makeClient();
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; ++i) {
        threads.emplace_back([&, i] {
            auto lock = lockOf(i % 2 == 0 ? *first : *second, i);
            for (int round = 0; round < 50; ++round) {
                ASSERT_TRUE(lock.tryLock(10s, round % 2 == 0 ? keepRenewing : Lease(1s)));
                if (round % 10 == 0) {
                    ASSERT_TRUE(lock.tryLock(10s, keepRenewing));
                    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
                }
                EXPECT_TRUE(lock.sample());
                const auto how = lock.unlock();
                EXPECT_TRUE(how == Unlocked::released || how == Unlocked::passedOn);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    const auto history = read();
    const auto report = check(history, {.leastHandOvers = 10});
    EXPECT_TRUE(report.violations.empty()) << textOf(history, report.violations.front());
    EXPECT_EQ(history.holds.size(), 200U);
    const auto passed = std::ranges::count_if(history.holds, &Hold::wasPassedToIt);
    EXPECT_EQ(history.grants.size() + static_cast<std::size_t>(passed), 200U) << "each hold is granted, or passed on";
    EXPECT_EQ(report.holdsCompared, 200U);
    EXPECT_GE(report.deadlinesCompared, 400U);
}

TEST_F(Recording, OfALossAndOfRenewalsFitsToo)
{
    const auto client = makeClient();
    auto lock = lockOf(*client, 1);
    ASSERT_TRUE(lock.tryLock(1s, keepRenewing));
    EXPECT_TRUE(eventually([&] { return lock.sample() && told(Op::renewed) >= 2; }));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_TRUE(lock.tryLock(1s, 100ms));
    EXPECT_TRUE(eventually([&] { return !lock.sample(); }));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    auto other = lockOf(*client, 2);
    ASSERT_TRUE(other.tryLock(1s, keepRenewing));
    EXPECT_EQ(other.unlock(), Unlocked::released);
    const auto history = read();
    const auto report = check(history, {.leastHandOvers = 1});
    EXPECT_TRUE(report.violations.empty()) << textOf(history, report.violations.front());
    ASSERT_EQ(history.holds.size(), 3U);
    EXPECT_EQ(history.holds[1].ending, Hold::Ending::lost);
    EXPECT_GE(history.grants[0].expiries.size(), 3U);
}

TEST_F(Recording, OfGuardsFunctionsAndAsynchronousCallsFitsToo)
{
    const auto client = makeClient();
    auto lock = lockOf(*client, 1);
    {
        RecordedGuard held(lock, 1s, 5s);
        ASSERT_TRUE(held.isHeld());
        ASSERT_TRUE(lock.tryLock(1s, keepRenewing));
        EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
        EXPECT_TRUE(held.sample());
    }
    EXPECT_TRUE(executeRecorded(lock, 1s, keepRenewing, [&] { EXPECT_TRUE(lock.sample()); }));
    {
        auto [ec, guard] = awaitRecorded(lock, 1s, keepRenewing);
        RecordedGuard held(lock, ec, std::move(guard));
        ASSERT_TRUE(held.isHeld());
        EXPECT_TRUE(held.sample());
        auto other = lockOf(*client, 2);
        EXPECT_FALSE(RecordedGuard(other, 1ms, 5s).isHeld());
        EXPECT_EQ(held.release(), Unlocked::released);
        EXPECT_FALSE(held.isHeld());
    }
    const auto history = read();
    const auto report = check(history, {.leastHandOvers = 0});
    EXPECT_TRUE(report.violations.empty()) << textOf(history, report.violations.front());
    ASSERT_EQ(history.holds.size(), 3U);
    EXPECT_EQ(history.holds[0].ending, Hold::Ending::unconfirmed);
    EXPECT_EQ(history.holds[1].ending, Hold::Ending::unconfirmed);
    EXPECT_EQ(history.holds[2].ending, Hold::Ending::released);
    EXPECT_EQ(report.holdsCompared, 3U);
}

TEST_F(Recording, OfAGroupFitsToItsMembers)
{
    const auto first = makeClient();
    const auto second = makeClient();
    for (const auto* client : {first.get(), second.get(), first.get()}) {
        auto both = groupOf(*client, 1);
        ASSERT_TRUE(both.tryLock(1s, keepRenewing));
        EXPECT_FALSE(both.tryLock(1s, keepRenewing)) << "it is not re-entrant";
        EXPECT_TRUE(both.sample());
        EXPECT_EQ(both.unlock(), Unlocked::released);
        EXPECT_FALSE(both.sample());
    }
    auto both = groupOf(*second, 2);
    EXPECT_TRUE(RecordedGuard(both, 1s, 5s).isHeld());
    const auto history = read();
    const auto report = check(history, {.leastHandOvers = 1});
    EXPECT_TRUE(report.violations.empty()) << textOf(history, report.violations.front());
    ASSERT_EQ(history.holds.size(), 4U);
    EXPECT_EQ(history.grants.size(), 8U);
    EXPECT_GE(report.judged.at("S13"), 8U);
}

TEST_F(Recording, OfAGroupShowsAForeignDeletionAndItsLoss)
{
    const auto client = makeClient();
    auto both = groupOf(*client, 1);
    ASSERT_TRUE(both.tryLock(1s, keepRenewing));
    RawRedis(server).command({"DEL", "stock:2"});
    EXPECT_TRUE(both.sample()) << "nobody told it";
    EXPECT_TRUE(eventually([&] { return !both.sample(); })) << "a renewal has";
    EXPECT_EQ(both.unlock(), Unlocked::alreadyLost);
    const auto history = read();
    ASSERT_EQ(history.holds.size(), 1U);
    EXPECT_EQ(history.holds[0].ending, Hold::Ending::lost);
    const auto report = check(history, {.leastHandOvers = 0});
    EXPECT_TRUE(std::any_of(report.violations.begin(), report.violations.end(),
                            [](const Violation& violation) { return violation.invariant == "S13"; }));
}

TEST_F(Recording, ShowsAForeignDeletion)
{
    const auto client = makeClient();
    auto lock = lockOf(*client, 1);
    ASSERT_TRUE(lock.tryLock(1s, 10s));
    RawRedis(server).command({"DEL", "stock:42"});
    EXPECT_TRUE(lock.sample()) << "nobody told it";
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    const auto history = read();
    const auto report = check(history, {.leastHandOvers = 0});
    ASSERT_FALSE(report.violations.empty());
    EXPECT_EQ(report.violations.front().invariant, "S5") << textOf(history, report.violations.front());
}

TEST(TruthRecorder, StaysAttachedToAServerThatIsNeverSilent)
{
    const testing::detail::TemporaryFolder folder;
    const testing::RedisServer server({.arguments = {"--repl-diskless-sync-delay", "0", "--repl-timeout", "1"}});
    TruthRecorder truth(server, std::make_shared<Recorder>(folder.path() / "truth.jsonl"));
    truth.attach();
    RawRedis redis(server);
    for (const Stopwatch watch; watch.elapsed() < 3500ms;) {
        redis.command({"PUBLISH", "a", "b"});
        std::this_thread::sleep_for(5ms);
    }
    EXPECT_FALSE(truth.failed());
    EXPECT_TRUE(truth.awaitCaughtUp());
}

} // namespace
} // namespace redislock::test::history
