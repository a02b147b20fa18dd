// A writer among readers that come and go: the promises to the writer, and to the readers.
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

class Writer : public LockTest {
protected:
    /// Not only that readers leave a gap: `<ms>/<open>` names no writer.
    bool aWriterWaits() { return raw.command({"GET", waiting}).characters.find(' ') != std::string::npos; }

    const std::string name = uniqueName();
    const std::string waiting = "{" + name + "}:redislock_writer";
    const Client client{config()};
    const Client far{config()};
    const ReadLock near = client.getReadWriteLock(name).readLock();
    const ReadLock other = far.getReadWriteLock(name).readLock();
    const WriteLock write = client.getReadWriteLock(name).writeLock();
    Worker worker;
    Worker reader;
};

TEST_F(Writer, GetsInWhenThoseHaveLeftWhoReadWhenItCame)
{
    ASSERT_TRUE(near.tryLock());
    std::promise<void> end;
    auto written = worker.start([&] {
        write.lock();
        end.get_future().wait();
        return write.unlock();
    });
    ASSERT_TRUE(eventually([&] { return aWriterWaits(); }));
    EXPECT_FALSE(other.tryLock()) << "a reader of another process comes after the writer";
    auto read = reader.start([&] {
        other.lock();
        return other.unlock();
    });
    EXPECT_TRUE(near.tryLock()) << "who reads already may do so again";
    EXPECT_EQ(near.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(near.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return raw.hash(name)["mode"] == "write"; }));
    EXPECT_FALSE(aWriterWaits());
    EXPECT_EQ(read.wait_for(0s), std::future_status::timeout);
    end.set_value();
    EXPECT_EQ(written.get(), Unlocked::released);
    ASSERT_EQ(read.wait_for(soon), std::future_status::ready) << "it polls once a minute";
    EXPECT_EQ(read.get(), Unlocked::released);
}

TEST_F(Writer, ThatGivesUpKeepsNobodyOutAndLeavesNothing)
{
    ASSERT_TRUE(near.tryLock());
    const auto blocking = worker.start([&] { return write.tryLock(400ms); }).share();
    auto asynchronous = write.asyncTryLock(400ms, boost::asio::use_future);
    auto read = reader.start([&, blocking] {
        EXPECT_TRUE(eventually([&] { return blocking.wait_for(0s) == std::future_status::ready || aWriterWaits(); }));
        other.lock(); // a message must come when both have given up: it polls once a minute
        return other.unlock();
    });
    EXPECT_FALSE(blocking.get()) << "others hold it: that is no error";
    EXPECT_FALSE(asynchronous.get());
    ASSERT_EQ(read.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(read.get(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return !aWriterWaits(); }));
    EXPECT_EQ(raw.hash(name).size(), 2U) << "the mode and the reader";
    EXPECT_EQ(near.unlock(), Unlocked::released);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(Writer, ThatComesBackByAPolicyKeepsReadersOutAsLongAsItDoes)
{
    const auto policy = RetryPolicy::fixed(5ms); // beside readers that overlap, it would never find the lock free
    ASSERT_TRUE(near.tryLock());
    auto written = worker.start([&] {
        EXPECT_TRUE(write.tryLock(20s, keepRenewing, policy));
        return write.unlock();
    });
    ASSERT_TRUE(eventually([&] { return aWriterWaits(); }));
    EXPECT_FALSE(other.tryLock());
    EXPECT_EQ(near.unlock(), Unlocked::released);
    EXPECT_EQ(written.get(), Unlocked::released);
    EXPECT_FALSE(aWriterWaits());

    ASSERT_TRUE(near.tryLock());
    EXPECT_FALSE(worker.start([&] { return write.tryLock(100ms, keepRenewing, policy); }).get());
    EXPECT_TRUE(eventually([&] { return !aWriterWaits(); }));
    EXPECT_EQ(near.unlock(), Unlocked::released);
}

TEST_F(Writer, ThatDiedKeepsReadersOutForFivePolls)
{
    raw.command({"SET", waiting, "300 dead:1:write", "PX", "600"}); // as a dead writer left its key
    EXPECT_FALSE(near.tryLock());
    near.lock();
    EXPECT_LE(raw.pttl(waiting), 300ms);
    EXPECT_EQ(near.unlock(), Unlocked::released);
}

TEST_F(Writer, WaitsInVainForReadersOfWhomOneWaitsForAnotherToReadAsWell)
{
    auto often = config();
    often.pollInterval = 50ms;
    const Client polls(often);
    ASSERT_TRUE(near.tryLock());
    auto written = worker.start([&] {
        const WriteLock late = polls.getReadWriteLock(name).writeLock();
        return late.tryLock(soon) && late.unlock() == Unlocked::released;
    });
    ASSERT_TRUE(eventually([&] { return aWriterWaits(); }));
    EXPECT_FALSE(other.tryLock());
    EXPECT_TRUE(other.tryLock(soon)) << "after five polls of the writer";
    EXPECT_EQ(written.wait_for(0s), std::future_status::timeout);
    EXPECT_EQ(other.unlock(), Unlocked::released);
    EXPECT_EQ(near.unlock(), Unlocked::released);
    EXPECT_TRUE(written.get());
}

/// Four threads of two clients read without a pause: a writer comes in again and again, and so do the readers.
TEST_F(Writer, AndReadersThatComeWithoutAPauseAllGetOn)
{
    std::atomic<bool> over = false;
    std::atomic<int> reads = 0;
    std::vector<std::future<void>> readers;
    for (int i = 0; i < 4; ++i) {
        readers.push_back(std::async(std::launch::async, [&, i] {
            const ReadLock& lock = i % 2 == 0 ? near : other;
            while (!over) {
                const LockGuard guard(lock);
                ++reads;
                std::this_thread::sleep_for(2ms);
            }
        }));
    }
    for (int i = 0; i < 20; ++i) {
        const int before = reads;
        EXPECT_TRUE(eventually([&] { return reads > before; }));
        ASSERT_TRUE(write.tryLock(soon));
        EXPECT_EQ(write.unlock(), Unlocked::released);
    }
    over = true;
}

} // namespace
} // namespace redislock::test
