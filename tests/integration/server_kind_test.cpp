// Servers that are no masters alone: a Sentinel, nodes of clusters, replicas.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "redislock/lock_monitor.hpp"
#include "support/deployments.hpp"

#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

const std::vector<std::string> lockRights{"+evalsha", "+eval",    "+subscribe", "+unsubscribe", "+ping",
                                          "+pttl",    "+hexists", "+hget",      "+hset",        "+hdel",
                                          "+hlen",    "+hkeys",   "+pexpire",   "+del",         "+publish"};

class ServerKind : public LockTest {
protected:
    /// Makes a user who may do this alone. @return the settings to be that user
    static Config userOf(const testing::RedisServer& server, const std::vector<std::string>& rights)
    {
        RawRedis::Arguments make{"ACL", "SETUSER", "locker", "reset", "on", ">secret", "~*", "&*"};
        make.insert(make.end(), rights.begin(), rights.end());
        EXPECT_EQ(RawRedis(server).command(make).text(), "OK");
        Config config = configOf(server);
        config.username = "locker";
        config.password = "secret";
        return config;
    }

    static Config configOf(const testing::RedisServer& server)
    {
        Config config = Config::fromUrl(server.url());
        config.unreachableAfter = 500ms;
        return config;
    }

    /// Expects every call to give this cause: those that may not wait at once, the others @p after some time.
    /// @param words somewhere in the message
    static void expectTold(const Config& config, Cause cause, milliseconds after, std::string_view words)
    {
        using Call = std::function<std::error_code(const Client&, const RedisLock&)>;
        const auto connect = [](const Client& client, const RedisLock&) {
            std::error_code ec;
            client.connect(ec);
            return ec;
        };
        const auto asyncConnect = [](const Client& client, const RedisLock&) -> std::error_code {
            try {
                client.asyncConnect(boost::asio::use_future).get();
                return {};
            } catch (const boost::system::system_error& e) {
                return e.code();
            }
        };
        const std::pair<Call, milliseconds> calls[] = {
            {connect, 0ms},
            {asyncConnect, 0ms},
            {[](auto&, auto& lock) { return D::tryLock(lock).error; }, 0ms},
            {[](auto&, auto& lock) { return D::tryLock(lock, 200ms).error; }, std::min(after, 200ms)},
            {[](auto&, auto& lock) { return D::lock(lock).error; }, after},
            {[](auto&, auto& lock) { return D::isLocked(lock).error; }, after},
            {[](auto&, auto& lock) { return D::remainingTimeToLive(lock).error; }, after},
        };
        for (const auto& [call, time] : calls) {
            SCOPED_TRACE(&call - &calls[0].first);
            const Client client(config);
            const Stopwatch watch;
            EXPECT_EQ(call(client, client.getLock("stock")), cause);
            EXPECT_GE(watch.elapsed(), time);
            EXPECT_LT(watch.elapsed(), time + soon);
        }
        try {
            Client(config).connect();
            ADD_FAILURE() << "connected";
        } catch (const LockError& e) {
            EXPECT_NE(std::string_view(e.what()).find(words), std::string_view::npos) << e.what();
        }
        LockMonitor monitor(config);
        std::error_code ec;
        EXPECT_TRUE(monitor.list("*", ec).empty());
        EXPECT_EQ(ec, cause);
        EXPECT_EQ(monitor.find("stock", ec), std::nullopt);
        EXPECT_EQ(ec, cause);
        (void)monitor.server("stock", ec);
        EXPECT_EQ(ec, cause);
    }

    static const Cluster& three()
    {
        static const Cluster instance(3);
        return instance;
    }
};

TEST_F(ServerKind, OfASentinelIsToldAtOnce)
{
    const Sentinel sentinel;
    const char* words = "is a Sentinel; use redis-sentinel://";
    expectTold(configOf(sentinel.server()), Cause::sentinel, 0ms, words);
    Config config = configOf(sentinel.server());
    config.database = 3; // it knows no SELECT
    expectTold(config, Cause::sentinel, 0ms, words);
    expectTold(userOf(sentinel.server(), {"+ping"}), Cause::sentinel, 0ms, words);
}

TEST_F(ServerKind, OfANodeAmongSeveralIsToldAtOnce)
{
    for (std::size_t i = 0; i < 3; ++i) {
        expectTold(configOf(three().node(i)), Cause::clusterNode, 0ms, "redis-cluster://");
    }
    const Config config = userOf(three().node(), lockRights);
    expectTold(config, Cause::clusterNode, 0ms, "NOPERM");
    auto rights = lockRights;
    rights.emplace_back("+cluster|slots");
    expectTold(userOf(three().node(), rights), Cause::clusterNode, 0ms, "redis-cluster://");
}

TEST_F(ServerKind, OfTheOnlyNodeOfAClusterIsWarnedOfOnce)
{
    const Cluster one(1);
    expectTold(userOf(one.node(), lockRights), Cause::clusterNode, 0ms, "NOPERM");
    auto rights = lockRights;
    rights.emplace_back("+cluster|slots");
    for (const Config& config : {configOf(one.node()), userOf(one.node(), rights)}) {
        const auto seen = std::make_shared<RecordingObserver>();
        {
            Config own = config;
            own.observer = seen;
            const Client client(own);
            for (int connection = 1; connection <= 2; ++connection) {
                EXPECT_EQ(D::tryLock(client.getLock("stock")), true);
                EXPECT_EQ(D::unlock(client.getLock("stock")), Unlocked::released);
                EXPECT_TRUE(seen->await("connected:commands", {}, static_cast<std::size_t>(connection)));
                RawRedis(one.node()).command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
            }
        }
        ASSERT_EQ(seen->count("warned"), 1U);
        EXPECT_TRUE(
            seen->of("warned").front().why.starts_with(config.endpoint.str() + ": the server belongs to a cluster"))
            << seen->of("warned").front().why;
    }
}

TEST_F(ServerKind, OfANodeIsFoundInALongTableOfSlots)
{
    const testing::RedisServer one({.arguments = {"--cluster-enabled", "yes"}});
    RawRedis admin(one);
    RawRedis::Arguments add{"CLUSTER", "ADDSLOTS"};
    for (std::size_t slot = 0; slot < Cluster::slots; slot += 2) {
        add.push_back(std::to_string(slot));
    }
    admin.command(add);
    ASSERT_EQ(admin.command({"CLUSTER", "SLOTS"}).elements.size(), Cluster::slots / 2);
    Config config = configOf(one);
    const auto seen = std::make_shared<RecordingObserver>();
    config.observer = seen;
    const Client client(config);
    std::error_code ec;
    client.connect(ec);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_TRUE(seen->await("warned"));
}

TEST_F(ServerKind, OfAReplicaIsToldAtOnceWhereNobodyWaits)
{
    testing::RedisServer replica;
    RawRedis admin(replica);
    raw.command({"HSET", "stock", "66666666-6666-4666-8666-666666666666:1", "1"});
    admin.command({"REPLICAOF", "127.0.0.1", std::to_string(server().port())});
    ASSERT_TRUE(eventually([&] { return admin.exists("stock"); }, 30s)) << "it has what it could answer with";
    expectTold(configOf(replica), Cause::readOnly, 500ms, "the server is a read-only replica");
    // a replica takes its users from itself
    expectTold(userOf(replica, lockRights), Cause::readOnly, 500ms, "the server is a read-only replica");
    raw.command({"DEL", "stock"});
    const Client client(configOf(replica));
    EXPECT_EQ(D::tryLock(client.getLock("stock")), Errc::serverRefused);
    admin.command({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(D::tryLock(client.getLock("stock")), true) << "it is a master now";
    EXPECT_EQ(D::unlock(client.getLock("stock")), Unlocked::released);
}

} // namespace
} // namespace redislock::test
