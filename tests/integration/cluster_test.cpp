// Locks of every kind in a cluster, who is told of what at which node, and what is refused.
#include "integration/cluster_test.hpp"

#include "wire/slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(InCluster, EveryMasterGrantsAndFreesLocks)
{
    const Client client(config());
    client.connect();
    std::vector<int> granted(cluster().size());
    for (int i = 0; i < 60; ++i) {
        const auto name = "spread:" + std::to_string(i);
        const auto lock = client.getLock(name);
        lock.lock();
        const auto owner = masterOf(name);
        ++granted[owner];
        EXPECT_TRUE(RawRedis(cluster().node(owner)).exists(name));
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    EXPECT_EQ(std::ranges::count_if(granted, [](int count) { return count > 5; }), 3);
}

TEST_F(InCluster, WaitersOfEveryKindHearOfReleasesInEveryMode)
{
    for (const auto mode :
         {Notifications::automatic, Notifications::sharded, Notifications::classic, Notifications::both}) {
        Config own = config();
        own.notifications = mode;
        const Client a(own);
        const Client b(own);
        const auto name = "heard" + std::to_string(static_cast<int>(mode));
        EXPECT_LT(handOver(a.getLock(name), b.getLock(name)), aMoment);
        EXPECT_LT(handOver(a.getFairLock(name + "f"), b.getFairLock(name + "f")), aMoment);
        EXPECT_LT(handOver(a.getFencedLock(name + "t"), b.getFencedLock(name + "t")), aMoment);
        const auto one = a.getReadWriteLock(name + "rw");
        const auto two = b.getReadWriteLock(name + "rw");
        EXPECT_LT(handOver(one.writeLock(), two.writeLock()), aMoment);
        EXPECT_LT(handOver(one.writeLock(), two.readLock()), aMoment);
        EXPECT_LT(handOver(one.readLock(), two.writeLock()), aMoment);
        const auto semaphore = a.getSemaphore(name + "s");
        ASSERT_TRUE(semaphore.trySetPermits(1));
        semaphore.acquire();
        const auto latch = a.getCountDownLatch(name + "l");
        ASSERT_TRUE(latch.trySetCount(1));
        const auto begin = Clock::now();
        std::thread permits([&] { b.getSemaphore(name + "s").acquire(); });
        std::thread waits([&] { b.getCountDownLatch(name + "l").wait(); });
        std::this_thread::sleep_for(200ms);
        semaphore.release();
        latch.countDown();
        permits.join();
        waits.join();
        EXPECT_LT(since(begin), aMoment);
        semaphore.forceDelete();
    }
}

TEST_F(InCluster, ReleasesAreHeardAtTheNodeOfTheNameAlone)
{
    const Client client(config());
    const Client other(config());
    const auto tag = tagAt(masterOf("some"));
    const auto lock = client.getLock(tag);
    lock.lock(30s);
    std::jthread waiter([&] {
        const auto wanted = other.getLock(tag);
        wanted.lock(30s);
        wanted.unlock();
    });
    const auto channel = "redisson_lock__channel:{" + tag + "}";
    const auto listeners = [&](std::size_t node) {
        return RawRedis(cluster().node(node)).command({"PUBSUB", "SHARDNUMSUB", channel}).elements.at(1).integer();
    };
    EXPECT_TRUE(eventually([&] { return listeners(masterOf(tag)) == 1; }));
    EXPECT_EQ(listeners(otherThan(tag)), 0);
    lock.unlock();
}

TEST_F(InCluster, RenewalsGoOnForLocksInManySlots)
{
    Config own = config();
    own.watchdogTimeout = 1s;
    const Client client(own);
    std::vector<LockGuard> guards;
    for (int i = 0; i < 500; ++i) {
        guards.emplace_back(client.getLock("many:" + std::to_string(i)));
    }
    std::this_thread::sleep_for(2500ms);
    for (auto& guard : guards) {
        EXPECT_TRUE(guard);
        EXPECT_EQ(guard.release(), Unlocked::released);
    }
}

TEST_F(InCluster, AGroupOverSeveralNodesIsAllOrNothing)
{
    const Client client(config());
    std::vector<std::string> tags;
    for (std::size_t i = 0; tags.size() < 3; ++i) {
        auto tag = "group" + std::to_string(i);
        const auto isNew =
            std::ranges::none_of(tags, [&](const auto& each) { return masterOf(each) == masterOf(tag); });
        if (isNew) {
            tags.push_back(tag);
        }
    }
    MultiLock all({client.getLock(tags[0]), client.getLock(tags[1]), client.getLock(tags[2])});
    all.lock();
    EXPECT_EQ(all.unlock(), Unlocked::released);
    const Client other(config());
    const auto last = other.getLock(tags[2]);
    last.lock(30s);
    EXPECT_FALSE(all.tryLock(300ms));
    EXPECT_TRUE(client.getLock(tags[0]).tryLock());
    client.getLock(tags[0]).unlock();
    last.unlock();
}

TEST_F(InCluster, MembersOfARedLockMustNotBeInOneCluster)
{
    const Client one(cluster().url(0));
    const Client two(cluster().url(1));
    const Client three(cluster().url(2));
    RedLock lock({one.getLock("red"), two.getLock("red"), three.getLock("red")});
    EXPECT_THAT(errorOf([&] { lock.lock(); }), HasSubstr("one server"));
}

TEST_F(InCluster, DurabilityIsAskedOfTheNodeOfTheName)
{
    const Client client(config());
    for (int i = 0; i < 12; ++i) {
        const auto lock = client.getLock("durable" + std::to_string(i), Durability::replicas(1, 2s));
        EXPECT_EQ(errorOf([&] { lock.lock(); }), "");
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    const auto lock = client.getLock("durable", Durability::replicas(2, 100ms));
    EXPECT_THAT(errorOf([&] { (void)lock.tryLock(300ms, 5s); }), HasSubstr("too few replicas"));
}

TEST_F(InCluster, TheMonitorSeesTheLocksOfAllNodesOnce)
{
    const Client client(config());
    std::vector<LockGuard> guards;
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
        names.push_back("seen:" + std::to_string(i));
        guards.emplace_back(client.getLock(names.back()));
    }
    LockMonitor monitor(config());
    const auto namesSeen = [&] {
        std::vector<std::string> all;
        for (const auto& lock : monitor.list("seen:*")) {
            all.push_back(lock.name);
            EXPECT_EQ(lock.holders.at(0).clientId, client.id());
            EXPECT_NE(lock.holders.at(0).host, "");
        }
        return all;
    };
    EXPECT_THAT(namesSeen(), ::testing::UnorderedElementsAreArray(names));
    const auto found = monitor.find(names[3]);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->waiters, 0U);
    const auto explained = client.getLock(names[3]).explain();
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->holders.at(0).clientId, client.id());

    const auto from = masterOf(names[3]);
    const auto to = otherThan(names[3]);
    cluster().open(names[3], from, to);
    cluster().moveKeys(names[3], from, to);
    EXPECT_TRUE(monitor.find(names[3]));
    EXPECT_THAT(namesSeen(), ::testing::UnorderedElementsAreArray(names)) << "while one of them moves";
    cluster().close(names[3], to);

    const auto report = monitor.server("any");
    ASSERT_TRUE(report.cluster);
    EXPECT_EQ(report.cluster->shards.size(), 3U);
    EXPECT_TRUE(report.cluster->isWhole);
    EXPECT_EQ(report.cluster->nodeTimeout, 1000ms);
    EXPECT_EQ(report.cluster->shards[0].replicas.size(), 1U);
    ASSERT_TRUE(report.lackingRights);
    EXPECT_THAT(*report.lackingRights, IsEmpty());
}

TEST_F(InCluster, NamesWhoseKeysAreInSeveralSlotsAreRefused)
{
    const Client client(cluster().url());
    for (const char* name : {"a{b", "a}b", "{}x", "x{}", "{a", "}", "a{}{b}c"}) {
        const auto why = errorOf([&] { (void)client.getLock(name); });
        EXPECT_THAT(why, HasSubstr("is in slot " + keySlot(cluster().node(), name))) << name;
        EXPECT_THAT(why, HasSubstr("in a cluster a name has no braces")) << name;
        EXPECT_NE(errorOf([&] { (void)client.getSemaphore(name); }), "") << name;
    }
    EXPECT_EQ(errorOf([&] { (void)client.getFairLock("orders{7}x"); }), "");
    EXPECT_THAT(errorOf([&] { (void)client.getCountDownLatch("{a}b"); }), HasSubstr("that of a latch has none"));
}

TEST_F(InCluster, SeedsThatAreDeadOrNoNodesAreToldApart)
{
    const auto port = std::to_string(cluster().node().port());
    EXPECT_EQ(errorOf([&] { Client("redis-cluster://127.0.0.1:1,127.0.0.1:" + port).connect(); }), "");
    EXPECT_THAT(errorOf([&] { Client("redis-cluster://127.0.0.1:1").connect(); }), HasSubstr("nothing listens"));
    const testing::RedisServer plain;
    EXPECT_THAT(errorOf([&] { Client("redis-cluster://127.0.0.1:" + std::to_string(plain.port())).connect(); }),
                HasSubstr("use redis://"));
    const Sentinel sentinel;
    EXPECT_THAT(
        errorOf([&] { Client("redis-cluster://127.0.0.1:" + std::to_string(sentinel.server().port())).connect(); }),
        HasSubstr("redis-sentinel://"));
    EXPECT_THAT(errorOf([&] { Client("redis://127.0.0.1:" + port).connect(); }), HasSubstr("redis-cluster://"));
    EXPECT_EQ(errorOf([&] {
                  Client("redis-cluster://127.0.0.1:" + std::to_string(plain.port()) + ",127.0.0.1:" + port).connect();
              }),
              "");
}

TEST_F(InCluster, AnAddressThatCannotBeMappedIsNamedToThoseWhoNeedIt)
{
    const auto unmapped = cluster().node(masterOf("some")).port();
    Config own = config();
    own.addressMap = [unmapped](const Endpoint& announced) -> Endpoint {
        return announced.port == unmapped ? throw std::runtime_error("not in the table") : announced;
    };
    const Client client(own);
    EXPECT_EQ(errorOf([&] { LockGuard(client.getLock(tagAt(otherThan("some")))).release(); }), "");
    const auto said = errorOf([&] { (void)client.getLock("some").tryLock(10s); });
    EXPECT_THAT(said, HasSubstr("addressMap"));
    EXPECT_THAT(said, HasSubstr("not in the table"));
}

TEST_F(InCluster, AUserWithoutTheRightToTheTableIsToldSo)
{
    for (std::size_t i = 0; i < cluster().size(); ++i) {
        RawRedis(cluster().node(i))
            .command({"ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-cluster|slots"});
    }
    const auto port = std::to_string(cluster().node().port());
    EXPECT_THAT(errorOf([&] { Client("redis-cluster://blind:pw@127.0.0.1:" + port).connect(); }),
                HasSubstr("cluster|slots"));
}

} // namespace
} // namespace redislock::test
