// Readers and writers of both languages. Counts are in contention_interop_test.cpp, and tests for every lock that lets
// in one thread at a time are in lock_interop_test.cpp.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

class ReadersInterop : public SidesInterop {
protected:
    PeerObject firstReader(std::size_t which = 0) { return first("readLock", name_, which); }
    PeerObject secondReader(std::size_t which = 0) { return second("readLock", name_, which); }
    PeerObject firstWriter() { return first("writeLock", name_); }
    PeerObject secondWriter() { return second("writeLock", name_); }

    /// Two readers of each language, in four processes.
    std::vector<PeerObject> readers() { return {firstReader(0), secondReader(0), firstReader(1), secondReader(1)}; }
    void awaitWaiters(std::int64_t processes)
    {
        awaitListeners("redisson_rwlock:{" + name_ + "}", processes);
        // Waiters of Redisson's that do not sleep yet miss the message of the end of writing.
        std::this_thread::sleep_for(100ms);
    }
    /// A process of this test alone. @param poll how often waiters of ours poll
    static PeerOptions own(bool isFirst, milliseconds poll = 60s)
    {
        auto options = peerOptions(isFirst == GetParam().javaFirst ? GetParam().redisson : "");
        options.place = 5 * poll;
        return options;
    }

    const std::string name_ = uniqueName();
};

INSTANTIATE_TEST_SUITE_P(Orders, ReadersInterop, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(ReadersInterop, ReadTogetherAndLetNoWriterInBeforeTheLastHasLeft)
{
    auto writer = secondWriter();
    auto other = firstWriter();
    auto all = readers();
    for (auto& reader : all) {
        ASSERT_EQ(reader.run("lock", longLease), "ok");
        EXPECT_EQ(writer.run("tryLock"), "false");
    }
    writer.start("lock", longLease);
    awaitWaiters(1);
    for (auto& reader : all) {
        EXPECT_EQ(other.run("tryLock"), "false") << "a reader is left";
        ASSERT_EQ(reader.run("unlock"), "ok");
    }
    const Stopwatch sinceUnlock;
    EXPECT_EQ(writer.answer(), "ok");
    EXPECT_LT(sinceUnlock.elapsedMs(), soon);
    for (auto& reader : all) {
        EXPECT_EQ(reader.run("tryLock"), "false");
    }
    EXPECT_EQ(writer.run("unlock"), "ok");
}

TEST_P(ReadersInterop, AllComeInWhenTheWriterLeavesLongBeforeItsLeaseIsOver)
{
    auto writer = firstWriter();
    ASSERT_EQ(writer.run("lock", longLease), "ok");
    auto all = readers();
    all.push_back(secondReader(1));
    all.push_back(firstReader(1));
    for (auto& reader : all) {
        reader.start("lock", longLease);
    }
    awaitWaiters(4);
    ASSERT_EQ(writer.run("unlock"), "ok");
    const Stopwatch sinceUnlock;
    for (auto& reader : all) { // no reader leaves before all are in
        EXPECT_EQ(reader.answer(), "ok");
    }
    EXPECT_LT(sinceUnlock.elapsedMs(), soon);
    EXPECT_EQ(raw.hash(name_).size(), 1 + all.size());
    for (auto& reader : all) {
        EXPECT_EQ(reader.run("unlock"), "ok");
    }
}

TEST_P(ReadersInterop, AWriterThatGoesOnReadingLetsReadersOfTheOtherLanguageIn)
{
    Peer polling(own(false, 1s)); // Redisson publishes nothing then
    auto writer = firstWriter();
    auto itsReading = writer.sibling("readLock");
    PeerObject reader(polling, "readLock", name_);
    auto other = second("writeLock", name_);
    ASSERT_EQ(writer.run("lock", longLease), "ok");
    ASSERT_EQ(itsReading.run("lock", longLease), "ok");
    EXPECT_EQ(reader.run("tryLock"), "false");
    reader.start("lock", longLease);
    awaitWaiters(1);
    ASSERT_EQ(writer.run("unlock"), "ok");
    const Stopwatch sinceUnlock;
    EXPECT_EQ(reader.answer(), "ok");
    EXPECT_LT(sinceUnlock.elapsedMs(), soon);
    EXPECT_EQ(other.run("tryLock"), "false");
    EXPECT_EQ(itsReading.run("unlock"), "ok");
    EXPECT_EQ(other.run("tryLock"), "false");
    EXPECT_EQ(reader.run("unlock"), "ok");
    EXPECT_EQ(other.run("tryLock"), "ok");
    EXPECT_EQ(other.run("unlock"), "ok");
}

TEST_P(ReadersInterop, WhoReadsDoesNotGetToWriteThoughNobodyElseReads)
{
    auto reader = firstReader();
    auto its = reader.sibling("writeLock");
    auto other = secondReader();
    ASSERT_EQ(reader.run("lock", longLease), "ok");
    EXPECT_NE(its.run("tryLock", 100ms, longLease).how, "ok");
    ASSERT_EQ(other.run("lock", longLease), "ok") << "and keeps no reader out by that";
    EXPECT_NE(its.run("tryLock", 100ms, longLease).how, "ok");
    EXPECT_EQ(reader.run("unlock"), "ok");
    EXPECT_EQ(its.run("tryLock"), "false");
    EXPECT_EQ(other.run("unlock"), "ok");
    EXPECT_EQ(its.run("tryLock"), "ok");
    EXPECT_EQ(its.run("unlock"), "ok");
}

TEST_P(ReadersInterop, ForcedUnlockEndsTheReadingOfBothLanguagesAndLetsAWriterIn)
{
    auto mine = firstReader();
    auto others = secondReader();
    auto writer = secondWriter();
    ASSERT_EQ(mine.run("lock"), "ok");
    ASSERT_EQ(others.run("lock"), "ok");
    writer.start("lock", longLease);
    awaitWaiters(1);
    EXPECT_EQ(firstWriter().run("forceUnlock"), "false") << "nobody writes";
    const Stopwatch sinceForced;
    EXPECT_EQ(firstReader(1).run("forceUnlock"), "ok");
    EXPECT_EQ(writer.answer(), "ok");
    EXPECT_LT(sinceForced.elapsedMs(), soon);
    EXPECT_EQ(mine.run("unlock").how, "error");
    EXPECT_EQ(others.run("unlock").how, "error");
    EXPECT_EQ(writer.run("isLocked"), "ok");
    EXPECT_EQ(firstReader().run("forceUnlock"), "false") << "nobody reads";
    EXPECT_EQ(writer.run("unlock"), "ok");
}

TEST_P(ReadersInterop, TheWatchdogsOfBothLanguagesKeepTheirReaders)
{
    auto mine = firstReader();
    auto others = secondReader();
    ASSERT_EQ(mine.run("lock"), "ok");
    ASSERT_EQ(others.run("lock"), "ok");
    EXPECT_EQ(secondWriter().run("tryLock", watchdogTimeout * 5 / 2, longLease), "false");
    ASSERT_EQ(mine.run("unlock"), "ok");
    EXPECT_EQ(firstWriter().run("tryLock", watchdogTimeout * 3 / 2, longLease), "false");
    EXPECT_EQ(others.run("isHeld"), "ok");
    EXPECT_EQ(others.run("unlock"), "ok");
}

TEST_P(ReadersInterop, AReaderThatDiedKeepsNoWriterOutOnceTheLivingHaveLeft)
{
    Peer mortal(own(true));
    PeerObject dying(mortal, "readLock", name_);
    auto living = secondReader();
    auto writer = secondWriter();
    ASSERT_EQ(dying.run("lock"), "ok");
    ASSERT_EQ(living.run("lock"), "ok");
    mortal.kill();
    EXPECT_EQ(writer.run("tryLock", watchdogTimeout * 3 / 2, longLease), "false");
    EXPECT_EQ(living.run("isHeld"), "ok");
    ASSERT_EQ(living.run("unlock"), "ok");
    EXPECT_EQ(writer.run("tryLock", watchdogTimeout + soon, longLease), "ok");
    EXPECT_EQ(writer.run("unlock"), "ok");
}

// --- Leases of different length in one key
// ------------------------------------------------------------------------------

class LongReads : public RedissonInterop {};

INSTANTIATE_TEST_SUITE_P(Versions, LongReads, ::testing::ValuesIn(redissonVersions()),
                         [](const auto& redisson) { return testName(redisson.param); });

TEST_P(LongReads, AreNotCutByAReaderOfJavaThatLeavesOrDies)
{
    for (const bool dies : {false, true}) {
        const auto name = uniqueName();
        Peer java(peerOptions(GetParam()));
        PeerObject theirs(java, "readLock", name);
        PeerObject ours(peer(""), "readLock", name);
        auto writer = javaObject("writeLock", name);
        ASSERT_EQ(ours.run("lock", 20s), "ok");
        ASSERT_EQ(theirs.run("lock"), "ok");
        EXPECT_TRUE(eventually([&] { return raw.pttl(name) <= watchdogTimeout; }))
            << "its watchdog sets the key's time";
        if (dies) {
            java.kill();
        } else {
            ASSERT_EQ(theirs.run("unlock"), "ok");
        }
        EXPECT_EQ(writer.run("tryLock", watchdogTimeout * 3 / 2, longLease), "false");
        EXPECT_EQ(ours.run("isHeld"), "ok");
        EXPECT_EQ(ours.run("unlock"), "ok");
        EXPECT_EQ(writer.run("tryLock", watchdogTimeout + soon, longLease), "ok");
        EXPECT_EQ(writer.run("unlock"), "ok");
    }
}

} // namespace
} // namespace redislock::test
