// A writer among readers that come and go: what is promised to it, and what is not.
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>

namespace redislock::test {
namespace {

class Writer : public LockTest {
protected:
    /// Readers of two clients that overlap: at each moment at least one of them reads. Leaves one reading.
    void readInTurns(int turns)
    {
        for (int i = 0; i < turns; ++i) {
            const auto& next = i % 2 == 0 ? second : first;
            const auto& last = i % 2 == 0 ? first : second;
            ASSERT_TRUE(next.tryLock()) << "a waiting writer keeps no reader out";
            ASSERT_EQ(last.unlock(), Unlocked::released);
        }
    }
    std::int64_t listening()
    {
        return raw.command({"PUBSUB", "NUMSUB", "redisson_rwlock:{" + name + "}"}).elements.at(1).integer();
    }

    const std::string name = uniqueName();
    const Client client{config()};
    const Client far{config()};
    const ReadLock first = client.getReadWriteLock(name).readLock();
    const ReadLock second = far.getReadWriteLock(name).readLock();
    const WriteLock write = client.getReadWriteLock(name).writeLock();
    Worker worker;
};

TEST_F(Writer, IsKeptOutByReadersThatOverlapAndGetsInWithTheFirstGap)
{
    ASSERT_TRUE(first.tryLock());
    auto written = worker.start([&] {
        write.lock();
        return write.unlock();
    });
    ASSERT_TRUE(eventually([&] { return listening() == 1; }));
    readInTurns(40); // an even number: the first one reads
    EXPECT_EQ(written.wait_for(0s), std::future_status::timeout);
    EXPECT_EQ(raw.hash(name).at("mode"), "read");
    EXPECT_EQ(first.unlock(), Unlocked::released); // the gap
    ASSERT_EQ(written.wait_for(soon), std::future_status::ready) << "it polls once a minute";
    EXPECT_EQ(written.get(), Unlocked::released);
}

TEST_F(Writer, WaitEndsInTimeWhileReadersGoOnAndLeavesNothing)
{
    ASSERT_TRUE(first.tryLock());
    auto blocking = worker.start([&] { return write.tryLock(50ms); });
    auto asynchronous = write.asyncTryLock(50ms, boost::asio::use_future);
    bool overInTime = false;
    for (int i = 0; i < 1000 && !overInTime; ++i) {
        readInTurns(2);
        overInTime = blocking.wait_for(5ms) == std::future_status::ready &&
                     asynchronous.wait_for(0s) == std::future_status::ready;
    }
    EXPECT_TRUE(overInTime);
    EXPECT_FALSE(blocking.get()) << "others hold it: that is no error";
    EXPECT_FALSE(asynchronous.get());
    EXPECT_EQ(raw.hash(name).size(), 2U) << "the mode and the reader";
    EXPECT_EQ(first.unlock(), Unlocked::released);
    EXPECT_FALSE(raw.exists(name));
}

} // namespace
} // namespace redislock::test
