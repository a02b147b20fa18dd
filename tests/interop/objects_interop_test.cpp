// The objects that are more than one hash with one field: fair queues, readers and writers, tokens, permits, latches.
#include "behaviour/lock_driver.hpp"
#include "behaviour/worker.hpp"
#include "interop/interop_test.hpp"
#include "redislock/redislock.hpp"
#include "support/eventually.hpp"

#include <deque>
#include <future>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class ObjectsInterop : public RedissonInterop {
protected:
    std::int64_t queued(const std::string& name)
    {
        return raw.command({"LLEN", "redisson_lock_queue:{" + name + "}"}).integer();
    }

    const Client client{config()};
};

INSTANTIATE_TEST_SUITE_P(Versions, ObjectsInterop, ::testing::ValuesIn(redissonVersions()),
                         [](const auto& redisson) { return testName(redisson.param); });

TEST_P(ObjectsInterop, TokensOfBothLanguagesGrowTogether)
{
    if (std::stoi(GetParam()) < 4) {
        return; // it has no such lock
    }
    const auto name = uniqueName();
    const auto here = client.getFencedLock(name);
    auto there = javaObject("fencedLock", name);
    std::uint64_t last = std::stoull(there.run("lockAndGetToken").value);
    EXPECT_EQ(there.run("unlock"), "ok");
    for (int round = 0; round < 3; ++round) {
        const auto ours = static_cast<std::uint64_t>(here.lockAndGetToken());
        EXPECT_GT(ours, last);
        EXPECT_EQ(here.unlock(), Unlocked::released);
        last = std::stoull(there.run("lockAndGetToken").value);
        EXPECT_GT(last, ours);
        EXPECT_EQ(there.run("unlock"), "ok");
    }
}

TEST_P(ObjectsInterop, WaitersOfBothLanguagesAreServedInTheOrderOfAsking)
{
    const auto name = uniqueName();
    const auto lock = client.getFairLock(name);
    lock.lock(longLease);
    std::deque<Worker> workers;
    std::deque<PeerObject> javas;
    std::vector<std::future<BootClock::time_point>> ours;
    for (int i = 0; i < 6; ++i) {
        if (i % 2 == 0) {
            javas.push_back(javaObject("fairLock", name));
            javas.back().start("lock", longLease);
        } else {
            ours.push_back(workers.emplace_back().start([&] {
                lock.lock(longLease);
                return BootClock::now();
            }));
        }
        ASSERT_TRUE(eventually([&] { return queued(name) == i + 1; })) << i;
    }
    ASSERT_EQ(lock.unlock(), Unlocked::released);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(javas[i].answer(), "ok");
        EXPECT_EQ(ours[i].wait_for(20ms), std::future_status::timeout) << "it is behind";
        EXPECT_EQ(queued(name), 5 - 2 * static_cast<std::int64_t>(i));
        EXPECT_EQ(javas[i].run("unlock"), "ok");
        ASSERT_EQ(ours[i].wait_for(soon), std::future_status::ready);
        EXPECT_EQ(workers[i].run([&] { return lock.unlock(); }), Unlocked::released);
    }
}

TEST_P(ObjectsInterop, FairLockIsHandedOnToJavaWhenOurWaiterGivesUp)
{
    const auto name = uniqueName();
    const auto lock = client.getFairLock(name);
    auto there = javaObject("fairLock", name);
    Worker worker;
    lock.lock(longLease);
    auto gaveUp = worker.start([&] { return lock.tryLock(300ms); });
    ASSERT_TRUE(eventually([&] { return queued(name) == 1; }));
    there.start("lock", longLease);
    ASSERT_TRUE(eventually([&] { return queued(name) == 2; }));
    EXPECT_FALSE(gaveUp.get());
    ASSERT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(there.answer(), "ok");
    EXPECT_EQ(there.run("unlock"), "ok");
}

TEST_P(ObjectsInterop, ReadersOfBothLanguagesReadTogetherAndWritersOfNeitherComeBetween)
{
    const auto name = uniqueName();
    const auto lock = client.getReadWriteLock(name);
    auto reader = javaObject("readLock", name);
    auto writer = javaObject("writeLock", name);
    Worker worker;
    ASSERT_EQ(reader.run("lock", longLease), "ok");
    EXPECT_TRUE(lock.readLock().tryLock(0ms, longLease));
    EXPECT_FALSE(worker.run([&] { return lock.writeLock().tryLock(); }));
    EXPECT_EQ(writer.run("tryLock"), "false");
    EXPECT_EQ(reader.run("unlock"), "ok");
    EXPECT_TRUE(lock.readLock().isLocked()) << "the end of Java's reading leaves ours";
    EXPECT_EQ(writer.run("tryLock"), "false");
    ASSERT_EQ(reader.run("lock", longLease), "ok");
    EXPECT_EQ(lock.readLock().unlock(), Unlocked::released);
    EXPECT_FALSE(worker.run([&] { return lock.writeLock().tryLock(); })) << "the end of ours leaves Java's";
    EXPECT_EQ(reader.run("unlock"), "ok");
    EXPECT_EQ(writer.run("tryLock"), "ok");
    EXPECT_FALSE(lock.readLock().tryLock());
    EXPECT_EQ(writer.run("unlock"), "ok");
}

TEST_P(ObjectsInterop, ReadersAndWritersOfBothLanguagesWakeEachOther)
{
    const auto name = uniqueName();
    const auto lock = client.getReadWriteLock(name);
    auto reader = javaObject("readLock", name);
    auto writer = javaObject("writeLock", name);
    Worker worker;
    const auto awaitWaiter = [&] {
        return eventually([&] {
            return raw.command({"PUBSUB", "NUMSUB", "redisson_rwlock:{" + name + "}"}).elements.at(1).integer() > 0;
        });
    };
    lock.writeLock().lock(longLease);
    reader.start("lock", longLease);
    ASSERT_TRUE(awaitWaiter());
    EXPECT_EQ(lock.writeLock().unlock(), Unlocked::released);
    EXPECT_EQ(reader.answer(), "ok");
    auto writing = worker.start([&] { lock.writeLock().lock(longLease); });
    ASSERT_TRUE(awaitWaiter());
    EXPECT_EQ(reader.run("unlock"), "ok");
    ASSERT_EQ(writing.wait_for(soon), std::future_status::ready);
    writer.start("lock", longLease);
    ASSERT_TRUE(awaitWaiter());
    EXPECT_EQ(worker.run([&] { return lock.writeLock().unlock(); }), Unlocked::released);
    EXPECT_EQ(writer.answer(), "ok");
    auto reading = worker.start([&] { lock.readLock().lock(longLease); });
    ASSERT_TRUE(awaitWaiter());
    EXPECT_EQ(writer.run("unlock"), "ok");
    ASSERT_EQ(reading.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(worker.run([&] { return lock.readLock().unlock(); }), Unlocked::released);
}

TEST_P(ObjectsInterop, WatchdogsOfBothLanguagesKeepTheirReaders)
{
    const auto name = uniqueName();
    const auto lock = client.getReadWriteLock(name);
    auto reader = javaObject("readLock", name);
    Worker worker;
    lock.readLock().lock();
    ASSERT_EQ(reader.run("lock"), "ok");
    EXPECT_FALSE(worker.run([&] { return lock.writeLock().tryLock(3 * watchdogTimeout); }));
    EXPECT_TRUE(lock.readLock().isHeldByCurrentThread());
    EXPECT_EQ(reader.run("isHeld"), "ok");
    EXPECT_EQ(lock.readLock().unlock(), Unlocked::released);
    EXPECT_EQ(reader.run("unlock"), "ok");
}

TEST_P(ObjectsInterop, PermitsOfOneSemaphoreAreSharedAndWaitersToldOfThem)
{
    const auto name = uniqueName();
    const auto here = client.getSemaphore(name);
    auto there = javaObject("semaphore", name);
    Worker worker;
    ASSERT_TRUE(here.trySetPermits(2));
    EXPECT_EQ(there.run("trySetPermits", 5), "false");
    here.acquire(2);
    there.start("acquire", 1);
    awaitListener(name);
    here.release();
    EXPECT_EQ(there.answer(), "ok");
    auto waiting = worker.start([&] { return here.tryAcquire(2, 20s); });
    EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
    here.release();
    EXPECT_EQ(there.run("release", 1), "ok");
    ASSERT_EQ(waiting.wait_for(soon), std::future_status::ready);
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(there.run("available"), "ok 0");
    removeAllOf(name);
}

TEST_P(ObjectsInterop, LeasedPermitsOfBothLanguagesAreReleasedByTheirIdsInEither)
{
    const auto name = uniqueName();
    const auto here = client.getPermitExpirableSemaphore(name);
    auto there = javaObject("permitExpirableSemaphore", name);
    ASSERT_EQ(there.run("trySetPermits", 2), "ok");
    const auto theirs = there.run("acquire", longLease).value;
    auto ours = here.acquire(longLease);
    EXPECT_EQ(here.availablePermits(), 0);
    EXPECT_EQ(there.run("available"), "ok 0");
    const bool sameIds = std::stoi(GetParam()) >= 4; // before, ids had another form in Redis
    EXPECT_EQ(there.run("tryRelease", sameIds ? ours.id() : theirs), "ok");
    EXPECT_EQ(here.release(sameIds ? theirs : ours.id()), Unlocked::released);
    EXPECT_EQ(there.run("available"), "ok 2");
    EXPECT_EQ(ours.release(), Unlocked::alreadyLost);
    removeAllOf(name);
}

TEST_P(ObjectsInterop, LatchOpensForWaitersOfBothLanguages)
{
    const auto name = uniqueName();
    const auto here = client.getCountDownLatch(name);
    auto there = javaObject("countDownLatch", name);
    auto waiter = javaObject("countDownLatch", name);
    Worker worker;
    ASSERT_TRUE(here.trySetCount(2));
    waiter.start("await");
    awaitListener(name);
    auto waiting = worker.start([&] { return here.wait(20s); });
    EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
    EXPECT_EQ(there.run("countDown"), "ok");
    EXPECT_EQ(here.countDown(), 0);
    EXPECT_EQ(waiter.answer(), "ok");
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(there.run("getCount"), "ok 0");
    removeAllOf(name); // the answers to requests stay for a while
}

} // namespace
} // namespace redislock::test
