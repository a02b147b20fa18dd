// What is left of an object that was moved from.
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

class MovedFrom : public LockTest {
protected:
    /// Whether @p from, moved to a new object and to an assigned one, is the same lock as both.
    template <class L>
    static void expectTheSame(L from, L assigned)
    {
        L made = std::move(from);
        assigned = std::move(from);
        from.lock();
        EXPECT_TRUE(from.isHeldByCurrentThread());
        EXPECT_GT(made.validFor(), 0ms);
        EXPECT_FALSE(from.stopToken().stop_requested());
        EXPECT_EQ(assigned.unlock(), Unlocked::released);
        EXPECT_FALSE(from.isHeldByCurrentThread());
        EXPECT_EQ(from.validFor(), 0ms);
        EXPECT_TRUE(from.stopToken().stop_requested());
    }

    Client client{config()};
};

TEST_F(MovedFrom, LockIsTheSameLock)
{
    expectTheSame(client.getLock(uniqueName()), client.getLock(uniqueName()));
    expectTheSame(client.getNonReentrantLock(uniqueName()), client.getNonReentrantLock(uniqueName()));
    expectTheSame(client.getSpinLock(uniqueName()), client.getSpinLock(uniqueName()));
    expectTheSame(client.getFairLock(uniqueName()), client.getFairLock(uniqueName()));
    expectTheSame(client.getFencedLock(uniqueName()), client.getFencedLock(uniqueName()));
    auto both = client.getReadWriteLock(uniqueName());
    expectTheSame(both.readLock(), client.getReadWriteLock(uniqueName()).readLock());
    expectTheSame(both.writeLock(), client.getReadWriteLock(uniqueName()).writeLock());
    const auto to = std::move(both);
    EXPECT_EQ(both.name(), to.name());
    both.lock();
    EXPECT_EQ(to.unlock(), Unlocked::released);
}

TEST_F(MovedFrom, GroupIsTheSameGroup)
{
    const auto one = client.getLock(uniqueName());
    const auto two = client.getLock(uniqueName());
    expectTheSame(MultiLock(std::vector{one, two}), MultiLock(std::vector{two}));
    expectTheSame(RedLock(std::vector{one}), RedLock(std::vector{two}));

    auto segments = client.getSegmentedLock("segments", 3);
    const auto to = std::move(segments);
    EXPECT_EQ(segments.name(), "segments");
    EXPECT_EQ(segments.segments(), 3U);
    EXPECT_EQ(segments.segmentOf("key"), to.segmentOf("key"));
    EXPECT_EQ(segments.lockFor("key").name(), to.lockFor("key").name());
    GroupGuard all(segments.all());
    EXPECT_EQ(all.heldMembers(), 3U);
    EXPECT_EQ(all.release(), Unlocked::released);
}

TEST_F(MovedFrom, SemaphoreAndLatchAreTheSame)
{
    auto semaphore = client.getSemaphore(uniqueName());
    auto semaphoreTo = std::move(semaphore);
    EXPECT_TRUE(semaphore.trySetPermits(2));
    EXPECT_EQ(semaphore.name(), semaphoreTo.name());
    EXPECT_EQ(semaphoreTo.availablePermits(), 2);
    EXPECT_TRUE(semaphore.forceDelete());

    auto permits = client.getPermitExpirableSemaphore(uniqueName());
    auto permitsTo = std::move(permits);
    EXPECT_TRUE(permits.trySetPermits(2));
    EXPECT_EQ(permits.name(), permitsTo.name());
    EXPECT_EQ(permitsTo.availablePermits(), 2);
    EXPECT_TRUE(permits.forceDelete());

    auto latch = client.getCountDownLatch(uniqueName());
    auto latchTo = std::move(latch);
    EXPECT_TRUE(latch.trySetCount(1));
    EXPECT_EQ(latch.name(), latchTo.name());
    EXPECT_EQ(latchTo.countDown(), 0);
}

TEST_F(MovedFrom, ClientIsUsedOnUntilTheOtherEnds)
{
    Client from(config());
    const auto lock = from.getLock(uniqueName());
    {
        Client to = std::move(from);
        EXPECT_EQ(from.id(), to.id());
        EXPECT_EQ(&from.config(), &to.config());
        {
            Client third(config());
            third = std::move(to);
            to = std::move(third); // the end of `third` shuts nothing down
        }
        const std::scoped_lock held(lock);
        EXPECT_TRUE(from.getLock(lock.name()).isHeldByCurrentThread());
    }
    std::error_code ec;
    EXPECT_FALSE(from.getLock(lock.name()).tryLock(ec));
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_TRUE(from.shutdown());
}

TEST_F(MovedFrom, MonitorIsTheSameMonitor)
{
    LockMonitor from(config());
    LockMonitor to = std::move(from);
    const auto lock = client.getLock(uniqueName());
    const std::scoped_lock held(lock);
    EXPECT_TRUE(from.find(lock.name()).has_value());
    EXPECT_TRUE(to.find(lock.name()).has_value());
    EXPECT_TRUE(from.missingRights().empty());
}

} // namespace
} // namespace redislock::test
