// Servers that forget or refuse.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

using KilledServer = FaultTest;
using OutOfMemory = FaultTest;
using TooFewReplicas = FaultTest;
using ReadOnlyServer = FaultTest;
using ForgottenScripts = FaultTest;
using PartialEffect = FaultTest;
using RefusedAfterExecution = FaultTest;

TEST_F(KilledServer, WithoutPersistenceLosesTheHoldWithTheNextRenewal)
{
    config.watchdogTimeout = 3000ms;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const auto grantedAt = bootTime();
    server.kill();
    expectFault(!server.isRunning(), "a killed server");
    server.restart();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_LT(bootTime() - grantedAt, 2800ms) << "not by the renewal, but when its time was over";
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_FALSE(redis.exists(name)) << "a lost hold was made again";
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_FALSE(redis.exists(name));
    EXPECT_TRUE(seen->await(Event::lost));
    EXPECT_EQ(seen->count(Event::lost), 1U);
}

TEST_F(KilledServer, BetweenLockAndUnlockIsNoException)
{
    lock().lock(20s);
    server.kill();
    expectFault(!server.isRunning(), "a killed server");
    server.restart();
    // the lock was freed either by the first try, over the old connection, or by the restart
    EXPECT_THAT(lock().unlock(), ::testing::AnyOf(Unlocked::alreadyLost, Unlocked::released));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(OutOfMemory, RefusesNewLocksAndLetsHeldOnesBeRenewedNestedAndUnlocked)
{
    config.unreachableAfter = 700ms;
    const RedisLock held = lock();
    const RedisLock wanted = lockOf("wanted");
    held.lock();
    redis.command({"CONFIG", "SET", "maxmemory", "1"});

    const Stopwatch watch;
    std::error_code ec;
    EXPECT_FALSE(wanted.tryLock(400ms, 10s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_GE(watch.elapsed(), 400ms);
    EXPECT_LT(watch.elapsed(), 400ms + slack);
    EXPECT_FALSE(wanted.tryLock(ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    wanted.lock(ec);
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_FALSE(redis.exists("wanted"));
    expectFault(errorsSent("OOM") > 0, "OOM");

    EXPECT_TRUE(seen->await(Event::renewed, 2));
    held.lock();
    EXPECT_EQ(countInRedis(), "2");
    EXPECT_EQ(held.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(OutOfMemory, ThatPassesLetsTheWaiterIn)
{
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    auto waiter = waitInBackground(20s);
    const bool refused = eventually([&] { return errorsSent("OOM") > 0; });
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    expectFault(refused, "OOM");
    expectGranted(waiter.get());
}

TEST_F(TooFewReplicas, UnlockIsRepeatedUntilTheServerTakesIt)
{
    lock().lock(20s);
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    auto relief = std::async(std::launch::async, [this] {
        RawRedis own(server);
        const bool refused = eventually([&] { return errorsSent("NOREPLICAS") >= 2; });
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        return refused;
    });
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(relief.get(), "NOREPLICAS");
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(TooFewReplicas, UnlockIsUnconfirmedInTimeAndGoesOnInTheBackground)
{
    config.unreachableAfter = 600ms;
    lock().lock(25s);
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    const Stopwatch watch;
    EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
    EXPECT_LT(watch.elapsed(), config.unreachableAfter + slack);
    EXPECT_FALSE(lock().isHeldByCurrentThread());
    expectFault(errorsSent("NOREPLICAS") > 0, "NOREPLICAS");
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 1200ms + slack));
}

TEST_F(TooFewReplicas, RenewalIsRepeatedAndTheHoldSurvivesAShortRefusal)
{
    config.watchdogTimeout = 3000ms;
    const RedisLock held = lock();
    held.lock();
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_TRUE(seen->await(Event::renewalFailed, 2));
    EXPECT_EQ(seen->all(Event::renewalFailed).front().error, Errc::serverRefused);
    expectFault(errorsSent("NOREPLICAS") >= 2, "NOREPLICAS");
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(TooFewReplicas, LongerThanTheLeaseLosesTheHold)
{
    config.watchdogTimeout = 900ms;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    std::error_code ec;
    EXPECT_FALSE(lockOf("wanted").tryLock(200ms, 10s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    expectFault(errorsSent("NOREPLICAS") > 0, "NOREPLICAS");
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
}

TEST_F(ReadOnlyServer, RefusesLocksInTimeAndUnlocksWhenItIsAMasterAgain)
{
    config.unreachableAfter = 10s; // three attempts to connect, with pauses of up to a second
    lock().lock(20s);
    redis.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
    std::error_code ec;
    const Stopwatch watch;
    EXPECT_FALSE(lockOf("wanted").tryLock(300ms, 10s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_LT(watch.elapsed(), 300ms + slack);
    EXPECT_FALSE(redis.exists("wanted"));
    expectFault(errorsSent("READONLY") > 0, "READONLY");
    const auto before = proxy.accepted();
    auto relief = std::async(std::launch::async, [this, before] {
        const bool refused = eventually([&] { return proxy.accepted() > before + 1; });
        redis.command({"REPLICAOF", "NO", "ONE"});
        return refused;
    });
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(relief.get(), "a replica");
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ReadOnlyServer, ForGoodCostsOneConnectionAPauseAndRefuses)
{
    const RedisLock held = lock();
    held.lock(20s);
    redis.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
    std::error_code ec;
    EXPECT_FALSE(lockOf("wanted").tryLock(ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_EQ(proxy.requests(request(redisLockLock)), 2U) << "a new connection to it is not used";
    for (const bool answersQuestions : {false, true}) { // this does not mean that the server takes writes
        SCOPED_TRACE(answersQuestions);
        std::jthread curious([&](const std::stop_token& stop) {
            while (answersQuestions && !stop.stop_requested()) {
                std::error_code ignored;
                (void)held.isLocked(ignored);
            }
        });
        const auto before = proxy.accepted();
        std::vector<std::jthread> waiters;
        for (int i = 0; i < 10; ++i) {
            waiters.emplace_back([wanted = lockOf("wanted:" + std::to_string(i))] {
                std::error_code refused;
                EXPECT_FALSE(wanted.tryLock(1s, 10s, refused));
                EXPECT_EQ(refused, Errc::serverRefused);
            });
        }
        waiters.clear();
        EXPECT_LE(proxy.accepted() - before, 8U) << "pauses of 40 ms and more, each twice the one before";
    }
    expectFault(errorsSent("READONLY") > 0, "READONLY");
    redis.command({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(ForgottenScripts, AreSentWholeOnceInEveryOperation)
{
    const auto forget = [this] { redis.command({"SCRIPT", "FLUSH"}); };
    const auto wholes = [this](const Script& script) {
        return proxy.requests(Match{.command = "EVAL", .script = script.text()});
    };
    const RedisLock held = lock();
    forget();
    held.lock();
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(wholes(redisLockLock), 1U);
    forget();
    held.lock();
    EXPECT_EQ(countInRedis(), "2");
    EXPECT_EQ(wholes(redisLockLock), 2U);
    forget();
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
    EXPECT_GE(wholes(redisLockRenew), 1U);
    forget();
    EXPECT_TRUE(held.isLocked());
    EXPECT_EQ(wholes(redisLockPttl), 1U);
    forget();
    EXPECT_EQ(held.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(countInRedis(), "1");
    forget();
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
    EXPECT_EQ(wholes(redisLockUnlock), 2U);
    expectFault(errorsSent("NOSCRIPT") >= 6, "NOSCRIPT");
    EXPECT_EQ(seen->count(Event::renewalFailed), 0U);
    EXPECT_EQ(seen->count(Event::lost), 0U);
}

TEST_F(ForgottenScripts, WhileTheConnectionsBreakTooChangeNoCount)
{
    for (const auto& [how, loss] : lostReplies()) {
        SCOPED_TRACE(how);
        redis.command({"SCRIPT", "FLUSH"});
        inject({.command = "EVAL", .script = redisLockLock.text()}, loss);
        lock().lock(20s);
        EXPECT_EQ(countInRedis(), "1");
        redis.command({"SCRIPT", "FLUSH"});
        inject({.command = "EVAL", .script = redisLockUnlock.text()}, loss);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(PartialEffect, OfAScriptThatWasRefusedHalfwayLeavesNoKeyBehind)
{
    redis.command({"ACL", "SETUSER", "partial", "on", ">pw", "~*", "&*", "+@all", "-pexpire"});
    Config limited = config;
    limited.username = "partial";
    limited.password = "pw";
    const Client client(limited);
    std::error_code ec;
    EXPECT_FALSE(client.getLock(name).tryLock(1s, 10s, ec));
    EXPECT_EQ(ec, Errc::permissionDenied);
    expectFault(!redis.command({"ACL", "LOG"}).elements.empty(), "a command refused inside the script");
    const bool gone = eventually([&] { return !redis.exists(name); }, slack);
    EXPECT_TRUE(gone) << "a lock that nobody holds, with " << redis.pttl(name).count() << " ms to live";
    redis.command({"DEL", name});
}

TEST_F(RefusedAfterExecution, AcquireIsGrantedOnceByItsSecondTry)
{
    for (const auto* error : {"-BUSY Redis is busy running a script.\r\n", "-LOADING Redis is loading\r\n",
                              "-ERR Error running script: Script killed by user with SCRIPT KILL.\r\n"}) {
        SCOPED_TRACE(error);
        inject(reply(redisLockLock), Action::replace(error));
        lock().lock(20s);
        EXPECT_EQ(lock().holdCount(), 1U);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(RefusedAfterExecution, AcquireThatGivesUpLeavesNothingBehind)
{
    inject(reply(redisLockLock, 0), Action::replace("-BUSY Redis is busy running a script.\r\n"));
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(300ms, 25s, ec));
    EXPECT_EQ(ec, Errc::serverRefused);
    EXPECT_FALSE(lock().isHeldByCurrentThread());
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, slack)) << "granted in Redis, to nobody";
}

} // namespace
} // namespace redislock::test
