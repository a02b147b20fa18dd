// Histories of a server and a waiter, made by hand: T4 and T5.
#include "simulation/rule_broken_by.hpp"
#include "simulation/wakeup_checker.hpp"

#include <gtest/gtest.h>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;
using detail::KindTraits;
using detail::LockKind;

constexpr VirtualTime leaseEnd = 1001ms; ///< the first moment at which a lock is free that was taken at 0

constexpr VirtualTime deadKeep = 6s;

class WakeUpCheckerTest : public ::testing::Test {
protected:
    void SetUp() override { checker.begin(deadKeep); }

    void execute(detail::ScriptUse KindTraits::*use, const std::vector<Keyspace::Words>& commands, const Reply& reply,
                 const std::string& passedTo = {})
    {
        keyspace.beginScript(millisecondOf(scheduler.now()));
        for (const auto& command : commands) {
            ASSERT_FALSE(keyspace.execute(command).isError()) << command[0];
        }
        Request request;
        request.run(KindTraits::of(kind), use, "stock", {"a:1"});
        checker.executed(request, reply, passedTo);
    }

    void lock() { execute(&KindTraits::lock, {{"HSET", "stock", "a:1", "1"}, {"PEXPIRE", "stock", "1000"}}, {}); }
    void unlock() { execute(&KindTraits::unlock, {{"DEL", "stock"}}, number(1)); }
    /// A waiter asks and gets the time for which the holder has the lock.
    void tryInVain(std::int64_t told)
    {
        Reply refusal;
        refusal.kind = Reply::Kind::array;
        refusal.elements = {number(told), Reply()};
        execute(&KindTraits::lock, {}, refusal);
    }

    static Reply number(std::int64_t value)
    {
        Reply reply;
        reply.kind = Reply::Kind::integer;
        reply.integer = value;
        return reply;
    }

    void lockAt(VirtualTime when)
    {
        scheduler.at(when, [this] { lock(); });
    }
    void unlockAt(VirtualTime when)
    {
        scheduler.at(when, [this] { unlock(); });
    }
    std::string ruleBrokenUntil(VirtualTime end)
    {
        return ruleBrokenBy([&] {
            while (scheduler.step(end)) {
            }
        });
    }

    /// A writer that reads as well ends writing.
    void downgradeAt(VirtualTime when)
    {
        kind = LockKind::writeLock;
        execute(&KindTraits::lock, {{"HSET", "stock", "a:1", "1"}, {"PEXPIRE", "stock", "1000"}}, {});
        scheduler.at(when, [this] { execute(&KindTraits::unlock, {{"HSET", "stock", "mode", "read"}}, number(1)); });
    }

    /// A fair lock is released at 100 ms, and @p holder is the next.
    void queueFor(const std::string& holder)
    {
        kind = LockKind::fairLock;
        lock();
        execute(&KindTraits::lock, {{"RPUSH", "redisson_lock_queue:{stock}", holder}}, number(1));
        unlockAt(100ms);
    }

    Scheduler scheduler;
    Keyspace keyspace;
    LockKind kind = LockKind::redisLock;
    bool readerWaits = true;
    bool waits = true;
    WakeUpChecker checker{scheduler, keyspace,
                          [this](const std::string& name, VirtualTime, WakeUpChecker::Who who) {
                              const bool some = who == WakeUpChecker::Who::anybody ? waits : readerWaits;
                              return some && name == "stock" ? std::string("b") : std::string();
                          },
                          [this](const std::string&, const std::string& holder) { return waits && holder == "b:1"; }};
};

TEST_F(WakeUpCheckerTest, AWaiterThatSleepsOnAfterAReleaseBreaksT4)
{
    lock();
    unlockAt(100ms);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "T4");
}

TEST_F(WakeUpCheckerTest, ATryInTimeAfterAReleaseBreaksNothing)
{
    lock();
    unlockAt(100ms);
    lockAt(100ms + promptly - 1ms);
    waits = false; // the waiter has it
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "none");
}

TEST_F(WakeUpCheckerTest, WhoAsksAboutAFreeLockFreesNothing)
{
    lock();
    tryInVain(5000);
    scheduler.at(leaseEnd + 10ms, [this] { execute(&KindTraits::pttl, {}, number(-2)); });
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + 10ms + promptly), "none");
}

TEST_F(WakeUpCheckerTest, ATryBeforeTheReleaseIsNone)
{
    lock();
    scheduler.at(99ms, [this] { tryInVain(1); });
    unlockAt(100ms);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "T4");
}

TEST_F(WakeUpCheckerTest, NobodyHasToTryWhereNobodyWaits)
{
    waits = false;
    lock();
    unlockAt(100ms);
    EXPECT_EQ(ruleBrokenUntil(5s), "none");
}

TEST_F(WakeUpCheckerTest, AWaiterThatSleepsOnAfterADeadHolderBreaksT5)
{
    lock();
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + promptly), "T5");
}

TEST_F(WakeUpCheckerTest, ATryAfterADeadHoldersLeaseBreaksNothing)
{
    lock();
    lockAt(leaseEnd + promptly - 1ms);
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + promptly), "none");
}

TEST_F(WakeUpCheckerTest, AWaiterMaySleepForAsLongAsItWasToldAndNoLonger)
{
    lock();
    scheduler.at(10ms, [this] { tryInVain(5000); }); // from an earlier holder, for instance
    const VirtualTime told = 10ms + 5000ms + 100ms;  // the waiter's clock may be slow
    EXPECT_EQ(ruleBrokenUntil(told + promptly - 1ms), "none");
    EXPECT_EQ(ruleBrokenUntil(told + promptly), "T5");
}

TEST_F(WakeUpCheckerTest, AReaderThatSleepsOnAfterAWriterBreaksT4)
{
    downgradeAt(100ms);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "T4");
}

TEST_F(WakeUpCheckerTest, AReaderThatTriesAfterAWriterBreaksNothing)
{
    downgradeAt(100ms);
    scheduler.at(101ms, [this] {
        kind = LockKind::readLock;
        execute(&KindTraits::lock, {}, {});
    });
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "none");
}

TEST_F(WakeUpCheckerTest, AWriterSleepsOnWhileOthersRead)
{
    readerWaits = false;
    downgradeAt(100ms);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "none");
}

TEST_F(WakeUpCheckerTest, TheFirstInTheQueueThatIsNotGrantedTheFreeLockBreaksT4)
{
    queueFor("b:1");
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "T4");
}

TEST_F(WakeUpCheckerTest, TheFirstInTheQueueThatGetsTheFreeLockBreaksNothing)
{
    queueFor("b:1");
    lockAt(101ms);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly), "none");
}

TEST_F(WakeUpCheckerTest, TheDeadKeepOthersWaitingForSomeTimeAndNoLonger)
{
    queueFor("dead:1");
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly + deadKeep - 1ms), "none");
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly + deadKeep), "T6");
}

TEST_F(WakeUpCheckerTest, WhoGetsItAfterTheDeadBreaksNothing)
{
    queueFor("dead:1");
    lockAt(100ms + deadKeep);
    EXPECT_EQ(ruleBrokenUntil(100ms + promptly + deadKeep), "none");
}

TEST_F(WakeUpCheckerTest, TheFirstInTheQueueThatSleepsOnAfterADeadHolderBreaksT5)
{
    kind = LockKind::fairLock;
    lock();
    execute(&KindTraits::lock, {{"RPUSH", "redisson_lock_queue:{stock}", "b:1"}}, number(1));
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + promptly), "T5");
}

TEST_F(WakeUpCheckerTest, WhoIsPassedAFairLockAndSleepsOnBreaksT4UnlessHeDied)
{
    kind = LockKind::fairLock;
    for (const std::string holder : {"b:1", "dead:1"}) {
        lock();
        execute(&KindTraits::unlock, {{"DEL", "stock"}, {"HSET", "stock", holder, "1"}, {"PEXPIRE", "stock", "5000"}},
                number(2), holder);
        EXPECT_EQ(ruleBrokenUntil(scheduler.now() + promptly), holder == "b:1" ? "T4" : "none");
    }
}

TEST_F(WakeUpCheckerTest, ARenewedLockIsNotFree)
{
    lock();
    scheduler.at(500ms, [this] { execute(&KindTraits::renew, {{"PEXPIRE", "stock", "1000"}}, number(1)); });
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + promptly), "none");
    EXPECT_EQ(ruleBrokenUntil(leaseEnd + 500ms + promptly), "T5");
}

} // namespace
} // namespace redislock::simulation
