// Tests for every kind of lock that both languages have.
#include "behaviour/lock_driver.hpp"
#include "behaviour/worker.hpp"
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <cstddef>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, LockInterop, ::testing::ValuesIn(lockCases()), lockCaseName);

TEST_P(LockInterop, WhatOneLanguageHoldsTheOtherDoesNotGetUntilItIsUnlocked)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    ASSERT_EQ(there.run("lock", longLease), "ok");
    EXPECT_TRUE(here.isLocked());
    EXPECT_GT(here.remainingTimeToLive(), longLease - soon);
    EXPECT_FALSE(here.tryLock());
    EXPECT_FALSE(here.tryLock(20ms));
    ASSERT_EQ(there.run("unlock"), "ok");

    ASSERT_TRUE(here.tryLock(0ms, longLease));
    EXPECT_EQ(there.run("isLocked"), "ok");
    EXPECT_GT(std::stol(there.run("ttl").value), (longLease - soon).count());
    EXPECT_EQ(there.run("isHeld"), "false");
    EXPECT_EQ(there.run("tryLock"), "false");
    EXPECT_EQ(there.run("tryLock", 20ms), "false");
    ASSERT_EQ(here.unlock(), Unlocked::released);
    EXPECT_EQ(there.run("isLocked"), "false");
    EXPECT_EQ(there.run("tryLock"), "ok");
    EXPECT_EQ(there.run("unlock"), "ok");
}

// --- Waiting
// -----------------------------------------------------------------------------------------------------------

TEST_P(LockInterop, AJavaWaiterComesInWhenWeUnlockLongBeforeTheLeaseIsOver)
{
    for (const auto* tag : {"", "{tenant}:"}) {
        const auto name = uniqueName(tag);
        const auto here = make(name);
        auto there = javaLock(name);
        here.lock(longLease);
        awaitWaiter(name, [&] { return there.start("lock"), true; });
        const Stopwatch sinceUnlock;
        ASSERT_EQ(here.unlock(), Unlocked::released);
        EXPECT_EQ(there.answer(), "ok");
        EXPECT_LT(sinceUnlock.elapsedMs(), soon);
        EXPECT_EQ(there.run("unlock"), "ok");
    }
}

TEST_P(LockInterop, WeComeInWhenJavaUnlocksLongBeforeTheLeaseIsOver)
{
    for (const auto* tag : {"", "{tenant}:"}) {
        const auto name = uniqueName(tag);
        const auto here = make(name);
        auto there = javaLock(name);
        Worker worker;
        ASSERT_EQ(there.run("lock", longLease), "ok");
        auto entered = awaitWaiter(name, [&] { return worker.start([&] { here.lock(); }); });
        const Stopwatch sinceUnlock;
        ASSERT_EQ(there.run("unlock"), "ok");
        entered.get();
        EXPECT_LT(sinceUnlock.elapsedMs(), soon);
        EXPECT_EQ(worker.run([&] { return here.unlock(); }), Unlocked::released);
    }
}

TEST_P(LockInterop, AWaitThatIsOverLeavesTheLockToItsHolder)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    here.lock();
    const auto answer = there.run("tryLock", 100ms, longLease);
    EXPECT_EQ(answer, "false");
    EXPECT_GE(answer.elapsed, 95ms);
    ASSERT_EQ(here.unlock(), Unlocked::released);

    ASSERT_EQ(there.run("lock"), "ok");
    EXPECT_FALSE(here.tryLock(100ms, longLease));
    EXPECT_EQ(there.run("isHeld"), "ok");
    EXPECT_EQ(there.run("unlock"), "ok");
}

// --- Levels
// ------------------------------------------------------------------------------------------------------------

class ReentrantInterop : public LockInterop {};
INSTANTIATE_TEST_SUITE_P(Kinds, ReentrantInterop,
                         ::testing::ValuesIn(lockCases([](const LockKind& kind) { return kind.reentrant; })),
                         lockCaseName);

class NonReentrantInterop : public LockInterop {};
INSTANTIATE_TEST_SUITE_P(Kinds, NonReentrantInterop,
                         ::testing::ValuesIn(lockCases([](const LockKind& kind) { return !kind.reentrant; })),
                         lockCaseName);

TEST_P(ReentrantInterop, ALockThatJavaTookThriceIsFreeAfterThreeUnlocks)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    for (const auto* count : {"1", "2", "3"}) {
        ASSERT_EQ(there.run("lock"), "ok");
        EXPECT_EQ(countOf(name, javaId()), count);
        EXPECT_FALSE(here.tryLock());
    }
    for (const auto* count : {"2", "1", ""}) {
        ASSERT_EQ(there.run("unlock"), "ok");
        EXPECT_EQ(countOf(name, javaId()), count);
        EXPECT_EQ(here.isLocked(), *count != '\0');
    }
    EXPECT_TRUE(here.tryLock());
    EXPECT_EQ(here.unlock(), Unlocked::released);
}

TEST_P(ReentrantInterop, ALockThatWeTookThriceIsFreeAfterThreeUnlocks)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    for (const auto* count : {"1", "2", "3"}) {
        here.lock();
        EXPECT_EQ(countOf(name, client.id()), count);
        EXPECT_EQ(there.run("tryLock"), "false");
        EXPECT_EQ(there.run("holdCount"), "ok 0"); // of its own thread
    }
    for (const auto* count : {"2", "1"}) {
        ASSERT_EQ(here.unlock(), Unlocked::stillHeld);
        EXPECT_EQ(countOf(name, client.id()), count);
        EXPECT_EQ(there.run("tryLock"), "false");
    }
    ASSERT_EQ(here.unlock(), Unlocked::released);
    EXPECT_EQ(there.run("tryLock"), "ok");
    EXPECT_EQ(there.run("unlock"), "ok");
}

TEST_P(NonReentrantInterop, ASecondLevelIsRefusedInBothLanguages)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    ASSERT_EQ(there.run("lock"), "ok");
    EXPECT_EQ(there.run("tryLock"), "error IllegalMonitorStateException");
    EXPECT_EQ(countOf(name, javaId()), "1");
    EXPECT_FALSE(here.tryLock());
    EXPECT_EQ(there.run("unlock"), "ok");

    here.lock();
    std::error_code ec;
    EXPECT_FALSE(here.tryLock(ec));
    EXPECT_EQ(ec, Errc::wouldDeadlock);
    EXPECT_EQ(countOf(name, client.id()), "1");
    EXPECT_EQ(there.run("tryLock"), "false");
    EXPECT_EQ(here.unlock(), Unlocked::released);
}

// --- Leases
// ------------------------------------------------------------------------------------------------------------

TEST_P(LockInterop, WeComeInWhenJavasLeaseIsOverAndItsUnlockIsRefused)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    const Stopwatch sinceLock;
    ASSERT_EQ(there.run("lock", 400ms), "ok");
    ASSERT_TRUE(here.tryLock(soon));
    EXPECT_GE(sinceLock.elapsedMs(), 399ms); // Redis rounds
    EXPECT_EQ(there.run("unlock"), "error IllegalMonitorStateException");
    EXPECT_TRUE(here.isHeldByCurrentThread());
    EXPECT_EQ(countOf(name, client.id()), "1");
    EXPECT_EQ(here.unlock(), Unlocked::released);
}

TEST_P(LockInterop, JavaComesInWhenOurLeaseIsOverAndOurUnlockTellsSo)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    const Stopwatch sinceLock;
    here.lock(400ms);
    // Several short waits: a fair waiter of 3.16 that asks a moment too early sleeps until its own wait is over.
    ASSERT_TRUE(eventually([&] { return there.run("tryLock", 1s) == "ok"; }));
    EXPECT_GE(sinceLock.elapsedMs(), 399ms);
    EXPECT_TRUE(here.stopToken().stop_requested());
    EXPECT_EQ(here.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(countOf(name, javaId()), "1");
    EXPECT_EQ(there.run("unlock"), "ok");
}

// --- Owners -------------------------------------------------------------------------------------------------------

TEST_P(LockInterop, NobodyUnlocksWhatTheOtherHolds)
{
    const auto name = uniqueName();
    const auto here = make(name);
    auto there = javaLock(name);
    ASSERT_EQ(there.run("lock"), "ok");
    std::error_code ec;
    here.unlock(ec);
    EXPECT_EQ(ec, Errc::notHeld);
    EXPECT_EQ(countOf(name, javaId()), "1");
    EXPECT_EQ(there.run("unlock"), "ok");

    here.lock();
    EXPECT_EQ(there.run("unlock"), "error IllegalMonitorStateException");
    EXPECT_EQ(countOf(name, client.id()), "1");
    EXPECT_EQ(here.unlock(), Unlocked::released);
}

TEST_P(LockInterop, JavaForcesUsOutAndTheNextOneIn)
{
    const auto name = uniqueName();
    const auto here = make(name);
    here.lock();
    Client other(config());
    const auto next = make(other, name);
    Worker worker;
    auto entered = awaitWaiter(name, [&] { return worker.start([&] { next.lock(longLease); }); });
    EXPECT_EQ(javaLock(name).run("forceUnlock"), "ok");
    entered.get();
    EXPECT_TRUE(eventually([&] { return here.stopToken().stop_requested(); })) << "the next renewal tells it";
    EXPECT_EQ(here.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(countOf(name, other.id()), "1");
    EXPECT_EQ(worker.run([&] { return next.unlock(); }), Unlocked::released);
    EXPECT_EQ(javaLock(name).run("forceUnlock"), "false");
}

TEST_P(LockInterop, WeForceJavaOutAndTheNextOneIn)
{
    const auto name = uniqueName();
    auto there = javaLock(name);
    ASSERT_EQ(there.run("lock"), "ok");
    auto next = javaLock(name, 1);
    awaitWaiter(name, [&] { return next.start("lock", longLease), true; });
    EXPECT_TRUE(make(name).forceUnlock());
    EXPECT_EQ(next.answer(), "ok");
    EXPECT_EQ(there.run("unlock"), "error IllegalMonitorStateException");
    EXPECT_EQ(countOf(name, javaId(1)), "1");
    EXPECT_EQ(next.run("unlock"), "ok");
    EXPECT_FALSE(make(name).forceUnlock());
}

} // namespace
} // namespace redislock::test
