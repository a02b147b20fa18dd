// Connections that end: idle, under load, in every state.
#include "fault/busy_clients.hpp"
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <array>
#include <stop_token>
#include <thread>

namespace redislock::test {
namespace {

using IdleConnection = FaultTest;
using KilledConnection = FaultTest;
using SilentConnection = FaultTest;

/// A server that ends each connection at the same request, whatever it answered before.
class ServerThatHangsUp : public FaultTest {
protected:
    /// Expects few connections and, of calls that want the lock, the error that says that the connection ended.
    template <class Ask>
    void expectPauses(const char* what, Ask ask)
    {
        SCOPED_TRACE(what);
        forgetClient();
        const auto before = proxy.accepted();
        const Stopwatch watch;
        ask();
        EXPECT_GE(watch.elapsed(), 900ms);
        EXPECT_GE(proxy.accepted(), before + 3) << "it is asked again";
        EXPECT_LE(proxy.accepted(), before + 10) << "it is flooded";
        proxy.clear();
    }
    /// From now on the server does not know the script, and ends connections that send it.
    void endAt(const Script& script)
    {
        redis.command({"SCRIPT", "FLUSH"});
        for (const auto* other : {&redisLockLock, &redisLockUnlock, &redisLockRenew, &redisLockPttl}) {
            if (other->sha1 != script.sha1) {
                redis.command({"SCRIPT", "LOAD", other->text()});
            }
        }
        inject({.command = "EVAL", .nth = 0}, Action::cut());
    }
};

TEST_F(IdleConnection, ThatWasClosedIsNoFailureOfTheNextCall)
{
    for (const auto how : {FaultProxy::Close::orderly, FaultProxy::Close::reset}) {
        lock().lock(20s);
        const auto before = proxy.accepted();
        EXPECT_GE(proxy.connections(), 1U);
        proxy.closeAll(how);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        expectFault(proxy.accepted() > before, "a closed connection");
        proxy.closeAll(how);
        std::error_code ec;
        EXPECT_TRUE(lock().tryLock(0ms, 20s, ec)) << ec.message();
        EXPECT_EQ(countInRedis(), "1");
        proxy.closeAll(how);
        EXPECT_TRUE(lock().isLocked(ec)) << ec.message();
        EXPECT_EQ(lock().unlock(), Unlocked::released);
    }
}

TEST_F(IdleConnection, ThatTheServerClosesIsNoFailureOfTheNextCall)
{
    lock().lock(30s);
    ASSERT_EQ(proxy.connections(), 1U);
    redis.command({"CONFIG", "SET", "timeout", "1"});
    // the PING keeps this test's own connection alive; one is made again for the lasting hold
    const auto isClosed = [&] {
        return redis.command({"PING"}).text() == "PONG" && proxy.accepted() >= proxy.connections() + 2;
    };
    expectFault(eventually(isClosed, 10s), "idle connections closed by the server");
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
    redis.command({"CONFIG", "SET", "timeout", "0"});
}

TEST_F(KilledConnection, AnyOfThemAtAnyTimeKeepsEveryCountExact)
{
    config.unreachableAfter = 20s;
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    BusyClients busy(client(), other, name);
    std::size_t killed = 0;
    const std::array<RawRedis::Arguments, 2> kills{
        RawRedis::Arguments{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"},
        RawRedis::Arguments{"CLIENT", "KILL", "TYPE", "pubsub"}};
    for (int i = 1; i <= 30; ++i) {
        const int rounds = busy.rounds;
        EXPECT_TRUE(eventually([&] { return busy.rounds > rounds + 3; }, 20s)) << "no progress after kill " << i;
        if (i % 5 == 0) {
            proxy.closeAll(i % 2 == 0 ? FaultProxy::Close::reset : FaultProxy::Close::orderly);
        } else {
            killed += static_cast<std::size_t>(redis.command(kills.at(i % 3 == 0 ? 1 : 0)).integer());
        }
    }
    busy.end();
    expectFault(killed >= 15, "killed connections");
    EXPECT_EQ(busy.overlaps, 0);
    EXPECT_EQ(busy.failures, 0);
    EXPECT_EQ(busy.wrongUnlocks, 0);
    EXPECT_GT(busy.rounds, 90);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, slack)) << "a lock was leaked";
    EXPECT_TRUE(eventually([&] {
        return redis.command({"PUBSUB", "CHANNELS"}).elements.empty();
    })) << "a subscription leaked";
}

TEST_F(KilledConnection, OfRenewalsLosesNoHold)
{
    config.watchdogTimeout = 1800ms;
    const RedisLock held = lock();
    held.lock();
    EXPECT_TRUE(seen->await(Event::renewed));
    expectFault(redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer() >= 1, "a kill");
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(KilledConnection, WithARequestUnderWayIsRepeatedForEveryCaller)
{
    constexpr std::size_t callers = 8;
    config.commandTimeout = 10s;
    config.unreachableAfter = 30s;
    const auto nameOf = [](std::size_t i) { return "stock:" + std::to_string(100 + i); };
    const auto stalled = inject({.command = "EVALSHA", .nth = 3}, Action::stallDirection());
    std::vector<std::future<std::string>> results;
    for (std::size_t i = 0; i < callers; ++i) {
        results.push_back(std::async(std::launch::async, [this, one = lockOf(nameOf(i)), own = nameOf(i)] {
            one.lock(20s);
            const auto count = RawRedis(server).command({"HVALS", own}).elements.at(0).text();
            return one.unlock() == Unlocked::released ? count : "not released";
        }));
    }
    EXPECT_TRUE(proxy.awaitHits(stalled));
    proxy.closeAll(FaultProxy::Close::reset);
    for (auto& result : results) {
        EXPECT_EQ(result.get(), "1");
    }
}

TEST_F(ServerThatHangsUp, IsAskedAgainWithPausesThatGrowUnlessItDidWhatItWasAsked)
{
    config.watchdogTimeout = 30s;
    expectPauses("lock", [&] {
        endAt(redisLockLock);
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(1s, 10s, ec));
        EXPECT_EQ(ec, Cause::connectionLost);
    });
    expectPauses("lock beside questions that are answered", [&] {
        endAt(redisLockLock);
        std::jthread curious([one = lock()](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                std::error_code ignored;
                (void)one.isLocked(ignored);
            }
        });
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(1s, 10s, ec));
        EXPECT_EQ(ec, Cause::connectionLost);
    });
    expectPauses("asyncLock", [&] {
        endAt(redisLockLock);
        try {
            (void)lock().asyncTryLock(1s, boost::asio::use_future).get();
            ADD_FAILURE() << "it was granted";
        } catch (const boost::system::system_error& error) {
            EXPECT_TRUE(error.code() == Cause::connectionLost) << error.what();
        }
    });
    expectPauses("unlock", [&] {
        EXPECT_TRUE(lock().tryLock(0ms, 1s));
        endAt(redisLockUnlock);
        EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
    });
    expectPauses("the subscription of a waiter", [&] {
        redis.command({"DEL", name}); // else the lease of the hold above might end in the middle of the next line
        foreignLock(20s);
        inject({.command = "SUBSCRIBE", .direction = Direction::reply, .nth = 0}, Action::cutAfterForward());
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(1s, 10s, ec));
        EXPECT_EQ(ec, std::error_code()) << "contended";
        redis.command({"DEL", name});
    });
    forgetClient();
    loadScripts();
}

// A network that comes back would deliver the request of a caller that has been told `unreachable`, perhaps minutes
// later: the client's system must not try for so long.
TEST_F(SilentConnection, ThatIsGivenUpIsReset)
{
    config.unreachableAfter = 500ms;
    std::error_code ec;
    inject({.command = "EVALSHA", .direction = Direction::reply, .nth = 0}, Action::drop());
    EXPECT_FALSE(lock().tryLock(20s, 20s, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    const auto byThreads = proxy.resets();
    EXPECT_GE(byThreads, 1U);
    EXPECT_THROW((void)lock().asyncLock(20s, boost::asio::use_future).get(), boost::system::system_error);
    EXPECT_TRUE(eventually([&] { return proxy.resets() > byThreads; }));
}

TEST_F(SilentConnection, ThatEndsWithItsClientIsNotReset)
{
    config.commandTimeout = 10s;
    const auto held = inject(request(redisLockUnlock), Action::delay(200ms));
    const auto handedOver = inject(reply(redisLockUnlock), Action::delay(1s));
    {
        const LockGuard ends(lock(), Lease(20s)); // without waiting for the answer
    }
    EXPECT_FALSE(client().shutdown(0ms));
    forgetClient();
    EXPECT_TRUE(proxy.awaitHits(held));
    EXPECT_TRUE(proxy.awaitHits(handedOver)) << "the last request was not delivered";
    EXPECT_EQ(proxy.resets(), 0U);
}

} // namespace
} // namespace redislock::test
