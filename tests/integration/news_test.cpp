// Servers that were started again, with or without what they had, while locks are held whose leases go on for long.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"

#include <iostream>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

/// A renewed lock, and one with a fixed lease, both for half a minute.
class HeldOverARestart : public LockTest {
protected:
    void start(std::vector<std::string> arguments = {})
    {
        own.emplace(testing::RedisServerOptions{.arguments = std::move(arguments)});
        Config config = observed(Config::fromUrl(own->url()));
        config.clientName = "holder";
        client.emplace(config);
        for (const auto& [name, lease] : {std::pair("renewed", Lease(keepRenewing)), std::pair("fixed", Lease(30s))}) {
            locks.push_back(client->getLock(name));
            ASSERT_EQ(D::lock(locks.back(), lease), true);
        }
    }
    void release()
    {
        for (const auto& each : locks) {
            EXPECT_TRUE(each.isHeldByCurrentThread());
            EXPECT_EQ(D::unlock(each), Unlocked::released);
        }
        EXPECT_EQ(observer()->count("lost"), 0U);
    }
    void expectLost()
    {
        const Stopwatch watch;
        std::vector<std::stop_token> tokens;
        for (const auto& each : locks) {
            tokens.push_back(each.stopToken());
        }
        for (std::size_t i = 0; i < locks.size(); ++i) {
            EXPECT_TRUE(eventually([&] { return tokens[i].stop_requested(); })) << locks[i].name();
            EXPECT_FALSE(locks[i].isHeldByCurrentThread());
            EXPECT_EQ(observer()->of("lost", locks[i].name()).at(0).reason, LossReason::gone);
            EXPECT_EQ(D::unlock(locks[i]), Unlocked::alreadyLost);
        }
        EXPECT_LT(watch.elapsed(), soon);
        std::cout << "lost " << watch.elapsedMs().count() << " ms after the restart\n";
    }

    std::optional<testing::RedisServer> own;
    std::optional<Client> client;
    std::vector<RedisLock> locks;
};

TEST_F(HeldOverARestart, IsLostWithTheServersMemory)
{
    start();
    own->kill();
    own->restart();
    ASSERT_FALSE(RawRedis(*own).exists("fixed"));
    expectLost();
}

TEST_F(HeldOverARestart, IsLostWithTheMemoryOfAServerThatWasGoneForAWhile)
{
    start();
    ASSERT_TRUE(observer()->await("renewed", "renewed")) << "the client listens for the server's end";
    own->stop();
    ASSERT_TRUE(observer()->await("disconnected:renewals", {}, 4));
    own->restart();
    ASSERT_FALSE(RawRedis(*own).exists("fixed"));
    expectLost();
    EXPECT_EQ(observer()->of("atRisk").size(), 0U) << "the leases are long";
}

TEST_F(HeldOverARestart, IsKeptByAServerThatForgetsNothing)
{
    start({"--appendonly", "yes", "--appendfsync", "always"});
    own->kill();
    own->restart();
    ASSERT_TRUE(RawRedis(*own).exists("fixed"));
    ASSERT_TRUE(observer()->await("renewed", "renewed"));
    release();
}

TEST_F(HeldOverARestart, IsKeptWhenOnlyAConnectionWasKilled)
{
    start();
    RawRedis admin(*own);
    const auto scripts = [&] { return admin.commandCalls("evalsha") + admin.commandCalls("eval"); };
    ASSERT_TRUE(observer()->await("renewed", "renewed"));
    const auto before = scripts();
    EXPECT_EQ(admin.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer(), 2);
    EXPECT_TRUE(eventually([&] { return scripts() >= before + 2; })) << "one for renewed holds, and one for the others";
    ASSERT_TRUE(observer()->await("renewed", "renewed", 2));
    release();
}

} // namespace
} // namespace redislock::test
