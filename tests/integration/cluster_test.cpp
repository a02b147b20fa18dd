// Locks in a cluster: every slot, every state of a slot that moves, fail-overs while locks are held and wanted.
#include "behaviour/recording_observer.hpp"
#include "redislock/redislock.hpp"
#include "support/certificates.hpp"
#include "support/deployments.hpp"
#include "support/raw_redis.hpp"
#include "wire/slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What takes a moment, on a busy machine; far below a poll.
constexpr milliseconds aMoment{3000};

template <class Act>
std::string errorOf(Act act)
{
    try {
        act();
    } catch (const LockError& error) {
        return error.what();
    }
    return {};
}

milliseconds since(Clock::time_point begin)
{
    return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

/// Locks and unlocks all the time, each time a lock of another name with the same tag.
class Turns {
public:
    Turns(const Config& config, std::string tag)
        : client_(config), tag_(std::move(tag)), thread_([this](const std::stop_token& end) { run(end); })
    {
    }

    [[nodiscard]] int count() const noexcept { return count_; }
    [[nodiscard]] std::vector<std::string> errors() const
    {
        const std::lock_guard lock(mutex_);
        return errors_;
    }
    /// The longest time between two grants.
    [[nodiscard]] milliseconds gap() const noexcept { return milliseconds(gap_); }

private:
    void run(const std::stop_token& end)
    {
        auto last = Clock::now();
        for (int i = 0; !end.stop_requested(); ++i) {
            try {
                const auto lock = client_.getLock("{" + tag_ + "}" + std::to_string(i));
                lock.lock(5s);
                gap_ = std::max(gap_.load(), since(last).count());
                last = Clock::now();
                ++count_;
                lock.unlock();
            } catch (const LockError& error) {
                const std::lock_guard lock(mutex_);
                errors_.emplace_back(error.what());
            }
            std::this_thread::sleep_for(1ms);
        }
    }

    Client client_;
    const std::string tag_;
    std::atomic<int> count_{0};
    std::atomic<milliseconds::rep> gap_{0};
    mutable std::mutex mutex_;
    std::vector<std::string> errors_;
    std::jthread thread_;
};

class InCluster : public ::testing::Test {
protected:
    static Cluster& cluster()
    {
        static Cluster instance(3, 1);
        return instance;
    }

    ~InCluster() override { cluster().heal(); }

    static Config config()
    {
        Config config = Config::fromUrl(cluster().url());
        config.watchdogTimeout = 3s;
        config.pollInterval = 60s; // who is not told waits in vain
        return config;
    }
    /// The lease outlasts a fail-over on a busy machine.
    static Config patient()
    {
        Config patient = config();
        patient.watchdogTimeout = 20s;
        return patient;
    }
    /// A tag whose slot is at that node now.
    static std::string tagAt(std::size_t node)
    {
        static int last = 0;
        for (;;) {
            auto tag = "t" + std::to_string(++last);
            if (cluster().ownerOf(tag) == node) {
                return tag;
            }
        }
    }
    static std::size_t masterOf(const std::string& tag) { return cluster().ownerOf(tag); }
    /// A master that has not the slot of that tag.
    static std::size_t otherThan(const std::string& tag)
    {
        for (std::size_t i = 0;; ++i) {
            const auto other = cluster().ownerOf("any" + std::to_string(i));
            if (other != masterOf(tag)) {
                return other;
            }
        }
    }
};

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

/// @param other waits for what the first one has
template <class Held, class Wanted>
milliseconds handOver(const Held& held, const Wanted& wanted)
{
    held.lock(30s);
    std::promise<Clock::time_point> got;
    std::jthread waiter([&] {
        wanted.lock(30s);
        got.set_value(Clock::now());
        wanted.unlock();
    });
    std::this_thread::sleep_for(200ms);
    const auto begin = Clock::now();
    held.unlock();
    return std::chrono::duration_cast<milliseconds>(got.get_future().get() - begin);
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

TEST_F(InCluster, AHeldLockIsKeptAndWaitersServedWhenAReplicaTakesOver)
{
    const auto tag = tagAt(masterOf("some"));
    const auto former = masterOf(tag);
    const auto observer = std::make_shared<RecordingObserver>();
    Config own = config();
    own.observer = observer;
    const Client client(own);
    const Client other(config());
    const auto held = client.getLock("{" + tag + "}held");
    held.lock();
    const auto wanted = other.getLock("{" + tag + "}held");
    std::promise<void> got;
    std::jthread waiter([&] {
        wanted.lock(30s);
        got.set_value();
        wanted.unlock();
    });
    const Turns turns(config(), tag);
    std::this_thread::sleep_for(300ms);
    RawRedis(cluster().node(cluster().replicaOf(former))).command({"CLUSTER", "FAILOVER"});
    EXPECT_TRUE(eventually([&] { return masterOf(tag) != former; }));
    std::this_thread::sleep_for(500ms);
    EXPECT_TRUE(held.isHeldByCurrentThread());
    const auto soFar = turns.count();
    EXPECT_TRUE(eventually([&] { return turns.count() > soFar + 10; }));
    EXPECT_THAT(turns.errors(), IsEmpty());
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(got.get_future().wait_for(aMoment), std::future_status::ready);
}

class ADeadMaster : public InCluster, public ::testing::WithParamInterface<const char*> {};

TEST_P(ADeadMaster, IsReplacedWithoutAnErrorAndDisturbsNoOtherNode)
{
    for (std::size_t i = 0; i < cluster().size(); ++i) {
        RawRedis(cluster().node(i)).command({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
    }
    const auto tag = tagAt(masterOf("some"));
    const auto dead = masterOf(tag);
    const auto others = tagAt(otherThan(tag));
    const Client client(patient());
    const auto held = client.getLock("{" + tag + "}held");
    held.lock();
    const Turns here(config(), tag);
    const Turns there(config(), others);
    std::this_thread::sleep_for(1500ms); // the replica has the held lock
    GetParam() == std::string_view("killed") ? cluster().node(dead).kill() : cluster().node(dead).freeze();
    ASSERT_TRUE(eventually([&] { return masterOf(tag) != dead; }));
    const auto before = here.count();
    EXPECT_TRUE(eventually([&] { return here.count() > before + 10; }, aMoment));
    EXPECT_THAT(here.errors(), IsEmpty());
    EXPECT_THAT(there.errors(), IsEmpty());
    EXPECT_LT(there.gap(), 1000ms) << "of the healthy nodes";
    EXPECT_TRUE(held.isHeldByCurrentThread());
    std::this_thread::sleep_for(1s); // a renewal, at the new master
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

INSTANTIATE_TEST_SUITE_P(Ways, ADeadMaster, ::testing::Values("killed", "stopped"),
                         [](const auto& way) { return std::string(way.param); });

TEST_F(InCluster, WhereFullCoverageIsRequiredTheOutageIsSatOut)
{
    for (std::size_t i = 0; i < cluster().size(); ++i) {
        RawRedis(cluster().node(i)).command({"CONFIG", "SET", "cluster-require-full-coverage", "yes"});
    }
    const auto tag = tagAt(masterOf("some"));
    const auto others = tagAt(otherThan(tag));
    const Client client(patient());
    const auto held = client.getLock("{" + others + "}held");
    held.lock();
    const Turns there(config(), others);
    std::this_thread::sleep_for(1s);
    const auto dead = masterOf(tag);
    cluster().node(dead).kill();
    ASSERT_TRUE(eventually([&] { return masterOf(tag) != dead; }));
    const auto before = there.count();
    EXPECT_TRUE(eventually([&] { return there.count() > before + 10; }));
    EXPECT_THAT(there.errors(), IsEmpty());
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

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

#if REDISLOCK_WITH_TLS
TEST(InClusterOverTls, EveryMasterGrantsAndTells)
{
    const Cluster secured(3, 0,
                          {.arguments = {"--tls-cluster", "yes", "--tls-replication", "yes"}, .tls = serverTls()});
    Config config = Config::fromUrl("rediss-cluster://127.0.0.1:" + std::to_string(secured.node().port()));
    config.tls->caFile = secured.node().tls()->caFile;
    config.pollInterval = 60s;
    const Client one(config);
    const Client two(config);
    for (int i = 0; i < 12; ++i) {
        const auto name = "tls" + std::to_string(i);
        EXPECT_LT(handOver(one.getLock(name), two.getLock(name)), aMoment);
    }
    config.tls->caFile.clear();
    EXPECT_THAT(errorOf([&] { Client(config).connect(); }), HasSubstr("trusted"));
}
#endif

} // namespace
} // namespace redislock::test
