// Servers that come back with all data, or with most of it, and servers that evict keys for lack of memory.
#include "fault/fault_test.hpp"

#include <algorithm>
#include <filesystem>

namespace redislock::test {
namespace {

/// A server that writes everything to its disk before it answers.
class DurableServer : public FaultTest {
protected:
    DurableServer() : FaultTest({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}}) {}
};

using EvictedKey = FaultTest;

/// A server that is slow to read its data when it starts.
class LoadingServer : public FaultTest {
protected:
    LoadingServer()
        : FaultTest({.arguments = {"--key-load-delay", "600", "--loading-process-events-interval-bytes", "1024"}})
    {
    }
};

TEST_F(DurableServer, KilledAndRestartedKeepsTheHoldAndItsCount)
{
    config.watchdogTimeout = 4s;
    const RedisLock held = lock();
    held.lock();
    held.lock();
    server.kill();
    expectFault(!server.isRunning(), "a killed server");
    server.restart();
    EXPECT_EQ(countInRedis(), "2");
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(DurableServer, WhoseLogLostItsEndLosesTheHoldWithTheNextRenewal)
{
    config.watchdogTimeout = 4s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const auto grantedAt = bootTime();
    server.kill();
    bool torn = false;
    for (const auto& file : std::filesystem::recursive_directory_iterator(server.folder())) {
        const auto path = file.path().string(); // the second name is that of versions before 7
        if ((path.ends_with(".incr.aof") || path.ends_with("/appendonly.aof")) && file.file_size() > 10) {
            std::filesystem::resize_file(path, file.file_size() - 10); // as a power cut may leave the file
            torn = true;
        }
    }
    server.restart();
    expectFault(torn && !redis.exists(name), "a lost write");
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_LT(bootTime() - grantedAt, 3800ms) << "not by the renewal, but when its time was over";
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_FALSE(redis.exists(name)) << "a lost hold was made again";
}

TEST_F(LoadingServer, IsWaitedForAndLosesNoHold)
{
    config.watchdogTimeout = 6s;
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock();
    redis.command({"DEBUG", "POPULATE", "1500"});
    ASSERT_EQ(redis.command({"SAVE"}).text(), "OK");
    server.kill();
    auto waiter = std::async(std::launch::async, [wanted = lockOf("wanted")] {
        return wanted.tryLock(20s, 20s) && wanted.unlock() == Unlocked::released;
    });
    server.restart(); // which ends with the thread that starts it
    EXPECT_TRUE(waiter.get());
    const auto ended = seen->all(Event::disconnected);
    expectFault(
        std::any_of(ended.begin(), ended.end(), [](const auto& told) { return told.error == Errc::serverRefused; }),
        "a server that is loading");
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
    redis.command({"FLUSHALL"});
}

TEST_F(EvictedKey, LosesTheHoldWithTheNextRenewal)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const auto grantedAt = bootTime();
    redis.command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    redis.command({"SET", "another", "program's"});
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    expectFault(redis.info("evicted_keys") != "0" && !redis.exists(name), "an evicted lock");
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_LT(bootTime() - grantedAt, 2800ms) << "not by the renewal, but when its time was over";
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_FALSE(redis.exists(name));
    redis.command({"DEL", "another"});
}

} // namespace
} // namespace redislock::test
