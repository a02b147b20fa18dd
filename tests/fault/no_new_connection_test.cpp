// What goes on over the connection that there is, while no other can be made.
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <sstream>

namespace redislock::test {
namespace {

class NoNewConnection : public FaultTest {
protected:
    NoNewConnection() { config.pollInterval = 100ms; }

    /// Something that keeps connections from being made, and leaves those that exist alone.
    struct Obstacle {
        const char* what;
        std::function<void()> begin;
        std::function<void()> end;
    };
    std::vector<Obstacle> obstacles()
    {
        const auto set = [this](const char* what, const char* value) {
            return [this, what, value] { redis.command({"CONFIG", "SET", what, value}); };
        };
        return {{"a full server", set("maxclients", "1"), set("maxclients", "1000")},
                {"a new password", set("requirepass", "secret"), set("requirepass", "")},
                {"a port that refuses", [this] { proxy.refuse(); }, [this] { proxy.accept(); }},
                {"a server that is silent to who is new",
                 [this] { inject({.command = "CLIENT", .nth = 0}, Action::drop()); }, [this] { proxy.clear(); }}};
    }

    /// The server's ids of the client's connections, the oldest first.
    std::vector<std::string> connectionIds()
    {
        std::vector<std::string> ids;
        std::istringstream list(redis.command({"CLIENT", "LIST"}).text());
        for (std::string line; std::getline(list, line);) {
            if (line.find(" name=redislock:" + client().id()) != std::string::npos) {
                ids.push_back(line.substr(3, line.find(' ') - 3)); // "id=7 addr=..."
            }
        }
        std::ranges::sort(ids, {}, [](const auto& id) { return std::stol(id); });
        return ids;
    }

    /// Expects that all that a client does goes on: what threads ask, what is asked asynchronously, what nobody waits
    /// for, and waiting.
    void expectAllGoesOn()
    {
        const RedisLock other = lockOf("other");
        other.lock();
        other.lock();
        EXPECT_EQ(other.unlock(), Unlocked::stillHeld);
        EXPECT_TRUE(other.isLocked());
        EXPECT_EQ(other.unlock(), Unlocked::released);
        {
            const LockGuard guard(other, Lease(20s));
        }
        EXPECT_TRUE(eventually([&] { return !redis.exists("other"); }, slack)) << "the end of a guard";
        EXPECT_TRUE(other.asyncTryLock(boost::asio::use_future).get());
        EXPECT_TRUE(eventually([&] { return !redis.exists("other"); }, slack)) << "the end of an asynchronous guard";
        foreignLock("other", 20s);
        std::error_code ec;
        EXPECT_FALSE(other.tryLock(150ms, 20s, ec));
        EXPECT_EQ(ec, std::error_code()) << "contended";
        auto waiter = std::async(std::launch::async,
                                 [&other] { return other.tryLock(20s, 20s) && other.unlock() == Unlocked::released; });
        EXPECT_TRUE(proxy.awaitRequests(request(redisLockLock), proxy.requests(request(redisLockLock)) + 2));
        redis.command({"DEL", "other"});
        EXPECT_TRUE(waiter.get());
        const auto room = client().getSemaphore("room");
        ASSERT_TRUE(room.trySetPermits(1));
        EXPECT_TRUE(room.asyncTryAcquire(1, boost::asio::use_future).get());
        room.asyncRelease(1, boost::asio::use_future).get();
        EXPECT_EQ(room.availablePermits(), 1);
        redis.command({"DEL", "room"});
    }
};

TEST_F(NoNewConnection, KeepsNothingFromGoingOnOverTheThreadsConnection)
{
    for (const auto& obstacle : obstacles()) {
        SCOPED_TRACE(obstacle.what);
        forgetClient();
        const RedisLock held = lock();
        held.lock();
        ASSERT_EQ(connectionIds().size(), 1U);
        obstacle.begin();
        EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 3));
        expectAllGoesOn();
        EXPECT_EQ(seen->count(Event::lost), 0U);
        EXPECT_EQ(countInRedis(), "1");
        expectFault(connectionIds().size() == 1, obstacle.what);
        obstacle.end();
        EXPECT_TRUE(eventually([&] { return connectionIds().size() >= 2; }))
            << "the renewals' connection is tried again";
        EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
        EXPECT_EQ(held.unlock(), Unlocked::released);
        forgetClient(); // and with it the records of its requests
    }
}

TEST_F(NoNewConnection, KeepsNothingFromGoingOnOverTheRenewalsConnection)
{
    for (const auto& obstacle : obstacles()) {
        SCOPED_TRACE(obstacle.what);
        forgetClient();
        const RedisLock held = lock();
        held.lock();
        EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
        const auto before = connectionIds();
        ASSERT_EQ(before.size(), 2U);
        obstacle.begin();
        redis.command({"CLIENT", "KILL", "ID", before.front()});
        expectAllGoesOn();
        EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 2));
        EXPECT_EQ(seen->count(Event::lost), 0U);
        expectFault(connectionIds().size() == 1, obstacle.what);
        EXPECT_EQ(held.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        obstacle.end();
        EXPECT_TRUE(eventually([&] {
            return lock().asyncTryLock(boost::asio::use_future).get() && connectionIds().size() >= 2;
        })) << "a second connection is tried again";
        forgetClient();
    }
}

TEST_F(NoNewConnection, ThatComesAfterAllIsNotUsedBeforeTheRequestsThatWereSentOverTheOtherAreAnswered)
{
    config.watchdogTimeout = 1min;
    config.commandTimeout = 20s;
    client().connect();
    proxy.refuse();
    const auto stalled = inject({.command = "EVALSHA"}, Action::stallDirection());
    auto first = lockOf("first").asyncTryLock(20s, boost::asio::use_future);
    EXPECT_TRUE(proxy.awaitHits(stalled)) << "over the threads' connection";
    proxy.accept();
    ASSERT_TRUE(eventually([&] { return connectionIds().size() == 2; }));
    // its release must not overtake it
    EXPECT_THROW((void)lockOf("second").asyncTryLock(300ms, boost::asio::use_future).get(),
                 boost::system::system_error);
    proxy.resume();
    EXPECT_TRUE(first.get());
    EXPECT_TRUE(proxy.awaitRequests(request(redisLockUnlock), 2));
    for (const auto& logged : proxy.requestLog()) {
        EXPECT_TRUE(logged.connection == 1 || std::ranges::count(logged.arguments, "second") == 0);
    }
    EXPECT_TRUE(eventually([&] { return !redis.exists("second"); }, slack));
}

TEST_F(NoNewConnection, ThatComesAfterAllAsksAgainForRenewalsThatTheOtherDoesNotAnswer)
{
    config.watchdogTimeout = 3s;
    config.commandTimeout = 20s;
    const RedisLock held = lock();
    held.lock();
    proxy.refuse();
    const auto lost = inject(request(redisLockRenew), Action::stallDirection());
    EXPECT_TRUE(proxy.awaitHits(lost)) << "over the threads' connection";
    proxy.accept();
    EXPECT_TRUE(seen->await(Event::renewed, 3));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    proxy.resume();
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
