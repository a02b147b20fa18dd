// Servers that are there but do not work: asleep, busy, paused, without a disk, without a command.
#include "fault/fault_test.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

namespace redislock::test {
namespace {

using SleepingServer = FaultTest;
using BusyServer = FaultTest;
using PausedWrites = FaultTest;
using FullDisk = FaultTest;
using MissingCommand = FaultTest;

/// A server that requires a password, and has other data in another database.
class GuardedServer : public FaultTest {
protected:
    GuardedServer() : FaultTest({.password = "secret: @/?#"})
    {
        config.database = 3;
        config.clientName = "fault-test";
        redis.command({"SELECT", "3"});
    }
};

TEST_F(SleepingServer, ForLessThanTheLeaseLosesNothing)
{
    config.watchdogTimeout = 3s;
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock();
    ASSERT_TRUE(seen->await(Event::renewed)); // so that the next renewal meets the sleep
    RawRedis sleeper(server);
    const Stopwatch watch;
    sleeper.send({"DEBUG", "SLEEP", "1.2"});
    auto waiter = std::async(std::launch::async, [wanted = lockOf("wanted")] {
        return wanted.tryLock(20s, 20s) && wanted.unlock() == Unlocked::released;
    });
    sleeper.receive();
    expectFault(watch.elapsed() >= 1200ms, "a server that slept");
    EXPECT_TRUE(waiter.get());
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(BusyServer, IsAskedAgainWithPausesAndServesWhenItsScriptEnds)
{
    config.watchdogTimeout = 6s;
    config.commandTimeout = 3s; // a busy server takes some time to say so
    config.connectTimeout = 3s;
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock();
    redis.command({"CONFIG", "SET", "lua-time-limit", "50"});
    RawRedis runaway(server);
    runaway.send({"EVAL", "while true do end", "0"});
    EXPECT_TRUE(eventually([&] { return redis.command({"PING"}).isError(); }));
    proxy.clearRequestLog();
    std::error_code ec;
    const Stopwatch watch;
    EXPECT_FALSE(lockOf("wanted").tryLock(2s, 10s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_LT(watch.elapsed(), 2s + slack);
    EXPECT_LE(proxy.requests(request(redisLockLock)), 8U) << "it spins";
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    auto waiter = waitInBackground(other, 20s); // this client's connection is still to be made: it is greeted with BUSY
    EXPECT_TRUE(seen->await(Event::renewalFailed));
    EXPECT_EQ(seen->all(Event::renewalFailed).front().error, Errc::serverRefused);
    EXPECT_EQ(redis.command({"SCRIPT", "KILL"}).text(), "OK");
    EXPECT_TRUE(seen->await(Event::renewed));
    expectFault(errorsSent("BUSY") > 0, "BUSY");
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    expectGranted(waiter.get());
    runaway.disconnect();
}

TEST_F(PausedWrites, AreWaitedForLikeASlowAnswer)
{
    config.commandTimeout = 3s;
    lock().lock(20s);
    redis.command({"CLIENT", "PAUSE", "500", "WRITE"});
    const Stopwatch watch;
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(watch.elapsed() > 350ms, "a pause");
    EXPECT_FALSE(redis.exists(name));
    EXPECT_EQ(requestsFor(redisLockUnlock).size(), 1U);
}

TEST_F(PausedWrites, ForLongerThanTheLeaseLoseTheHoldInTime)
{
    config.watchdogTimeout = 900ms;
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    redis.command({"CLIENT", "PAUSE", "60000", "WRITE"});
    const Stopwatch watch;
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_LT(watch.elapsed(), 900ms + slack);
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_TRUE(seen->await(Event::renewalFailed));
    EXPECT_EQ(seen->count(Event::lost), 1U);
    redis.command({"CLIENT", "UNPAUSE"});
    expectFault(seen->count(Event::renewalFailed) > 0, "a pause");
}

TEST_F(FullDisk, RefusesLocksAndUnlocksUntilItsServerCanSaveAgain)
{
    lock().lock(20s);
    const auto file = server.folder() / "dump.rdb";
    std::filesystem::create_directory(file); // so that nothing can be saved under this name
    redis.command({"CONFIG", "SET", "save", "3600 1"});
    redis.command({"BGSAVE"});
    ASSERT_TRUE(eventually([&] { return redis.info("rdb_last_bgsave_status") == "err"; }));
    std::error_code ec;
    const Stopwatch watch;
    EXPECT_FALSE(lockOf("wanted").tryLock(300ms, 10s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_LT(watch.elapsed(), 300ms + slack);
    const auto before = errorsSent("MISCONF");
    auto relief = std::async(std::launch::async, [&] {
        RawRedis own(server);
        const bool refused = eventually([&] { return errorsSent("MISCONF") > before; });
        std::filesystem::remove(file);
        own.command({"BGSAVE"});
        return refused && eventually([&] { return own.info("rdb_last_bgsave_status") == "ok"; });
    });
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(relief.get(), "MISCONF");
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(MissingCommand, IsToldAtOnceAndGrantsNothing)
{
    for (const auto* missing : {"EVALSHA", "EVAL"}) {
        SCOPED_TRACE(missing);
        testing::RedisServer managed({.arguments = {"--rename-command", missing, "elsewhere"}});
        Config others = config;
        others.endpoint.port = managed.port();
        others.observer = nullptr;
        const Client client(others);
        const RedisLock lock = client.getLock(name);
        const Stopwatch watch;
        std::error_code ec;
        lock.lock(ec);
        EXPECT_EQ(ec, Errc::unsupported);
        EXPECT_FALSE(lock.isLocked(ec));
        EXPECT_EQ(ec, Errc::unsupported);
        EXPECT_LT(watch.elapsed(), slack);
        RawRedis truth(managed);
        expectFault(truth.command({missing, "", "0"}).isError(), "a missing command");
        EXPECT_EQ(truth.command({"DBSIZE"}).integer(), 0);
    }
}

TEST_F(MissingCommand, OfAReleaseIsReplacedByOneThatEveryGrantNeeds)
{
    testing::RedisServer managed({.arguments = {"--rename-command", "DEL", "elsewhere"}});
    Config others = config;
    others.endpoint.port = managed.port();
    others.observer = nullptr;
    const Client client(others);
    RawRedis truth(managed);
    const auto halves = client.getReadWriteLock(name);
    const std::vector<Lock> kinds{client.getLock(name),     client.getFairLock(name), client.getFencedLock(name),
                                  client.getSpinLock(name), halves.readLock(),        halves.writeLock()};
    for (const auto& lock : kinds) {
        lock.lock();
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_FALSE(truth.exists(name));
        lock.lock();
        EXPECT_TRUE(lock.forceUnlock());
        EXPECT_FALSE(truth.exists(name));
        EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    }
    expectFault(truth.command({"DEL", name}).isError(), "a missing command");
}

TEST_F(MissingCommand, OfAScriptIsNamed)
{
    testing::RedisServer managed({.arguments = {"--rename-command", "PTTL", "elsewhere"}});
    Config others = config;
    others.endpoint.port = managed.port();
    others.observer = nullptr;
    const Client client(others);
    try {
        client.getLock(name).lock();
        ADD_FAILURE();
    } catch (const LockError& e) {
        EXPECT_EQ(e.code(), Cause::unknownCommand);
        EXPECT_THAT(e.what(), ::testing::HasSubstr("command called from"));
        expectFault(true, "a missing command");
    }
}

TEST_F(GuardedServer, IsToldEverythingOnEveryConnectionBeforeTheFirstLock)
{
    config.watchdogTimeout = 3s;
    RawRedis zero(server);
    std::int64_t killed = 0;
    for (int round = 0; round < 10; ++round) {
        lock().lock(20s);
        EXPECT_EQ(countInRedis(), "1") << "not in its database";
        killed += redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer();
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_EQ(zero.command({"DBSIZE"}).integer(), 0) << "in the wrong database";
    }
    expectFault(killed >= 10, "killed connections");
    const RawRedis::Arguments greeting{"AUTH", "HELLO", "SELECT", "CLIENT", "PING"};
    std::map<std::size_t, RawRedis::Arguments> said;
    for (const auto& logged : proxy.requestLog()) {
        said[logged.connection].push_back(logged.arguments.front());
    }
    EXPECT_GE(said.size(), 10U);
    for (const auto& [connection, commands] : said) {
        const auto count = std::min(commands.size(), greeting.size());
        EXPECT_TRUE(
            std::equal(greeting.begin(), greeting.begin() + static_cast<std::ptrdiff_t>(count), commands.begin()))
            << ::testing::PrintToString(commands);
    }
}

} // namespace
} // namespace redislock::test
