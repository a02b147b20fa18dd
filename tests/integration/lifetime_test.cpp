// Clients, locks and guards that end in every order, on every thread.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Lifetime : public LockTest {};

TEST_F(Lifetime, ClientLockAndGuardMayEndInAnyOrderOnAnyThread)
{
    std::array<int, 3> order{0, 1, 2};
    Worker other;
    Config config = LockTest::config();
    config.watchdogTimeout = 300ms;
    do {
        for (const bool elsewhere : {false, true}) {
            std::optional<Client> client(config);
            std::optional<RedisLock> lock(client->getLock(uniqueName()));
            std::optional<LockGuard> guard(std::in_place, *lock);
            EXPECT_EQ(D::lock(client->getLock(uniqueName())), true); // and a hold that nobody ends
            for (const int which : order) {
                const auto end = [&] { which == 0 ? client.reset() : which == 1 ? lock.reset() : guard.reset(); };
                elsewhere ? other.run(end) : end();
            }
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Lifetime, UnusedClientConnectsToNobodyAndStartsNothing)
{
    const auto before = raw.info("total_connections_received");
    {
        const Client client(config());
        const auto lock = client.getLock("never used");
        EXPECT_EQ(lock.holdCount(), 0U);
        EXPECT_EQ(D::unlock(lock), Errc::notHeld);
    }
    EXPECT_EQ(raw.info("total_connections_received"), before);
}

TEST_F(Lifetime, DestructorDrainsTheReleasesOfGuards)
{
    std::vector<std::string> names;
    {
        const Client client(config());
        std::vector<LockGuard> guards;
        for (int i = 0; i < 100; ++i) {
            names.push_back(uniqueName());
            guards.emplace_back(client.getLock(names.back()), Lease(60s));
        }
        guards.clear();
    }
    for (const auto& name : names) {
        EXPECT_FALSE(raw.exists(name));
    }
}

TEST_F(Lifetime, ShutdownTellsAllWaiters)
{
    const Client other(config());
    Client client(config());
    const auto name = uniqueName();
    EXPECT_EQ(D::lock(other.getLock(name), 60s), true);
    const auto here = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(here, 500ms), true);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::future<Result<bool>>> waiters;
    for (int i = 0; i < 24; ++i) {
        workers.push_back(std::make_unique<Worker>());
        const auto lock = i % 2 == 0 ? client.getLock(name) : here; // held by others, held by this client
        waiters.push_back(
            workers.back()->start([lock, i] { return i % 3 == 0 ? D::tryLock(lock, 1h, 10s) : D::lock(lock); }));
    }
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    const auto token = here.stopToken();
    const Stopwatch watch;
    EXPECT_TRUE(client.shutdown());
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.get(), Errc::shutdown);
    }
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_TRUE(token.stop_requested());
    EXPECT_EQ(here.holdCount(), 0U);
    EXPECT_EQ(D::unlock(here), Unlocked::alreadyLost);
    EXPECT_EQ(D::lock(here), Errc::shutdown);
    EXPECT_TRUE(client.shutdown()) << "again: nothing to do";
    EXPECT_EQ(D::unlock(other.getLock(name)), Unlocked::released);
}

TEST_F(Lifetime, ShutdownAmidTheWorkOfManyThreadsHarmsNobody)
{
    for (int round = 0; round < 5; ++round) {
        auto config = LockTest::config();
        config.watchdogTimeout = 300ms;
        std::optional<Client> client(config);
        const auto base = uniqueName();
        std::vector<std::thread> threads;
        std::atomic<int> done{0};
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&done, i, lock = client->getLock(clean(base + std::to_string(i % 3)))] {
                for (;;) {
                    std::error_code ec;
                    if (i % 2 == 0) {
                        const LockGuard held(lock, ec);
                    } else if (lock.lock(ec); !ec) {
                        std::error_code ignored;
                        lock.unlock(ignored);
                    }
                    ++done;
                    if (ec) {
                        EXPECT_EQ(ec, Errc::shutdown);
                        return;
                    }
                }
            });
        }
        ASSERT_TRUE(eventually([&] { return done > 200; }));
        client.reset();
        for (auto& thread : threads) {
            thread.join();
        }
    }
}

TEST_F(Lifetime, MovedClientKeepsItsLocksAndAnAssignedOneEndsItsOwn)
{
    Client first(config());
    const auto lock = first.getLock(uniqueName());
    EXPECT_EQ(D::lock(lock), true);
    Client second(std::move(first));
    EXPECT_EQ(second.getLock(lock.name()).holdCount(), 1U);
    Client third(config());
    const auto ended = third.getLock(uniqueName());
    third = std::move(second);
    EXPECT_EQ(D::lock(ended), Errc::shutdown);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(D::unlock(third.getLock(lock.name())), Unlocked::released);
}

TEST_F(Lifetime, ObserverMayDestroyItsClient)
{
    auto client = std::make_unique<Client>(observed());
    const auto lock = client->getLock(uniqueName());
    std::atomic<bool> destroyed{false};
    observer()->react([&](const Told& told) {
        if (told.what == "acquired") {
            client.reset();
            destroyed = true;
        }
    });
    EXPECT_EQ(D::lock(lock), true);
    ASSERT_TRUE(eventually([&] { return destroyed.load(); }));
    EXPECT_EQ(D::lock(lock), Errc::shutdown);
    EXPECT_EQ(D::unlock(lock), Unlocked::alreadyLost);
}

TEST_F(Lifetime, StopCallbackMayDestroyItsClient)
{
    auto client = std::make_unique<Client>(observed());
    const auto lock = client->getLock(uniqueName());
    std::atomic<bool> destroyed{false};
    EXPECT_EQ(D::lock(lock, 250ms), true);
    const std::stop_callback callback(lock.stopToken(), [&] {
        client.reset();
        destroyed = true;
    });
    ASSERT_TRUE(eventually([&] { return destroyed.load(); }));
    EXPECT_EQ(D::lock(lock), Errc::shutdown);
}

TEST_F(Lifetime, ManyClientsComeAndGo)
{
    const auto name = uniqueName();
    for (int i = 0; i < 50; ++i) {
        const Client client(config());
        const auto lock = client.getLock(name);
        ASSERT_EQ(D::lock(lock), true);
        ASSERT_EQ(D::unlock(lock), Unlocked::released);
    }
    EXPECT_TRUE(eventually([&] { return raw.info("connected_clients") == "1"; })) << "this test's own";
}

} // namespace
} // namespace redislock::test
