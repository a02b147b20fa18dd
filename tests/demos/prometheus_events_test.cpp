// How the events of a client are counted and measured.
#include "demos/registered.hpp"
#include "redislock/redislock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

const Labels redisLock{{"kind", "redisLock"}};

Labels with(Labels labels, const char* name, const char* value)
{
    labels.emplace(name, value);
    return labels;
}

TEST(PrometheusEvents, EachIsCountedByAMetricOfItsOwnAsPrometheusReadsIt)
{
    const Registered registered;
    tellEverything(*registered.observer(), {"stock:42", "a:17", ObjectKind::fairLock});
    for (const auto* line : {
             R"(redislock_acquired_total{kind="fairLock"} 1)",
             R"(redislock_contended_total{kind="fairLock"} 1)",
             R"(redislock_wait_seconds_count{kind="fairLock",outcome="acquired"} 1)",
             R"(redislock_wait_seconds_bucket{kind="fairLock",outcome="acquired",le="0.025"} 0)",
             R"(redislock_wait_seconds_bucket{kind="fairLock",outcome="acquired",le="0.05"} 1)",
             R"(redislock_wait_seconds_sum{kind="fairLock",outcome="contended"} 0.04)",
             R"(redislock_attempts_sum{kind="fairLock",outcome="acquired"} 2)",
             R"(redislock_attempts_sum{kind="fairLock",outcome="contended"} 3)",
             R"(redislock_renewed_total{kind="fairLock"} 1)",
             R"(redislock_renewal_seconds_sum{kind="fairLock"} 0.002)",
             R"(redislock_renewal_failures_total{cause="outOfMemory",kind="fairLock"} 1)",
             R"(redislock_at_risk_total{kind="fairLock",reason="unrenewed"} 1)",
             R"(redislock_lost_total{kind="fairLock",reason="gone"} 1)",
             R"(redislock_lost_total{kind="fairLock",reason="unrenewed"} 0)",
             R"(redislock_released_total{kind="fairLock",result="released"} 1)",
             R"(redislock_released_total{kind="fairLock",result="unconfirmed"} 0)",
             R"(redislock_hold_seconds_sum{kind="fairLock"} 0.06)",
             R"(redislock_unconfirmed_total{kind="fairLock"} 1)",
             R"(redislock_held_too_long_total{kind="fairLock"} 1)",
             R"(redislock_keys_without_ttl_total{kind="fairLock"} 1)",
             R"(redislock_pushes_missed_total{kind="fairLock"} 1)",
             R"(redislock_subscribes_refused_total{kind="fairLock"} 1)",
             R"(redislock_connected_total{purpose="commands"} 1)",
             R"(redislock_disconnected_total{cause="outOfMemory",purpose="renewals"} 1)",
         }) {
        EXPECT_TRUE(registered.has(line)) << line;
    }
    for (const auto& line : registered.lines()) {
        EXPECT_EQ(line.find("stock:42"), std::string::npos) << "names are without number: " << line;
        EXPECT_EQ(line.find("a:17"), std::string::npos) << line;
    }
}

TEST(PrometheusEvents, WhatIsNotKnownOrHasNoNameIsCountedWithoutHarm)
{
    const Registered registered;
    const auto observer = registered.observer();
    observer->released({"room", {}, ObjectKind::semaphore}, Unlocked::released, 0ns);
    EXPECT_EQ(registered.count("redislock_hold_seconds", {{"kind", "semaphore"}}), 0) << "zero: it is not known";
    observer->lost({"x", {}, ObjectKind(77)}, LossReason(77));
    EXPECT_EQ(registered.count("redislock_lost_total", {{"kind", "unknown"}, {"reason", "unknown"}}), 1);
    observer->disconnected("commands", std::make_error_code(std::errc::io_error), "");
    EXPECT_EQ(registered.count("redislock_disconnected_total", {{"purpose", "commands"}, {"cause", "other"}}), 1);
    observer->disconnected("commands", Errc::badReply, "");
    EXPECT_EQ(registered.count("redislock_disconnected_total", {{"purpose", "commands"}, {"cause", "badReply"}}), 1);
}

// --- A client -------------------------------------------------------------------------------------------------------

class PrometheusClient : public ::testing::Test {
protected:
    Config observed()
    {
        auto config = Config::fromUrl(server.url());
        config.watchdogTimeout = 600ms;
        config.observer = registered.observer();
        return config;
    }
    [[nodiscard]] bool await(std::string_view name, const Labels& labels, double least)
    {
        return eventually([&] { return registered.count(name, labels).value_or(-1) >= least; });
    }

    testing::RedisServer server;
    Registered registered;
};

TEST_F(PrometheusClient, CountsAreThoseOfWhatWasDone)
{
    const Client elsewhere(Config::fromUrl(server.url()));
    const Client client(observed());
    const auto lock = client.getLock("stock:42");
    for (int i = 0; i < 3; ++i) {
        lock.lock();
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    const auto theirs = elsewhere.getLock("stock:42");
    theirs.lock();
    EXPECT_FALSE(lock.tryLock());
    EXPECT_FALSE(lock.tryLock(50ms));
    theirs.unlock();
    lock.lock();
    ASSERT_TRUE(await("redislock_renewed_total", redisLock, 1));
    EXPECT_TRUE(lock.forceUnlock());
    ASSERT_TRUE(await("redislock_lost_total", with(redisLock, "reason", "forced"), 1));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    const auto semaphore = client.getSemaphore("room");
    semaphore.trySetPermits(1);
    semaphore.acquire();
    semaphore.release();
    ASSERT_TRUE(await("redislock_released_total", {{"kind", "semaphore"}, {"result", "released"}}, 1));

    EXPECT_TRUE(registered.has(R"(redislock_acquired_total{kind="redisLock"} 4)"));
    EXPECT_TRUE(registered.has(R"(redislock_contended_total{kind="redisLock"} 2)"));
    EXPECT_TRUE(registered.has(R"(redislock_released_total{kind="redisLock",result="released"} 3)"));
    EXPECT_TRUE(registered.has(R"(redislock_lost_total{kind="redisLock",reason="forced"} 1)"));
    EXPECT_TRUE(registered.has(R"(redislock_lost_total{kind="redisLock",reason="gone"} 0)"));
    EXPECT_TRUE(registered.has(R"(redislock_acquired_total{kind="semaphore"} 1)"));
    EXPECT_TRUE(registered.has(R"(redislock_connected_total{purpose="commands"} 1)"));
    EXPECT_EQ(registered.count("redislock_wait_seconds", with(redisLock, "outcome", "acquired")), 4);
    EXPECT_EQ(registered.count("redislock_wait_seconds", with(redisLock, "outcome", "contended")), 2);
    EXPECT_EQ(registered.count("redislock_attempts", with(redisLock, "outcome", "acquired")), 4);
    EXPECT_EQ(registered.count("redislock_hold_seconds", redisLock), 3) << "how long the lost one was held is not told";
}

TEST_F(PrometheusClient, ServerThatGoesAndComesBackIsSeenInTheConnectionsAndTheRenewals)
{
    auto config = observed();
    config.watchdogTimeout = 3s;
    const Client client(config);
    const auto lock = client.getLock("stock:42");
    lock.lock();
    server.kill();
    EXPECT_TRUE(eventually([&] { return registered.sum("redislock_renewal_failures_total") >= 1; }));
    EXPECT_THROW((void)client.getLock("another").tryLock(), LockError);
    const Labels refused{{"purpose", "commands"}, {"cause", "connectionRefused"}};
    EXPECT_TRUE(await("redislock_disconnected_total", refused, 1));
    server.restart();
    lock.unlock(); // whose hold may have been lost
    EXPECT_TRUE(await("redislock_connected_total", {{"purpose", "commands"}}, 2));
}

/// What the callers of a run have seen, by kind and outcome.
class Tally {
public:
    void add(const std::string& kind, std::string_view outcome)
    {
        const std::lock_guard lock(mutex_);
        ++counts_[kind + ' ' + std::string(outcome)];
    }
    double operator()(const std::string& kind, std::string_view outcome)
    {
        const std::lock_guard lock(mutex_);
        return counts_[kind + ' ' + std::string(outcome)];
    }

private:
    std::mutex mutex_;
    std::map<std::string, double> counts_;
};

/// Takes a lock again and again: waits, does not, and holds it for longer than its lease.
void comeAndGo(const Lock& lock, const std::string& kind, Tally& tally, const std::atomic<bool>& isOver)
{
    for (int i = 0; !isOver; ++i) {
        try {
            const bool outlives = i % 20 == 0;
            if (!(outlives ? lock.tryLock(10s, 20ms) : lock.tryLock(i % 3 == 0 ? 0ms : 5ms))) {
                tally.add(kind, "contended");
                continue;
            }
            tally.add(kind, "acquired");
            while (outlives && lock.validFor() > 0ms) {
                std::this_thread::sleep_for(1ms);
            }
            std::this_thread::sleep_for(100us);
            tally.add(kind, toString(lock.unlock()));
        } catch (const LockError&) { // while there is no server
            tally.add(kind, "failed");
            std::this_thread::sleep_for(1ms);
        }
    }
}

TEST_F(PrometheusClient, EachCallAndEachHoldIsCountedOnceWhateverBecomesOfIt)
{
    Tally tally;
    std::atomic<bool> isOver = false;
    const std::vector<std::string> kinds{"redisLock", "fairLock", "fencedLock", "readLock", "writeLock", "spinLock"};
    {
        const Client client(observed());
        const std::vector<Lock> locks{client.getLock("plain"),
                                      client.getFairLock("fair"),
                                      client.getFencedLock("fenced"),
                                      client.getReadWriteLock("both").readLock(),
                                      client.getReadWriteLock("both").writeLock(),
                                      client.getSpinLock("spin")};
        std::vector<std::future<void>> workers;
        for (std::size_t i = 0; i < 2 * kinds.size(); ++i) {
            const auto which = i % kinds.size();
            workers.push_back(
                std::async(std::launch::async, [&, which] { comeAndGo(locks[which], kinds[which], tally, isOver); }));
        }
        const auto goOn = [&] {
            const double before = registered.sum("redislock_released_total");
            EXPECT_TRUE(eventually([&] { return registered.sum("redislock_released_total") > before + 300; }));
        };
        goOn();
        for (int i = 0; i < 2; ++i) {
            server.restart(); // without what was in it
            goOn();
        }
        for (const auto& kind : kinds) {
            const Labels ended = with({{"kind", kind}}, "reason", "leaseEnded");
            EXPECT_TRUE(await("redislock_lost_total", ended, 1)) << kind;
        }
        isOver = true;
        for (auto& worker : workers) {
            worker.get();
        }
    }
    const auto count = [&](const char* metric, Labels labels) { return registered.count(metric, labels).value_or(0); };
    for (const auto& kind : kinds) {
        const Labels of{{"kind", kind}};
        for (const std::string outcome : {"acquired", "contended"}) {
            EXPECT_EQ(count(("redislock_" + outcome + "_total").c_str(), of), tally(kind, outcome)) << kind;
            for (const auto* metric : {"redislock_wait_seconds", "redislock_attempts"}) {
                EXPECT_EQ(count(metric, with(of, "outcome", outcome.c_str())), tally(kind, outcome)) << kind << metric;
            }
        }
        double released = 0;
        for (const auto* how : {"released", "unconfirmed", "passedOn"}) {
            EXPECT_EQ(count("redislock_released_total", with(of, "result", how)), tally(kind, how)) << kind << how;
            released += tally(kind, how);
        }
        double lost = 0;
        for (int reason = 0; reason <= static_cast<int>(LossReason::unconfirmed); ++reason) {
            const std::string name(toString(static_cast<LossReason>(reason)));
            lost += count("redislock_lost_total", with(of, "reason", name.c_str()));
        }
        const auto late = count("redislock_released_total", with(of, "result", "alreadyLost"));
        EXPECT_EQ(lost + late, tally(kind, "alreadyLost")) << kind;
        EXPECT_EQ(released + lost + late, tally(kind, "acquired")) << kind;
        EXPECT_EQ(count("redislock_hold_seconds", of), released + late) << kind;
    }
    EXPECT_GE(count("redislock_connected_total", {{"purpose", "commands"}}), 3);
}

TEST_F(PrometheusClient, ClientsWithOneObserverOrOneRegistryAddUpWhateverIsReadMeanwhile)
{
    const auto shared = observed();
    const Client clients[] = {Client(shared), Client(shared), Client(observed())};
    constexpr int rounds = 50;
    std::vector<std::future<void>> workers;
    for (const Client& client : clients) {
        workers.push_back(std::async(std::launch::async, [&client] {
            for (int i = 0; i < rounds; ++i) {
                // Each kind's metrics are made at its first event.
                const LockGuard lock(client.getLock("lock:" + client.id()));
                const LockGuard fair(client.getFairLock("fair:" + client.id()));
            }
        }));
    }
    do {
        EXPECT_LE(registered.sum("redislock_acquired_total"), 6 * rounds);
    } while (workers.back().wait_for(0s) != std::future_status::ready);
    for (auto& worker : workers) {
        worker.get();
    }
    for (const auto* kind : {"redisLock", "fairLock"}) {
        EXPECT_TRUE(await("redislock_released_total", {{"kind", kind}, {"result", "released"}}, 3 * rounds)) << kind;
        EXPECT_EQ(registered.count("redislock_acquired_total", {{"kind", kind}}), 3 * rounds);
        EXPECT_EQ(registered.count("redislock_hold_seconds", {{"kind", kind}}), 3 * rounds);
    }
}

} // namespace
} // namespace redislock::test
