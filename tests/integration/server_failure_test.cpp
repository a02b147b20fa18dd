// Servers that die, stand still or refuse to write while locks are held.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace redislock::test {
namespace {

using D = BlockingCodes;

/// Each test has a server of its own, which it may break.
class ServerFailure : public LockTest {
protected:
    static Config configFor(const testing::RedisServer& own)
    {
        Config config = Config::fromUrl(own.url());
        config.watchdogTimeout = 1200ms;
        config.pollInterval = 60s;
        return config;
    }

    /// Expects the client to work again as before, renewal included.
    void expectRecovered(const Client& client)
    {
        const auto lock = client.getLock("recovered");
        // a patience shorter than the pause between two connects may see the end of the outage too late
        EXPECT_TRUE(eventually([&] { return D::tryLock(lock, soon) == true; }));
        const auto renewals = observer()->count("renewed", "recovered");
        EXPECT_TRUE(observer()->await("renewed", "recovered", renewals + 4)) << "past its time to live";
        EXPECT_TRUE(lock.isHeldByCurrentThread());
        EXPECT_EQ(redis.hash("recovered").size(), 1U);
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
        EXPECT_FALSE(redis.exists("recovered"));
    }

    testing::RedisServer own;
    RawRedis redis{own};
};

TEST_F(ServerFailure, ServerThatDiesInsideAScopedLockLeavesTheProcessAlive)
{
    const Client client(observed(configFor(own)));
    auto lock = client.getLock("stock");
    {
        const std::scoped_lock held(lock);
        own.kill();
    } // std::terminate, if this threw
    {
        EXPECT_FALSE(lock.isHeldByCurrentThread());
        EXPECT_TRUE(lock.stopToken().stop_requested());
    }
    own.restart();
    expectRecovered(client);
}

TEST_F(ServerFailure, UnlockOnADeadServerIsUnconfirmedAndComesBackInTime)
{
    Config config = observed(configFor(own));
    config.unreachableAfter = 300ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock, 60s), true);
    own.kill();
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(lock), Unlocked::unconfirmed);
    EXPECT_GE(watch.elapsed(), 300ms);
    EXPECT_LT(watch.elapsed(), 300ms + soon);
    EXPECT_EQ(D::unlock(lock), Errc::notHeld);
    own.restart();
    expectRecovered(client);
}

TEST_F(ServerFailure, LockOfADeadServerIsLostWhenItsLeaseIsOver)
{
    const Client client(observed(configFor(own)));
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock), true);
    const auto token = lock.stopToken();
    const auto validUntil = bootTime() + lock.validFor();
    own.kill();
    ASSERT_TRUE(observer()->await("lost", "stock"));
    EXPECT_GE(observer()->of("lost").front().at, validUntil - 1ms);
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(observer()->count("atRisk", "stock"), 1U);
    EXPECT_GE(observer()->count("renewalFailed", "stock"), 1U);
    EXPECT_EQ(lock.validFor(), 0ms);
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(lock), Unlocked::alreadyLost);
    EXPECT_LT(watch.elapsed(), soon);
    own.restart();
    expectRecovered(client);
}

TEST_F(ServerFailure, GuardsEndDoesNotWaitForADeadServer)
{
    const Client client(observed(configFor(own)));
    std::optional<LockGuard> held(std::in_place, client.getLock("stock"), Lease(60s));
    own.kill();
    const Stopwatch watch;
    held.reset();
    EXPECT_LT(watch.elapsed(), soon);
    own.restart();
    expectRecovered(client);
}

TEST_F(ServerFailure, WaitersOutliveARestart)
{
    const Client client(observed(configFor(own)));
    const auto lock = client.getLock("stock");
    redis.command({"HSET", "stock", "stranger:1", "1"});
    redis.command({"PEXPIRE", "stock", "60000"});
    Worker thread;
    auto waiter = thread.start([&] { return D::lock(lock); });
    ASSERT_TRUE(eventually([&] { return !redis.command({"PUBSUB", "CHANNELS"}).elements.empty(); }));
    own.kill();
    EXPECT_EQ(waiter.wait_for(100ms), std::future_status::timeout);
    own.restart();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(thread.run([&] { return D::unlock(lock); }), Unlocked::released);
}

// --- A server that stands still
// ----------------------------------------------------------------------------------------

TEST_F(ServerFailure, PauseShorterThanTheLeaseLosesNothing)
{
    Config config = observed(configFor(own));
    config.watchdogTimeout = 3s;
    const Client client(config);
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock), true);
    ASSERT_TRUE(observer()->await("renewed", "stock"));
    own.freeze();
    ASSERT_TRUE(observer()->await("renewalFailed", "stock")); // after half of the lease
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    own.thaw();
    ASSERT_TRUE(observer()->await("renewed", "stock", 2));
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(observer()->count("lost"), 0U);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(ServerFailure, PauseLongerThanTheLeaseIsALossAndOneThatEveryoneSees)
{
    const Client client(observed(configFor(own)));
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock), true);
    const auto token = lock.stopToken();
    own.freeze();
    ASSERT_TRUE(observer()->await("lost", "stock"));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_EQ(D::unlock(lock), Unlocked::alreadyLost);
    own.thaw();
    // renewals that the server now finds in its buffers must not bring the lock back for good
    EXPECT_TRUE(eventually([&] { return !redis.exists("stock"); }));
    expectRecovered(client);
}

TEST_F(ServerFailure, CallsOnAPausedServerComeBackInTimeAndLeaveNothing)
{
    Config config = observed(configFor(own));
    config.commandTimeout = 300ms;
    config.connectTimeout = 300ms;
    config.unreachableAfter = 600ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    client.connect();
    own.freeze();
    const auto expectUnreachable = [](auto call, milliseconds after) {
        const Stopwatch watch;
        EXPECT_EQ(call(), Errc::unreachable);
        EXPECT_GE(watch.elapsed(), after);
        EXPECT_LT(watch.elapsed(), after + soon);
    };
    expectUnreachable([&] { return D::tryLock(lock, 0ms, 60s); }, 300ms);
    expectUnreachable([&] { return D::tryLock(lock, 400ms, 60s); }, 400ms);
    expectUnreachable([&] { return D::lock(lock, 60s); }, 600ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    own.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists("stock"); })) << "what was granted meanwhile is given back";
    expectRecovered(client);
    EXPECT_FALSE(redis.exists("stock"));
}

TEST_F(ServerFailure, UnlockOnAPausedServerGoesOnInTheBackground)
{
    Config config = observed(configFor(own));
    config.unreachableAfter = 300ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock, 60s), true);
    own.freeze();
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(lock), Unlocked::unconfirmed);
    EXPECT_GE(watch.elapsed(), 300ms);
    EXPECT_LT(watch.elapsed(), 300ms + soon);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    own.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists("stock"); }));
    EXPECT_TRUE(observer()->await("released", "stock"));
}

TEST_F(ServerFailure, UnlockOnAPausedServerWaitsNoLongerThanTheLease)
{
    const Client client(observed(configFor(own)));
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock, 500ms), true);
    own.freeze();
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(lock), Unlocked::unconfirmed);
    EXPECT_LT(watch.elapsed(), 500ms + soon);
    own.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists("stock"); }));
}

TEST_F(ServerFailure, GuardsEndDoesNotWaitForAPausedServer)
{
    const Client client(observed(configFor(own)));
    const auto lock = client.getLock("stock");
    std::optional<LockGuard> held(std::in_place, lock, Lease(60s));
    own.freeze();
    const Stopwatch watch;
    held.reset();
    EXPECT_LT(watch.elapsed(), soon);
    own.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists("stock"); }));
    EXPECT_TRUE(observer()->await("released", "stock"));
}

TEST_F(ServerFailure, ShutdownOnAPausedServerComesBackInTime)
{
    std::optional<Client> client(observed(configFor(own)));
    std::optional<LockGuard> held(std::in_place, client->getLock("stock"), Lease(500ms));
    own.freeze();
    held.reset();
    const Stopwatch watch;
    EXPECT_FALSE(client->shutdown(200ms)) << "a release is not answered";
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 200ms + soon);
    client.reset();
    EXPECT_LT(watch.elapsed(), 400ms + soon);
    own.thaw();
}

TEST_F(ServerFailure, AsynchronousShutdownOnAPausedServerKeepsNoThread)
{
    std::optional<Client> client(observed(configFor(own)));
    std::optional<LockGuard> held(std::in_place, client->getLock("stock"), Lease(60s));
    own.freeze();
    held.reset();
    boost::asio::io_context io;
    boost::asio::cancellation_signal cancel;
    std::optional<boost::system::error_code> told;
    bool answered = true;
    client->asyncShutdown(
        1h, boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::bind_executor(io, [&](auto ec, bool all) {
                                                    told = ec;
                                                    answered = all;
                                                })));
    bool ranMeanwhile = false;
    boost::asio::post(io, [&] { ranMeanwhile = true; });
    io.run_one();
    EXPECT_TRUE(ranMeanwhile);
    EXPECT_TRUE(client->shutdown(1h)) << "a second one waits for nothing";
    client.reset();
    EXPECT_FALSE(told) << "neither does the destructor";
    cancel.emit(boost::asio::cancellation_type::terminal);
    io.run();
    EXPECT_EQ(told, boost::asio::error::operation_aborted);
    EXPECT_FALSE(answered);
    own.thaw();
}

TEST_F(ServerFailure, AsynchronousShutdownOnAPausedServerEndsWithItsTime)
{
    std::optional<Client> client(observed(configFor(own)));
    std::optional<LockGuard> held(std::in_place, client->getLock("stock"), Lease(60s));
    own.freeze();
    held.reset();
    EXPECT_FALSE(client->asyncShutdown(50ms, boost::asio::use_future).get()) << "a release is not answered";
    EXPECT_TRUE(client->shutdown(1h)) << "there is nothing to wait for any more";
    client.reset();
    own.thaw();
}

// --- A server that refuses
// ---------------------------------------------------------------------------------------------

TEST_F(ServerFailure, ServerWithoutMemoryKeepsAndFreesLocksButGrantsNone)
{
    Config config = observed(configFor(own));
    config.unreachableAfter = 300ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    const auto other = client.getLock("other");
    EXPECT_EQ(D::lock(lock), true);
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const auto renewals = observer()->count("renewed");
    EXPECT_TRUE(observer()->await("renewed", "stock", renewals + 3));
    EXPECT_EQ(D::tryLock(other), Errc::serverRefused);
    const Stopwatch watch;
    EXPECT_EQ(D::lock(other), Errc::serverRefused);
    EXPECT_GE(watch.elapsed(), 300ms);
    EXPECT_LT(watch.elapsed(), 300ms + soon);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(D::lock(other), true);
    EXPECT_EQ(D::unlock(other), Unlocked::released);
}

} // namespace
} // namespace redislock::test
