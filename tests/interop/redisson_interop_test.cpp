// Tests that are not about one kind of lock: the driver itself, kinds that share a name, processes that die.
#include "behaviour/lock_driver.hpp"
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <string>
#include <vector>

namespace redislock::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Versions, RedissonInterop, ::testing::ValuesIn(redissonVersions()),
                         [](const auto& redisson) { return testName(redisson.param); });

TEST_P(RedissonInterop, TheDriverKnowsEveryKindOfItsVersion)
{
    for (const auto* kind : {"lock", "spinLock", "fairLock", "readLock", "writeLock"}) {
        SCOPED_TRACE(kind);
        auto lock = javaObject(kind, uniqueName());
        EXPECT_EQ(lock.run("lock", longLease), "ok");
        EXPECT_EQ(lock.run("unlock"), "ok");
    }
    for (const auto* kind : {"multiLock", "redLock"}) {
        SCOPED_TRACE(kind);
        auto lock = javaObject(kind, uniqueName() + ',' + uniqueName() + ',' + uniqueName());
        EXPECT_EQ(lock.run("lock", longLease), "ok");
        EXPECT_EQ(lock.run("unlock"), "ok");
    }
    for (const auto* kind : {"fencedLock", "nonReentrant"}) {
        SCOPED_TRACE(kind);
        const auto name = uniqueName();
        auto lock = javaObject(kind, name);
        const bool known = std::stoi(GetParam()) >= 4;
        EXPECT_EQ(lock.run("lock", longLease), known ? "ok" : "error UnsupportedOperationException");
        EXPECT_EQ(lock.run("unlock"), known ? "ok" : "error UnsupportedOperationException");
        removeAllOf(name);
    }
}

TEST_P(RedissonInterop, TheDriverKnowsSemaphoresAndTheLatch)
{
    const auto name = uniqueName();
    auto semaphore = javaObject("semaphore", name);
    EXPECT_EQ(semaphore.run("trySetPermits", 2), "ok");
    EXPECT_EQ(semaphore.run("acquire", 2), "ok");
    EXPECT_EQ(semaphore.run("tryAcquire", 1, 10ms), "false");
    EXPECT_EQ(semaphore.run("release", 2), "ok");
    EXPECT_EQ(semaphore.run("available"), "ok 2");
    removeAllOf(name); // a semaphore stays for ever

    auto permits = javaObject("permitExpirableSemaphore", name);
    EXPECT_EQ(permits.run("trySetPermits", 1), "ok");
    const auto permit = permits.run("acquire", longLease).value;
    EXPECT_EQ(permits.run("tryAcquire", 10ms, longLease), "false");
    EXPECT_EQ(permits.run("tryRelease", permit), "ok");
    EXPECT_EQ(permits.run("tryRelease", permit), "false");
    removeAllOf(name);

    auto latch = javaObject("countDownLatch", name);
    auto waiter = javaObject("countDownLatch", name);
    EXPECT_EQ(latch.run("trySetCount", 1), "ok");
    waiter.start("await");
    awaitListener(name);
    EXPECT_EQ(latch.run("countDown"), "ok");
    EXPECT_EQ(waiter.answer(), "ok");
    EXPECT_EQ(latch.run("getCount"), "ok 0");
}

TEST_P(RedissonInterop, TheKindsExcludeEachOtherUnderOneName)
{
    const Client client(config());
    const auto name = uniqueName();
    for (const auto& ours : lockKinds) {
        for (const auto& theirs : lockKinds) {
            if (!has(GetParam(), theirs) || !ours.shared || !theirs.shared) {
                continue;
            }
            SCOPED_TRACE(std::string(ours.name) + " and Java's " + std::string(theirs.java));
            const auto here = ours.make(client, name);
            auto there = javaObject(theirs.java, name);
            here.lock();
            EXPECT_EQ(there.run("tryLock"), "false");
            EXPECT_EQ(here.unlock(), Unlocked::released);
            ASSERT_EQ(there.run("tryLock"), "ok");
            EXPECT_FALSE(here.tryLock());
            EXPECT_EQ(there.run("unlock"), "ok");
        }
    }
}

TEST_P(RedissonInterop, TheWatchdogsOfBothLanguagesKeepTheirLocksOfEveryKind)
{
    const Client client(config());
    std::vector<Lock> ours;
    std::vector<PeerObject> theirs;
    std::vector<PeerObject> waiters;
    for (const auto& kind : lockKinds) {
        if (!has(GetParam(), kind)) {
            continue;
        }
        const auto name = uniqueName();
        ours.push_back(kind.make(client, name));
        ours.back().lock();
        waiters.push_back(javaObject(kind.java, name));
        theirs.push_back(javaObject(kind.java, uniqueName()));
        ASSERT_EQ(theirs.back().run("lock"), "ok") << kind.name;
        waiters.emplace_back(peer(""), kind.java, theirs.back().name());
    }
    for (auto& waiter : waiters) { // each waits for the other's lock, all at the same time
        waiter.start("tryLock", watchdogTimeout * 5 / 2, longLease);
    }
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.answer(), "false");
    }
    for (const auto& lock : ours) {
        EXPECT_TRUE(lock.isHeldByCurrentThread());
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    for (auto& lock : theirs) {
        EXPECT_EQ(lock.run("unlock"), "ok");
    }
}

TEST_P(RedissonInterop, WhatAKilledJavaProcessHeldIsOursWhenItsLeaseIsOver)
{
    const Client client(config());
    const auto name = uniqueName();
    Peer java(peerOptions(GetParam()));
    ASSERT_EQ(PeerObject(java, "lock", name).run("lock"), "ok");
    const auto lock = client.getLock(name);
    EXPECT_FALSE(lock.tryLock());
    java.kill();
    ASSERT_TRUE(lock.tryLock(watchdogTimeout + soon));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(RedissonInterop, WhatAClientThatEndedHeldIsJavasWhenItsLeaseIsOver)
{
    const auto name = uniqueName();
    auto there = javaObject("lock", name);
    {
        const Client client(config());
        client.getLock(name).lock();
        there.start("lock");
        awaitListener(name);
    }
    EXPECT_EQ(there.answer(), "ok");
    EXPECT_EQ(there.run("unlock"), "ok");
}

} // namespace
} // namespace redislock::test
