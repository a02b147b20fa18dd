// Connections that end and scripts that are forgotten while locks are held and waited for.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "support/fault_proxy.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Reconnect : public LockTest {
protected:
    /// The server's ids of the connections of a client name, oldest first.
    std::vector<std::string> connectionsOf(const std::string& clientName)
    {
        std::vector<std::string> ids;
        std::istringstream list(raw.command({"CLIENT", "LIST"}).text());
        for (std::string line; std::getline(list, line);) {
            if (line.find(" name=" + clientName + " ") != std::string::npos) {
                ids.push_back(line.substr(3, line.find(' ') - 3)); // "id=7 addr=..."
            }
        }
        std::sort(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return std::stol(a) < std::stol(b); });
        return ids;
    }

    void kill(const std::string& id) { EXPECT_EQ(raw.command({"CLIENT", "KILL", "ID", id}).integer(), 1); }

    /// Kills also the connection of the renewals, which is made if the machine is slow and a hold lasts for a second.
    void killAll(const std::string& clientName)
    {
        const auto ids = connectionsOf(clientName);
        EXPECT_FALSE(ids.empty());
        std::ranges::for_each(ids, [this](const auto& id) { kill(id); });
    }

    Config named(const std::string& clientName)
    {
        Config config = observed();
        config.clientName = clientName;
        config.naming = Naming::asGiven;
        return config;
    }
};

TEST_F(Reconnect, CallsGoOnAfterTheirConnectionWasKilled)
{
    const Client client(named("calls"));
    const auto lock = client.getLock(uniqueName());
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(D::lock(lock, 20s), true);
        killAll("calls");
        EXPECT_EQ(D::lock(lock, 20s), true) << "nested";
        EXPECT_EQ(countOf(lock.name()), "2");
        killAll("calls");
        EXPECT_EQ(D::unlock(lock), Unlocked::stillHeld);
        EXPECT_EQ(countOf(lock.name()), "1");
        killAll("calls");
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
        EXPECT_FALSE(raw.exists(lock.name()));
    }
    EXPECT_GE(observer()->count("disconnected:commands"), 3U);
    EXPECT_EQ(observer()->count("lost"), 0U);
}

TEST_F(Reconnect, GuardsEndIsRepeatedWhenItsConnectionWasKilled)
{
    const Client client(named("guards"));
    const auto lock = client.getLock(uniqueName());
    std::optional<LockGuard> held(std::in_place, lock, Lease(60s));
    kill(connectionsOf("guards").front());
    held.reset();
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
    EXPECT_TRUE(observer()->await("released", lock.name()));
    EXPECT_EQ(observer()->of("released").front().how, Unlocked::released);
}

TEST_F(Reconnect, RenewalGoesOnAfterItsConnectionWasKilled)
{
    const Client client(named("renewals"));
    const auto lock = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(lock), true);
    for (std::size_t round = 1; round <= 3; ++round) {
        const auto before = observer()->count("renewed");
        ASSERT_TRUE(observer()->await("renewed", lock.name(), before + 1));
        const auto ids = connectionsOf("renewals");
        ASSERT_EQ(ids.size(), 2U);
        kill(ids.back());
        ASSERT_TRUE(observer()->await("disconnected:renewals", {}, round));
    }
    const auto before = observer()->count("renewed");
    EXPECT_TRUE(observer()->await("renewed", lock.name(), before + 3));
    EXPECT_EQ(observer()->count("lost"), 0U);
    EXPECT_EQ(observer()->count("disconnected:commands"), 0U);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Reconnect, WaitersAreWokenAfterTheirSubscriptionWasKilled)
{
    const Client client(named("waiters"));
    const Client other(config());
    const auto lock = client.getLock(uniqueName());
    const auto elsewhere = other.getLock(lock.name());
    EXPECT_EQ(D::lock(elsewhere, 60s), true);
    Worker thread;
    auto waiter = thread.start([&] { return D::lock(lock); });
    for (std::size_t round = 1; round <= 2; ++round) {
        ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
        EXPECT_EQ(raw.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer(), 1);
        ASSERT_TRUE(observer()->await("disconnected:notifications", {}, round));
    }
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(elsewhere), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(thread.run([&] { return D::unlock(lock); }), Unlocked::released);
}

TEST_F(Reconnect, MessageThatIsMissedWhileTheSubscriptionIsDownIsMadeUpFor)
{
    const Client client(named("missed"));
    const auto lock = client.getLock(uniqueName());
    raw.command({"HSET", lock.name(), "stranger:1", "1"});
    raw.command({"PEXPIRE", lock.name(), "60000"});
    Worker thread;
    auto waiter = thread.start([&] { return D::lock(lock); });
    ASSERT_TRUE(eventually([&] { return listeners(lock.name()) == 1; }));
    raw.command({"MULTI"});
    raw.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    raw.command({"DEL", lock.name()});
    raw.command({"PUBLISH", channelOf(lock.name()), "0"});
    raw.command({"EXEC"});
    const Stopwatch watch;
    EXPECT_EQ(waiter.get(), true);
    EXPECT_LT(watch.elapsed(), soon);
    EXPECT_EQ(thread.run([&] { return D::unlock(lock); }), Unlocked::released);
}

TEST_F(Reconnect, AllConnectionsKilledAtOnceAgainAndAgainLoseNothing)
{
    Config config = named("all");
    config.watchdogTimeout = 3s;
    const Client client(config);
    const auto held = client.getLock(uniqueName());
    const auto lock = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(held), true);
    for (int round = 0; round < 10; ++round) {
        EXPECT_EQ(D::lock(lock), true);
        raw.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }
    EXPECT_TRUE(held.isHeldByCurrentThread());
    EXPECT_EQ(countOf(held.name()), "1");
    EXPECT_EQ(D::unlock(held), Unlocked::released);
}

TEST_F(Reconnect, InnerUnlockWhoseAnswerWasLostDoesNotLengthenTheBelief)
{
    FaultProxy proxy(server());
    Config config = observed();
    config.endpoint.port = proxy.port();
    config.watchdogTimeout = 6s;
    config.commandTimeout = 800ms;
    const Client client(config);
    const auto lock = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(lock), true);
    EXPECT_EQ(D::lock(lock), true);
    const auto rule = proxy.add({.command = "EVALSHA", .script = lock.name()}, Action::swallow());
    const Stopwatch watch;
    EXPECT_EQ(D::unlock(lock), Unlocked::stillHeld);
    EXPECT_GE(watch.elapsed(), 800ms);
    EXPECT_EQ(proxy.hits(rule), 1U);
    EXPECT_EQ(countOf(lock.name()), "1");
    const auto before = bootTime();
    const auto validFor = lock.validFor();
    const auto ttl = raw.pttl(lock.name());
    EXPECT_LE(before + validFor, bootTime() + ttl + 1ms) << "a belief beyond the lease in Redis";
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Reconnect, ForgottenScriptsAreSentAgain)
{
    const Client client(observed());
    const auto lock = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(lock), true);
    raw.command({"SCRIPT", "FLUSH"});
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    EXPECT_EQ(D::lock(lock), true) << "the next hold of the same thread";
    raw.command({"SCRIPT", "FLUSH"});
    EXPECT_EQ(D::lock(lock), true);
    EXPECT_EQ(countOf(lock.name()), "2");
    raw.command({"SCRIPT", "FLUSH"});
    EXPECT_EQ(D::isLocked(lock), true);
    EXPECT_EQ(D::unlock(lock), Unlocked::stillHeld);
    raw.command({"SCRIPT", "FLUSH"});
    const auto renewals = observer()->count("renewed");
    EXPECT_TRUE(observer()->await("renewed", lock.name(), renewals + 2));
    raw.command({"SCRIPT", "FLUSH"});
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    EXPECT_EQ(D::forceUnlock(lock), false);
    EXPECT_EQ(observer()->count("lost"), 0U);
}

TEST_F(Reconnect, GuardsEndIsSentAgainWhenItsScriptWasForgotten)
{
    const Client client(observed());
    const auto lock = client.getLock(uniqueName());
    {
        const LockGuard held(lock, Lease(60s));
        raw.command({"SCRIPT", "FLUSH"});
    }
    EXPECT_TRUE(eventually([&] { return !raw.exists(lock.name()); }));
    EXPECT_TRUE(observer()->await("released", lock.name()));
}

} // namespace
} // namespace redislock::test
