// Faults under asynchronous calls: servers that are gone, refuse or forget, and links that lose data.
#include "fault/asynchronous_test.hpp"

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using asio::use_future;

class AsyncDeadServer : public AsynchronousFaultTest {};
class AsyncRefusingServer : public AsynchronousFaultTest {};
class AsyncLostRequest : public AsynchronousFaultTest {};
class AsyncBrokenLink : public AsynchronousFaultTest {};
class AsyncStandingThread : public AsynchronousFaultTest {};

/// A server with a password.
class AsyncGuardedServer : public AsynchronousFaultTest {
protected:
    AsyncGuardedServer() : AsynchronousFaultTest({.password = "secret"}) {}
};

using Locking = WatchedCall<LockGuard>;
using Releasing = WatchedCall<Unlocked>;

TEST_F(AsyncDeadServer, FromTheStartIsUnreachableInTimeAndAHoldGoesOnUntilItsDeadline)
{
    config.unreachableAfter = 600ms;
    config.watchdogTimeout = 2s;
    auto held = lock().asyncLock(use_future).get();
    const Stopwatch sinceGrant;
    server.kill();
    expectFault(!server.isRunning(), "a killed server");
    Config others = config;
    others.observer = nullptr;
    const Client late(others);
    const Stopwatch watch;
    Locking attempt([&](auto token) { late.getLock("late").asyncTryLock(std::move(token)); });
    Locking waiting([&](auto token) { late.getLock("late").asyncLock(std::move(token)); });
    ASSERT_TRUE(attempt.finish());
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_EQ(attempt.error, Errc::unreachable);
    ASSERT_TRUE(waiting.finish());
    EXPECT_GE(watch.elapsed(), 600ms);
    EXPECT_LT(watch.elapsed(), 600ms + slack);
    EXPECT_EQ(waiting.error, Errc::unreachable);
    EXPECT_TRUE(seen->await(Event::lost));
    EXPECT_FALSE(held);
    EXPECT_GE(sinceGrant.elapsed(), 1900ms) << "before its lease was over";
    EXPECT_GE(seen->count(Event::renewalFailed), 2U) << "it was not tried again";
    EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::alreadyLost);
    server.restart();
    awaitServer();
    expectNothingLeft();
}

TEST_F(AsyncDeadServer, KilledAndRestartedWhileFiftyWaitLetsAllInOneByOne)
{
    constexpr int each = 25;
    foreignLock(100s);
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    std::atomic<int> inside{0};
    std::atomic<int> served{0};
    std::atomic<int> wrong{0};
    for (const auto& waited : {lock(), other.getLock(name)}) {
        for (int i = 0; i < each; ++i) {
            waited.asyncLock(20s, [&](error_code ec, LockGuard held) {
                wrong += !ec && held && ++inside == 1 ? 0 : 1;
                --inside;
                ++served;
            });
        }
    }
    ASSERT_TRUE(eventually([&] {
        return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == 2;
    }));
    server.kill();
    expectFault(!server.isRunning(), "a killed server");
    server.restart();
    EXPECT_TRUE(eventually([&] { return served == 2 * each; }, 20s)) << served;
    EXPECT_EQ(wrong, 0);
    expectNothingLeft();
}

TEST_F(AsyncGuardedServer, RefusesAWrongPasswordAtOnce)
{
    Config wrong = config;
    wrong.password = "guess";
    const Client stranger(wrong);
    const RedisLock locked = stranger.getLock(name);
    const Stopwatch watch;
    Locking locking([&](auto token) { locked.asyncLock(std::move(token)); });
    WatchedCall<bool> asking([&](auto token) { locked.asyncIsLocked(std::move(token)); });
    ASSERT_TRUE(locking.finish());
    ASSERT_TRUE(asking.finish());
    EXPECT_EQ(locking.error, Errc::authFailed);
    EXPECT_EQ(asking.error, Errc::authFailed);
    EXPECT_LT(watch.elapsed(), slack);
    expectFault(errorsSent("WRONGPASS") > 0, "a wrong password");
    expectNothingLeft();
}

TEST_F(AsyncRefusingServer, RefusesLocksInTimeAndAReleaseIsRepeatedUntilItPasses)
{
    struct Refusal {
        const char* word;
        RawRedis::Arguments begin;
        RawRedis::Arguments end;
        bool releases; ///< whether releases are refused too
    };
    const std::vector<Refusal> refusals{
        {"OOM", {"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"}, true},
        {"NOREPLICAS",
         {"CONFIG", "SET", "min-replicas-to-write", "1"},
         {"CONFIG", "SET", "min-replicas-to-write", "0"},
         false},
        {"READONLY", {"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}, false},
    };
    config.unreachableAfter = 2s;
    for (const auto& [word, begin, end, releases] : refusals) {
        SCOPED_TRACE(word);
        auto held = lock().asyncLock(20s, use_future).get();
        redis.command(begin);
        const RedisLock wanted = lockOf("wanted");
        Locking attempt([&](auto token) { wanted.asyncTryLock(std::move(token)); });
        ASSERT_TRUE(attempt.finish());
        EXPECT_EQ(attempt.error, Errc::serverRefused);
        const Stopwatch watch;
        Locking waiting([&](auto token) { wanted.asyncTryLock(250ms, 10s, std::move(token)); });
        Locking patient([&](auto token) { wanted.asyncLock(std::move(token)); });
        ASSERT_TRUE(waiting.finish());
        EXPECT_GE(watch.elapsed(), 250ms);
        ASSERT_TRUE(patient.finish());
        EXPECT_LT(watch.elapsed(), 250ms + config.unreachableAfter + slack);
        EXPECT_EQ(waiting.error, Errc::serverRefused);
        EXPECT_EQ(patient.error, Errc::serverRefused);
        expectFault(errorsSent(word) > 0, word);
        Releasing releasing([&](auto token) { held.asyncRelease(std::move(token)); });
        EXPECT_EQ(releasing.finish(100ms), releases);
        redis.command(end);
        ASSERT_TRUE(releasing.finish());
        EXPECT_EQ(releasing.value, Unlocked::released);
        EXPECT_FALSE(redis.exists("wanted"));
        expectNothingLeft();
    }
}

TEST_F(AsyncLostRequest, OrReplyOfAnAcquireIsMadeUpForAndCountedOnce)
{
    for (const auto& losses : {lostRequests(), lostReplies()}) {
        for (const auto& [how, action] : losses) {
            SCOPED_TRACE(how);
            proxy.clearRequestLog();
            inject(request(redisLockLock), action);
            auto held = lock().asyncLock(10s, use_future).get();
            EXPECT_TRUE(held);
            EXPECT_EQ(countInRedis(), "1");
            EXPECT_EQ(holdersIn(redisLockLock).size(), 1U) << "the same holder, each time";
            EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
            EXPECT_FALSE(redis.exists(name));
        }
    }
    expectNothingLeft();
}

TEST_F(AsyncLostRequest, OrReplyOfAReleaseIsMadeUpFor)
{
    for (const auto& losses : {lostRequests(), lostReplies()}) {
        for (const auto& [how, action] : losses) {
            SCOPED_TRACE(how);
            auto held = lock().asyncLock(10s, use_future).get();
            inject(request(redisLockUnlock), action);
            EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
            EXPECT_FALSE(redis.exists(name));
        }
    }
    expectNothingLeft();
}

TEST_F(AsyncLostRequest, OfAReleaseThatNeverArrivesIsUnconfirmedInTimeAndGoesOn)
{
    config.unreachableAfter = 500ms;
    auto held = lock().asyncLock(20s, use_future).get();
    auto every = request(redisLockUnlock);
    every.nth = 0;
    inject(every, Action::drop());
    const Stopwatch watch;
    Releasing releasing([&](auto token) { held.asyncRelease(std::move(token)); });
    ASSERT_TRUE(releasing.finish());
    EXPECT_GE(watch.elapsed(), 500ms);
    EXPECT_LT(watch.elapsed(), 500ms + slack);
    EXPECT_FALSE(releasing.error);
    EXPECT_EQ(releasing.value, Unlocked::unconfirmed);
    EXPECT_TRUE(redis.exists(name));
    endFaults();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "long before the lease is over";
    expectNothingLeft();
}

TEST_F(AsyncLostRequest, OfAReleaseIsNotGivenUpByACancellation)
{
    config.watchdogTimeout = 60s; // so that a command has a long time
    auto held = lock().asyncLock(20s, use_future).get();
    const auto stalled = inject(request(redisLockUnlock), Action::stallDirection());
    Releasing releasing([&](auto token) { held.asyncRelease(std::move(token)); });
    ASSERT_TRUE(proxy.awaitHits(stalled));
    for (const auto type : cancellations) {
        releasing.cancel(type);
    }
    EXPECT_FALSE(releasing.finish(50ms));
    endFaults();
    ASSERT_TRUE(releasing.finish());
    EXPECT_FALSE(releasing.error);
    EXPECT_EQ(releasing.value, Unlocked::released);
    expectNothingLeft();
}

TEST_F(AsyncLostRequest, OfAReleaseAtTheClientsEndIsUnconfirmedAtOnce)
{
    auto held = lock().asyncLock(700ms, use_future).get();
    auto every = request(redisLockUnlock);
    every.nth = 0;
    const auto lost = inject(every, Action::drop());
    Releasing releasing([&](auto token) { held.asyncRelease(std::move(token)); });
    ASSERT_TRUE(proxy.awaitHits(lost));
    const Stopwatch watch;
    client().shutdown(50ms);
    ASSERT_TRUE(releasing.finish());
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_FALSE(releasing.error);
    EXPECT_EQ(releasing.value, Unlocked::unconfirmed);
    endFaults();
    forgetClient();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "its lease is over";
    expectNothingLeft();
}

TEST_F(AsyncBrokenLink, ThatIsHalfOpenIsReplacedAfterTheTimeForACommandAndEveryCallGoesOn)
{
    constexpr std::size_t calls = 4;
    client().connect();
    inject({.command = "EVALSHA"}, Action::stallDirection());
    const Stopwatch watch;
    std::vector<std::future<LockGuard>> results;
    for (std::size_t i = 0; i < calls; ++i) {
        results.push_back(lockOf("stock:" + std::to_string(100 + i)).asyncLock(20s, use_future));
    }
    for (auto& result : results) {
        auto held = result.get();
        EXPECT_TRUE(held);
        EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
    }
    EXPECT_GE(watch.elapsed(), config.watchdogTimeout / 6);
    EXPECT_LT(watch.elapsed(), config.watchdogTimeout / 6 + slack);
    EXPECT_GE(seen->count(Event::disconnected), 1U);
    proxy.closeAll(FaultProxy::Close::reset); // requests that are stuck in the dead link never arrive
    expectNothingLeft();
}

TEST_F(AsyncBrokenLink, ForgottenScriptsAreSentWhole)
{
    auto held = lock().asyncLock(use_future).get();
    auto waiter = lockOf("wanted").asyncLock(10s, use_future);
    const auto flush = [this] { redis.command({"SCRIPT", "FLUSH"}); };
    flush();
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
    flush();
    EXPECT_GT(lock().asyncRemainingTimeToLive(use_future).get(), 0ms);
    flush();
    EXPECT_EQ(held.asyncRelease(use_future).get(), Unlocked::released);
    flush();
    EXPECT_TRUE(lock().asyncTryLock(use_future).get());
    flush();
    EXPECT_EQ(waiter.get().asyncRelease(use_future).get(), Unlocked::released);
    foreignLock(10s);
    flush();
    EXPECT_TRUE(lock().asyncForceUnlock(use_future).get());
    expectFault(errorsSent("NOSCRIPT") >= 5, "NOSCRIPT");
    expectNothingLeft();
}

TEST_F(AsyncBrokenLink, OfTheSubscriberIsReplacedAndNoUnlockIsMissed)
{
    const auto listeners = [this] {
        return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer();
    };
    for (const bool whileNobodyListens : {false, true}) {
        SCOPED_TRACE(whileNobodyListens);
        foreignLock(100s);
        Locking waiting([&](auto token) { lock().asyncLock(10s, std::move(token)); });
        ASSERT_TRUE(eventually([&] { return listeners() == 1; }));
        ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
        const auto before = seen->count(Event::disconnected);
        if (whileNobodyListens) {
            proxy.refuse();
        }
        expectFault(redis.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer() == 1, "a killed subscriber");
        ASSERT_TRUE(seen->await(Event::disconnected, before + 1));
        if (whileNobodyListens) {
            EXPECT_EQ(foreignUnlock(), 0) << "nobody is there to be told";
            proxy.accept();
        } else {
            ASSERT_TRUE(eventually([&] { return listeners() == 1; }));
            EXPECT_EQ(foreignUnlock(), 1);
        }
        const Stopwatch watch;
        ASSERT_TRUE(waiting.finish());
        EXPECT_LT(watch.elapsed(), slack) << "told by the poll";
        EXPECT_FALSE(waiting.error);
        EXPECT_EQ(waiting.value.asyncRelease(use_future).get(), Unlocked::released);
        proxy.clearRequestLog();
        expectNothingLeft();
    }
}

TEST_F(AsyncStandingThread, ReadsTheAnswerThatCameMeanwhileThoughTheWaitIsOver)
{
    constexpr auto wait = 500ms;
    config.commandTimeout = 10s; // so that the connection itself has no reason to look
    config.watchdogTimeout = 60s;
    (void)lock().asyncIsLocked(use_future).get(); // from now on there is a connection
    const auto held = inject(reply(redisLockLock), Action::stallDirection());
    const Stopwatch watch;
    Locking attempt([&](auto token) { lock().asyncTryLock(wait, 10s, std::move(token)); });
    ASSERT_TRUE(proxy.awaitHits(held));
    {
        const StandingThread standing(lock());
        ASSERT_LT(watch.elapsed(), wait);
        std::this_thread::sleep_for(wait); // the test needs real time
        proxy.resume();
        EXPECT_EQ(RawRedis(proxy.host(), proxy.port()).command({"PING"}).text(), "PONG"); // the answer comes before
    }
    ASSERT_TRUE(attempt.finish());
    EXPECT_EQ(attempt.error, error_code());
    EXPECT_EQ(attempt.value.release(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
