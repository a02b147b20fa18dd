// Five servers, some of which are killed, frozen, emptied or slow: RedLock, and MultiLock over several servers.
#include "fault/fault_test.hpp"
#include "support/own_resources.hpp"

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

constexpr std::size_t servers = 5;

/// Five servers, each with a proxy that lets everything through until a test adds a rule.
///
/// After each test, with all servers back: the same RedLock must be taken on all five and freed, and no key may be left
/// anywhere.
class GroupFault : public ::testing::Test {
protected:
    GroupFault() : server(servers)
    {
        for (auto& each : server) {
            proxy.emplace_back(each);
        }
    }

    void TearDown() override
    {
        EXPECT_TRUE(proven_) << "no fault took place";
        for (std::size_t i = 0; i < servers; ++i) {
            proxy[i].clear();
            proxy[i].resume();
            server[i].thaw();
            if (!server[i].isRunning()) {
                server[i].restart();
            }
        }
        const RedLock lock(locks());
        EXPECT_TRUE(eventually([&] {
            GroupGuard held(lock, 10s, 10s);
            return eventually([&] { return held.heldMembers() == servers; }, 300ms) &&
                   held.release() == Unlocked::released;
        })) << "no hold on all servers after they came back";
        expectNoKeys();
        clients.clear();
        for (auto& each : server) {
            each.kill(); // faster than asking the servers to end
        }
    }

    void expectNoKeys()
    {
        for (auto& each : server) {
            if (each.isRunning()) {
                EXPECT_TRUE(eventually([&] { return keysOn(each) == 0; })) << "a key is left on " << each.url();
            }
        }
    }
    static std::int64_t keysOn(const testing::RedisServer& of) { return RawRedis(of).command({"DBSIZE"}).integer(); }

    /// A client for each server, a new set each time; kept for the test.
    std::vector<Lock> newLocks()
    {
        std::vector<Lock> locks;
        for (std::size_t i = 0; i < servers; ++i) {
            Config config = Config::fromUrl(proxy[i].url());
            config.connectTimeout = 1s;
            config.commandTimeout = commandTimeout;
            config.unreachableAfter = 2s;
            config.watchdogTimeout = 3s;
            clients.emplace_back(config);
            locks.push_back(clients.back().getLock(name));
        }
        return locks;
    }
    const std::vector<Lock>& locks()
    {
        if (locks_.empty()) {
            locks_ = newLocks();
        }
        return locks_;
    }

    void kill(std::size_t index)
    {
        server[index].kill();
        proven_ = !server[index].isRunning();
    }
    void freeze(std::size_t index)
    {
        server[index].freeze();
        proven_ = true; // a failed check throws
    }
    void empty(std::size_t index) { proven_ = RawRedis(server[index]).command({"FLUSHALL"}).text() == "OK"; }

    const std::string name = "stock:42";
    std::deque<testing::RedisServer> server;
    std::deque<FaultProxy> proxy;
    std::deque<Client> clients;
    std::chrono::milliseconds commandTimeout{500};
    bool proven_ = false;

private:
    std::vector<Lock> locks_;
};

using RedLockFault = GroupFault;
using MultiLockFault = GroupFault;

void expectTakenAndFreed(const RedLock& lock)
{
    const Stopwatch watch;
    std::error_code ec;
    ASSERT_TRUE(lock.tryLock(10s, 10s, ec)) << ec.message();
    EXPECT_GT(lock.validFor(), 5s);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_LT(watch.elapsed(), 1s + slack) << "the minority is waited for";
}

TEST_F(RedLockFault, AMinorityThatIsKilledChangesNothing)
{
    const RedLock lock(locks());
    for (const std::size_t victim : {0U, 1U}) {
        kill(victim);
        expectTakenAndFreed(lock);
        expectTakenAndFreed(lock);
    }
    expectNoKeys();
}

TEST_F(RedLockFault, AMinorityThatIsFrozenChangesNothing)
{
    const RedLock lock(locks());
    for (const std::size_t victim : {4U, 2U}) {
        freeze(victim);
        expectTakenAndFreed(lock);
        expectTakenAndFreed(lock);
    }
}

TEST_F(RedLockFault, AMinorityThatIsSlowUsesUpNoValidity)
{
    commandTimeout = 15s;
    const RedLock lock(locks());
    expectTakenAndFreed(lock);
    std::vector<std::pair<FaultProxy*, RuleId>> rules;
    for (const std::size_t slow : {1U, 3U}) {
        rules.emplace_back(&proxy[slow], proxy[slow].add(reply(redisLockLock, 0), Action::stallDirection()));
    }
    GroupGuard held(lock, 0ms, 20s);
    ASSERT_TRUE(held) << "it did not wait for the slow ones";
    EXPECT_GT(held.validFor(), 15s);
    for (const auto& each : rules) {
        proven_ = eventually([&] { return each.first->hits(each.second) > 0; });
        ASSERT_TRUE(proven_);
        each.first->clear();
        each.first->resume();
    }
    EXPECT_TRUE(eventually([&] { return held.heldMembers() == servers; })) << "they join the hold when they answer";
    EXPECT_EQ(held.release(), Unlocked::released);
}

TEST_F(RedLockFault, AHoldOutlivesTheDeathOfOneServerAndTheEmptyingOfAnotherAndIsLostWithTheThird)
{
    GroupGuard held(RedLock(locks()), waitForever, keepRenewing);
    const auto stop = held.stopToken();
    ASSERT_TRUE(eventually([&] { return held.heldMembers() == servers; }));
    kill(0);
    empty(1);
    EXPECT_TRUE(eventually([&] { return held.heldMembers() == 3; }, 6s));
    EXPECT_TRUE(held);
    EXPECT_FALSE(RedLock(newLocks()).tryLock(200ms)) << "a second majority";
    EXPECT_FALSE(stop.stop_requested());
    empty(2);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }, 3s + slack));
    EXPECT_FALSE(held);
    expectNoKeys(); // the two remaining members are given back
    EXPECT_EQ(held.release(), Unlocked::alreadyLost);
}

TEST_F(RedLockFault, AMajorityThatIsKilledEndsEveryCallInTimeAndLeavesNoKey)
{
    const RedLock lock(locks());
    for (const std::size_t victim : {0U, 1U, 2U}) {
        kill(victim);
    }
    Stopwatch watch;
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_LT(watch.elapsed(), 500ms + slack);
    watch.restart();
    EXPECT_FALSE(lock.tryLock(700ms, 10s, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 700ms);
    EXPECT_LT(watch.elapsed(), 1200ms + slack);
    watch.restart();
    lock.lock(ec);
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 2s) << "its patience";
    EXPECT_LT(watch.elapsed(), 3s + slack);
    expectNoKeys();
}

TEST_F(RedLockFault, AMajorityThatIsFrozenEndsTheWaitInTimeAndGivesBackWhatItGrantsWhenItGoesOn)
{
    const RedLock lock(locks());
    expectTakenAndFreed(lock); // so that the connections are there, and the requests arrive
    for (const std::size_t victim : {0U, 1U, 2U}) {
        freeze(victim);
    }
    const Stopwatch watch;
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(700ms, 60s, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_LT(watch.elapsed(), 1200ms + slack);
    for (const std::size_t victim : {0U, 1U, 2U}) {
        server[victim].thaw();
    }
    expectNoKeys(); // long before the lease is over
}

TEST_F(RedLockFault, AWaitSurvivesAMajorityThatComesBack)
{
    const RedLock lock(locks());
    for (const std::size_t victim : {0U, 1U, 2U}) {
        kill(victim);
    }
    auto waiter =
        std::async(std::launch::async, [&] { return lock.tryLock(20s, 10s) ? lock.unlock() : Unlocked::unconfirmed; });
    EXPECT_EQ(waiter.wait_for(300ms), std::future_status::timeout);
    server[1].restart();
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

TEST_F(RedLockFault, ThreadOfAClientThatEndsDoesNotOutliveItThoughAnAsynchronousWaitGoesOn)
{
    commandTimeout = 60s; // the wait has set its alarm for this time, on the thread of the first client
    const RedLock lock(newLocks());
    expectTakenAndFreed(lock); // so that the connections are there, and the requests arrive
    for (const std::size_t victim : {1U, 2U, 3U}) {
        freeze(victim);
    }
    auto waiter = lock.asyncTryLock(50s, 1h, boost::asio::use_future);
    ASSERT_TRUE(eventually([&] { return keysOn(server[0]) == 1; }));
    const auto threads = runningThreads();
    clients.pop_front();
    EXPECT_EQ(keysOn(server[0]), 0) << "nobody knew of that member";
    EXPECT_TRUE(eventually([&] { return runningThreads() == threads - 1; }, 10s));
    for (const std::size_t victim : {1U, 2U, 3U}) {
        server[victim].thaw();
    }
    EXPECT_NO_THROW((void)waiter.get()) << "it goes on with those that are left";
}

TEST_F(RedLockFault, FiveThatWantItMakeProgressThoughTwoServersAreDown)
{
    kill(3);
    freeze(4);
    constexpr int each = 4;
    int count = 0;
    std::atomic<int> inside{0};
    std::vector<std::jthread> contenders;
    for (std::size_t i = 0; i < servers; ++i) {
        contenders.emplace_back([&, lock = RedLock(newLocks())] {
            for (int k = 0; k < each; ++k) {
                std::error_code ec;
                ASSERT_TRUE(lock.tryLock(60s, 20s, ec)) << ec.message();
                EXPECT_EQ(++inside, 1);
                ++count; // guarded by the lock
                --inside;
                EXPECT_EQ(lock.unlock(), Unlocked::released);
            }
        });
    }
    contenders.clear();
    EXPECT_EQ(count, each * static_cast<int>(servers));
}

TEST_F(MultiLockFault, AMemberThatDoesNotAnswerLeavesNoneOfTheOthersHeld)
{
    const auto members = locks();
    const MultiLock lock({members[0], members[1], members[2]});
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    freeze(1);
    const Stopwatch watch;
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(0ms, 60s, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_LT(watch.elapsed(), 500ms + slack);
    server[1].thaw();
    expectNoKeys(); // also of the member whose answer was lost
}

TEST_F(MultiLockFault, AServerThatIsEmptiedOrKilledLosesTheGroupAndTheRestIsReleased)
{
    const auto members = locks();
    const MultiLock lock({members[0], members[1], members[2]});
    for (const bool dies : {false, true}) {
        GroupGuard held(lock);
        const auto stop = held.stopToken();
        ASSERT_TRUE(held);
        dies ? kill(2) : empty(2);
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }, 3s + slack));
        EXPECT_FALSE(held);
        expectNoKeys();
        EXPECT_EQ(held.release(), Unlocked::alreadyLost);
    }
}

TEST_F(MultiLockFault, AReleaseGoesToAllMembersThoughOneServerIsDead)
{
    const auto members = locks();
    const MultiLock lock({members[0], members[1], members[2]});
    lock.lock(3s);
    kill(0);
    EXPECT_THAT(lock.unlock(), ::testing::AnyOf(Unlocked::unconfirmed, Unlocked::alreadyLost));
    EXPECT_EQ(keysOn(server[1]), 0);
    EXPECT_EQ(keysOn(server[2]), 0);
}

} // namespace
} // namespace redislock::test
