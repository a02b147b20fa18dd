#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>

#include <deque>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class ReadWrite : public LockTest {
protected:
    void TearDown() override
    {
        LockTest::TearDown();
        EXPECT_TRUE(eventually([&] { return holdKeys().empty(); }));
    }

    std::vector<Value> holdKeys() { return raw.command({"KEYS", "{" + name + "}:*:rwlock_timeout:*"}).elements; }
    std::string holdKey(const std::string& reader, int level)
    {
        return "{" + name + "}:" + reader + ":rwlock_timeout:" + std::to_string(level);
    }
    std::string reader()
    {
        for (const auto& [field, value] : raw.hash(name)) {
            if (field != "mode" && !field.ends_with(":write")) {
                return field;
            }
        }
        return {};
    }
    std::int64_t listening()
    {
        return raw.command({"PUBSUB", "NUMSUB", "redisson_rwlock:{" + name + "}"}).elements.at(1).integer();
    }

    const std::string name = uniqueName();
    const Client client{config()};
    const Client second{config()};
    const ReadWriteLock lock = client.getReadWriteLock(name);
    const ReadWriteLock far = second.getReadWriteLock(name);
    const ReadLock read = lock.readLock();
    const WriteLock write = lock.writeLock();
    Worker other;
};

TEST_F(ReadWrite, FixedLeaseOfAReaderIsNotCutByWhoGivesTheSharedKeyALessTime)
{
    ASSERT_LT(client.config().watchdogTimeout * 4, 5s);
    read.lock(5s);
    const auto key = holdKey(reader(), 1);
    raw.command({"PEXPIRE", name, "600"}); // as Redisson's watchdog does for a short lease of one of its readers
    raw.command({"PEXPIRE", key, "600"});
    EXPECT_TRUE(eventually([&] { return raw.pttl(name) > 2s && raw.pttl(key) > 2s; }));
    EXPECT_LE(raw.pttl(name), 5s) << "it is the same lease";
    EXPECT_LT(read.validFor(), 5s);
    raw.command({"DEL", name});
    EXPECT_TRUE(eventually([&] { return read.stopToken().stop_requested(); })) << "and a loss is noticed early";
    EXPECT_EQ(read.unlock(), Unlocked::alreadyLost);
    raw.command({"DEL", key});
}

TEST_F(ReadWrite, FixedLeaseOfAReaderEndsInTimeAndIsNotSentAgainWhenItIsShort)
{
    read.lock();
    EXPECT_EQ(read.unlock(), Unlocked::released);
    ASSERT_TRUE(far.readLock().tryLock(0ms, 600ms)); // so that the server knows the scripts
    EXPECT_TRUE(eventually([&] { return !read.isLocked(); }));
    const auto before = raw.commandCalls("evalsha");
    read.lock(client.config().watchdogTimeout);
    EXPECT_TRUE(eventually([&] { return read.stopToken().stop_requested(); }));
    EXPECT_EQ(raw.commandCalls("evalsha"), before + 1);
    EXPECT_EQ(read.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(far.readLock().unlock(), Unlocked::alreadyLost);
    read.lock(1500ms); // a longer lease
    EXPECT_TRUE(eventually([&] { return read.stopToken().stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return !read.isLocked(); }, 1s)) << "though it was sent again";
    EXPECT_EQ(read.unlock(), Unlocked::alreadyLost);
}

TEST_F(ReadWrite, ManyReadAtOnceAndNobodyWritesMeanwhile)
{
    read.lock();
    EXPECT_TRUE(other.run([&] { return read.tryLock(); })) << "another thread of the same client";
    EXPECT_TRUE(far.readLock().tryLock()) << "another client";
    Worker third;
    EXPECT_FALSE(third.run([&] { return write.tryLock(); }));
    EXPECT_FALSE(third.run([&] { return far.writeLock().tryLock(300ms); }));
    EXPECT_EQ(raw.hash(name).size(), 4U) << "the mode and three readers";
    EXPECT_EQ(raw.hash(name).at("mode"), "read");
    EXPECT_TRUE(read.isLocked());
    EXPECT_FALSE(write.isLocked());
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_EQ(other.run([&] { return read.unlock(); }), Unlocked::released);
    EXPECT_FALSE(third.run([&] { return write.tryLock(); })) << "the last reader is still there";
    EXPECT_EQ(far.readLock().unlock(), Unlocked::released);
    EXPECT_TRUE(write.tryLock());
    EXPECT_EQ(write.unlock(), Unlocked::released);
}

TEST_F(ReadWrite, WriterExcludesEverybody)
{
    write.lock();
    EXPECT_EQ(raw.hash(name).at("mode"), "write");
    EXPECT_FALSE(other.run([&] { return read.tryLock(); }));
    EXPECT_FALSE(other.run([&] { return write.tryLock(); }));
    EXPECT_FALSE(far.readLock().tryLock(300ms));
    EXPECT_FALSE(far.writeLock().tryLock(300ms));
    EXPECT_TRUE(write.isLocked());
    EXPECT_FALSE(read.isLocked());
    EXPECT_EQ(write.unlock(), Unlocked::released);
}

TEST_F(ReadWrite, ReaderThatWantsToWriteIsToldAtOnce)
{
    read.lock();
    const auto before = scriptCalls();
    std::error_code ec;
    EXPECT_FALSE(write.tryLock(10s, ec));
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_THROW(write.lock(), LockError);
    EXPECT_EQ(scriptCalls(), before) << "nothing is sent";
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_TRUE(write.tryLock());
    EXPECT_EQ(write.unlock(), Unlocked::released);
}

TEST_F(ReadWrite, WriterMayReadAndGoOnReadingWhenItEndsWriting)
{
    write.lock();
    EXPECT_TRUE(read.tryLock());
    EXPECT_EQ(raw.hash(name).size(), 3U);
    auto reader = other.start([&] {
        far.readLock().lock();
        return far.readLock().unlock();
    });
    EXPECT_TRUE(eventually([&] { return listening() == 1; }));
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_EQ(raw.hash(name).at("mode"), "read");
    EXPECT_EQ(reader.wait_for(soon), std::future_status::ready) << "it polls once a minute";
    EXPECT_EQ(reader.get(), Unlocked::released);
    EXPECT_FALSE(far.writeLock().tryLock()) << "it still reads";
    EXPECT_TRUE(read.isHeldByCurrentThread());
    EXPECT_FALSE(write.isHeldByCurrentThread());
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(ReadWrite, ReadingAgainWhileWritingIsNotEndedByTheReleaseOfTheHoldBefore)
{
    raw.command({"SCRIPT", "FLUSH"}); // so that the release is sent once more, behind the next request
    write.lock();
    {
        const LockGuard first(read, Lease(20s));
    }
    read.lock(20s);
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return holdKeys().size() == 1U; }));
    EXPECT_EQ(raw.hash(name).at("mode"), "read");
    EXPECT_FALSE(far.writeLock().tryLock()) << "it reads";
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(ReadWrite, ReadingThatEndsFirstLeavesTheWriterAlone)
{
    write.lock();
    read.lock();
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_EQ(raw.hash(name).at("mode"), "write");
    EXPECT_FALSE(far.readLock().tryLock());
    EXPECT_EQ(write.unlock(), Unlocked::released);
}

TEST_F(ReadWrite, EndOfWritingWakesAllReadersOfAllClients)
{
    write.lock();
    std::deque<Worker> threads;
    std::vector<std::future<bool>> reading;
    std::promise<void> all;
    const auto allRead = all.get_future().share();
    for (int i = 0; i < 12; ++i) {
        reading.push_back(threads.emplace_back().start([&, half = (i % 2 == 0 ? lock : far).readLock()] {
            half.lock();
            const bool together = allRead.wait_for(soon * 2) == std::future_status::ready;
            half.unlock();
            return together;
        }));
    }
    EXPECT_TRUE(eventually([&] { return listening() == 2; }));
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return raw.hash(name).size() == 13U; })) << "they poll once a minute";
    all.set_value();
    for (auto& each : reading) {
        EXPECT_TRUE(each.get());
    }
}

TEST_F(ReadWrite, LastReaderWakesTheWriterAndAWriterTheNext)
{
    read.lock();
    EXPECT_TRUE(far.readLock().tryLock());
    Worker third;
    const auto writes = [](const WriteLock& half) {
        half.lock();
        return half.unlock();
    };
    auto near = other.start([&] { return writes(write); });
    auto distant = third.start([&] { return writes(far.writeLock()); });
    EXPECT_TRUE(eventually([&] { return listening() == 2; }));
    EXPECT_EQ(far.readLock().unlock(), Unlocked::released);
    EXPECT_EQ(near.wait_for(30ms), std::future_status::timeout);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_EQ(near.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(distant.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(near.get(), Unlocked::released);
    EXPECT_EQ(distant.get(), Unlocked::released);
}

TEST_F(ReadWrite, WritersOfOneClientFollowEachOther)
{
    write.lock();
    auto next = other.start([&] {
        write.lock();
        return write.unlock();
    });
    EXPECT_EQ(next.wait_for(30ms), std::future_status::timeout);
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_EQ(next.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(next.get(), Unlocked::released);
}

TEST_F(ReadWrite, EachLevelOfReadingHasAKeyOfItsOwn)
{
    read.lock(20s);
    const auto holder = reader();
    EXPECT_EQ(holder.substr(0, 37), client.id() + ":");
    EXPECT_EQ(raw.command({"GET", holdKey(holder, 1)}).text(), "1");
    EXPECT_GT(raw.pttl(holdKey(holder, 1)), 15s);
    read.lock(60s);
    EXPECT_EQ(raw.hash(name).at(holder), "2");
    EXPECT_GT(raw.pttl(holdKey(holder, 2)), 50s);
    EXPECT_GT(raw.pttl(name), 50s);
    EXPECT_EQ(read.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(raw.hash(name).at(holder), "1");
    EXPECT_EQ(holdKeys().size(), 1U);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_TRUE(holdKeys().empty());
}

TEST_F(ReadWrite, KeyLivesAsLongAsTheLongestOfTheReadersThatAreLeft)
{
    read.lock(60s);
    far.readLock().lock(20s);
    EXPECT_GT(raw.pttl(name), 50s);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_LE(raw.pttl(name), 20s);
    EXPECT_GT(raw.pttl(name), 10s);
    read.lock(10s);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_GT(raw.pttl(name), 10s) << "who leaves first takes nothing from the others";
    EXPECT_EQ(far.readLock().unlock(), Unlocked::released);
}

TEST_F(ReadWrite, LongestLeaseIsThatOfWhoLeavesAlsoWhenTheClockWentOnWhileTheScriptRan)
{
    read.lock(60s);
    const auto key = holdKey(reader(), 1);
    far.readLock().lock(20s);
    raw.command({"EVAL", "return redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[2]) + 50)", "2", name, key});
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_LE(raw.pttl(name), 20s);
    EXPECT_EQ(far.readLock().unlock(), Unlocked::released);
}

TEST_F(ReadWrite, ReaderThatDiedKeepsWritersOutForItsLeaseAtMost)
{
    far.readLock().lock(200ms);
    read.lock();
    EXPECT_TRUE(eventually([&] { return holdKeys().size() == 1U; }));
    EXPECT_TRUE(read.isHeldByCurrentThread());
    EXPECT_EQ(read.unlock(), Unlocked::released);
    EXPECT_TRUE(write.tryLock()) << "the field of the dead reader keeps nobody out";
    EXPECT_EQ(write.unlock(), Unlocked::released);
    EXPECT_EQ(far.readLock().unlock(), Unlocked::alreadyLost);
}

TEST_F(ReadWrite, WatchdogRenewsReadersWithTheirKeysAndWriters)
{
    read.lock();
    const auto holder = reader();
    EXPECT_TRUE(eventually([&] { return raw.pttl(holdKey(holder, 1)) < 450ms; }));
    EXPECT_TRUE(eventually([&] { return raw.pttl(holdKey(holder, 1)) > 500ms; }));
    EXPECT_GT(raw.pttl(name), 450ms);
    EXPECT_EQ(read.unlock(), Unlocked::released);
    write.lock();
    EXPECT_TRUE(eventually([&] { return raw.pttl(name) < 450ms; }));
    EXPECT_TRUE(eventually([&] { return raw.pttl(name) > 500ms; }));
    EXPECT_EQ(write.unlock(), Unlocked::released);
}

TEST_F(ReadWrite, StandardsGuardsReadAndWrite)
{
    {
        const std::shared_lock reading(lock);
        EXPECT_TRUE(other.run([&] { return std::shared_lock(far, std::try_to_lock).owns_lock(); }));
        EXPECT_FALSE(other.run([&] { return std::unique_lock(far, answered).owns_lock(); }));
    }
    {
        const std::unique_lock writing(lock);
        EXPECT_FALSE(other.run([&] { return std::shared_lock(far, answered).owns_lock(); }));
    }
    const std::scoped_lock writing(lock);
    EXPECT_TRUE(write.isHeldByCurrentThread());
}

TEST_F(ReadWrite, GuardsOfBothHalvesInEveryForm)
{
    auto first = read.asyncLock(boost::asio::use_future).get();
    auto again = read.asyncTryLock(boost::asio::use_future).get();
    const LockGuard third(far.readLock(), 1s, 5s);
    EXPECT_TRUE(first);
    EXPECT_TRUE(again);
    EXPECT_TRUE(third);
    EXPECT_FALSE(far.writeLock().asyncTryLock(boost::asio::use_future).get());
    EXPECT_EQ(first.asyncRelease(boost::asio::use_future).get(), Unlocked::released);
    EXPECT_EQ(again.release(), Unlocked::released);
}

TEST_F(ReadWrite, NameThatIsInUseAsALockOfAnotherKindIsRefused)
{
    const auto plain = second.getLock(name);
    std::error_code ec;
    plain.lock();
    EXPECT_FALSE(read.tryLock(ec));
    EXPECT_EQ(ec, Errc::wrongType);
    EXPECT_FALSE(write.tryLock(10s, ec));
    EXPECT_EQ(ec, Errc::wrongType);
    EXPECT_EQ(plain.unlock(), Unlocked::released);
    for (const Lock* half : {static_cast<const Lock*>(&read), static_cast<const Lock*>(&write)}) {
        half->lock();
        EXPECT_FALSE(plain.tryLock(ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_FALSE(second.getFairLock(name).tryLock(10s, ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_FALSE(second.getFencedLock(name).tryLock(10s, ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_EQ(half->unlock(), Unlocked::released);
    }
}

TEST_F(ReadWrite, ForcedUnlockEndsAllReadersOrTheWriter)
{
    read.lock();
    EXPECT_TRUE(other.run([&] { return read.tryLock(); }));
    EXPECT_FALSE(far.writeLock().forceUnlock()) << "nobody writes";
    EXPECT_TRUE(client.getReadWriteLock(name).readLock().forceUnlock());
    EXPECT_FALSE(read.isHeldByCurrentThread());
    EXPECT_EQ(read.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(other.run([&] { return read.unlock(); }), Unlocked::alreadyLost);
    write.lock();
    EXPECT_FALSE(far.readLock().forceUnlock());
    EXPECT_TRUE(write.forceUnlock());
    EXPECT_EQ(write.unlock(), Unlocked::alreadyLost);
    raw.command({"EVAL", "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', k) end", "0",
                 "{" + name + "}:*"});
}

} // namespace
} // namespace redislock::test
