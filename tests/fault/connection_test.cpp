// Connections that end: idle, under load, in every state.
#include "fault/busy_clients.hpp"
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <array>

namespace redislock::test {
namespace {

using IdleConnection = FaultTest;
using KilledConnection = FaultTest;
using SilentConnection = FaultTest;

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
    // the PING keeps this test's own connection alive
    expectFault(eventually([&] { return redis.command({"PING"}).text() == "PONG" && proxy.connections() == 0; }, 10s),
                "an idle connection closed by the server");
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
