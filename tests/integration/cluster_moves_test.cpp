// A slot that moves from one node of a cluster to another, in each of its states.
#include "integration/cluster_test.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::IsEmpty;

/// Takes, nests, releases and forces a plain lock.
void usePlainLock(const Client& client, const std::string& name)
{
    const auto lock = client.getLock(name);
    ASSERT_EQ(errorOf([&] { lock.lock(5s); }), "");
    ASSERT_EQ(errorOf([&] { lock.lock(5s); }), "");
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    LockGuard guard(lock);
    ASSERT_TRUE(guard);
    EXPECT_TRUE(lock.forceUnlock());
    EXPECT_EQ(guard.release(), Unlocked::alreadyLost);
}

TEST_F(InCluster, APlainLockIsUsableInEveryStateOfASlotThatMoves)
{
    const auto tag = tagAt(masterOf("some"));
    const auto from = masterOf(tag);
    const auto to = otherThan(tag);
    const Client client(config());
    const Client other(config());
    const auto name = "{" + tag + "}";
    const auto held = client.getLock(name + "held");
    const auto read = client.getReadWriteLock(name + "rw").readLock();
    const auto write = client.getReadWriteLock(name + "ww").writeLock();
    const auto fair = client.getFairLock(name + "fair");
    held.lock();
    read.lock();
    write.lock();
    fair.lock();

    cluster().open(tag, from, to);
    usePlainLock(client, name + "new");
    EXPECT_LT(handOver(client.getLock(name + "wake"), other.getLock(name + "wake")), aMoment);
    std::this_thread::sleep_for(3500ms); // longer than the lease
    EXPECT_TRUE(held.isHeldByCurrentThread());
    EXPECT_TRUE(read.isHeldByCurrentThread());
    EXPECT_TRUE(write.isHeldByCurrentThread());
    EXPECT_TRUE(fair.isHeldByCurrentThread());

    cluster().moveKey(name + "held", from, to);
    usePlainLock(client, name + "new");
    EXPECT_LT(handOver(client.getLock(name + "wake"), other.getLock(name + "wake")), aMoment);
    EXPECT_EQ(errorOf([&] { held.lock(); }), "");
    EXPECT_EQ(held.unlock(), Unlocked::stillHeld);

    cluster().moveKeys(tag, from, to);
    std::this_thread::sleep_for(3500ms);
    EXPECT_TRUE(held.isHeldByCurrentThread());
    EXPECT_TRUE(read.isHeldByCurrentThread());
    usePlainLock(client, name + "new");

    cluster().close(tag, to);
    usePlainLock(client, name + "new");
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_EQ(fair.unlock(), Unlocked::released);
}

TEST_F(InCluster, WhileASlotMovesItsWaitersListenAtBothSides)
{
    const auto tag = tagAt(masterOf("some"));
    const auto from = masterOf(tag);
    const auto to = otherThan(tag);
    Config own = config();
    own.pollInterval = 300ms;
    const Client client(own);
    const auto name = "{" + tag + "}a";
    RawRedis source(cluster().node(from));
    RawRedis target(cluster().node(to));
    source.command({"HSET", name, "stranger:1", "1"});
    source.command({"PEXPIRE", name, "60000"});
    std::promise<Clock::time_point> got;
    std::jthread waiter([&] {
        const auto lock = client.getLock(name);
        lock.lock();
        got.set_value(Clock::now());
        lock.unlock();
    });
    const auto channel = "redisson_lock__channel:" + name;
    const auto listeners = [&](RawRedis& node) {
        return node.command({"PUBSUB", "SHARDNUMSUB", channel}).elements.at(1).integer();
    };
    EXPECT_TRUE(eventually([&] { return listeners(source) == 1; }));
    cluster().open(tag, from, to);
    cluster().moveKey(name, from, to);
    EXPECT_TRUE(eventually([&] { return listeners(target) == 1; }));
    EXPECT_EQ(listeners(source), 1);
    const auto begin = Clock::now();
    target.command({"ASKING"});
    const auto told = target.command(
        {"EVAL", "redis.call('DEL', KEYS[1]) return redis.call('SPUBLISH', ARGV[1], '0')", "1", name, channel});
    EXPECT_EQ(told.integer(), 1);
    EXPECT_LT(got.get_future().get() - begin, 250ms) << "before the next poll";
    waiter.join();
    EXPECT_TRUE(eventually([&] { return listeners(target) == 0; })) << "nobody waits any more";
    cluster().moveKeys(tag, from, to);
    cluster().close(tag, to);
}

TEST_F(InCluster, OtherKindsWaitUntilTheSlotHasMoved)
{
    const auto tag = tagAt(masterOf("some"));
    const auto from = masterOf(tag);
    const auto to = otherThan(tag);
    const Client client(config());
    client.connect();
    cluster().open(tag, from, to);
    const auto name = "{" + tag + "}";
    auto acquired = std::async(std::launch::async, [&] {
        return errorOf([&] {
            client.getFairLock(name + "f").lock(1s);
            client.getReadWriteLock(name + "rw").writeLock().lock(1s);
            client.getFencedLock(name + "t").lock(1s);
        });
    });
    EXPECT_EQ(acquired.wait_for(500ms), std::future_status::timeout);
    cluster().moveKeys(tag, from, to);
    cluster().close(tag, to);
    EXPECT_EQ(acquired.get(), "");
}

TEST_F(InCluster, AWaiterHearsOfTheReleaseAfterItsSlotHasMoved)
{
    const auto tag = tagAt(masterOf("some"));
    const auto from = masterOf(tag);
    const auto to = otherThan(tag);
    const Client client(config());
    const Client other(config());
    const auto lock = client.getLock(tag);
    lock.lock(30s);
    std::promise<void> got;
    std::jthread waiter([&] {
        const auto wanted = other.getLock(tag);
        wanted.lock(30s);
        got.set_value();
        wanted.unlock();
    });
    const auto channel = "redisson_lock__channel:{" + tag + "}";
    const auto listens = [&](std::size_t node) {
        return RawRedis(cluster().node(node)).command({"PUBSUB", "SHARDNUMSUB", channel}).elements.at(1).integer() == 1;
    };
    ASSERT_TRUE(eventually([&] { return listens(from); }));
    cluster().open(tag, from, to);
    cluster().moveKeys(tag, from, to);
    cluster().close(tag, to);
    EXPECT_TRUE(eventually([&] { return listens(to); }));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(got.get_future().wait_for(aMoment), std::future_status::ready);
}

TEST_F(InCluster, ManyMovesUnderLoadLoseNothing)
{
    const auto tag = tagAt(masterOf("some"));
    const Config own = config();
    const Client client(own);
    const auto counted = client.getLock("{" + tag + "}count");
    std::atomic<int> inside{0};
    std::atomic<bool> wereTwo{false};
    std::atomic<int> count{0};
    std::vector<std::string> errors;
    std::mutex mutex;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&, config = own](const std::stop_token& end) {
                const Client mine(config);
                while (!end.stop_requested()) {
                    try {
                        const auto lock = mine.getLock("{" + tag + "}count");
                        lock.lock();
                        wereTwo = wereTwo || ++inside > 1;
                        ++count;
                        --inside;
                        lock.unlock();
                    } catch (const LockError& error) {
                        const std::lock_guard guard(mutex);
                        errors.emplace_back(error.what());
                    }
                }
            });
        }
        for (int round = 0; round < 50; ++round) {
            const auto from = masterOf(tag);
            const auto to = otherThan(tag);
            cluster().open(tag, from, to);
            cluster().moveKeys(tag, from, to);
            cluster().moveKeys(tag, from, to);
            cluster().close(tag, to);
        }
    }
    EXPECT_FALSE(wereTwo);
    EXPECT_GT(count, 100);
    EXPECT_THAT(errors, IsEmpty());
}

} // namespace
} // namespace redislock::test
