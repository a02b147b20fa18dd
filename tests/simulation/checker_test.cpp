// Each rule of the checker against a history that breaks it, made by hand.
#include "simulation/rule_broken_by.hpp"
#include "simulation/safety_checker.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;
using detail::KindTraits;
using detail::LockKind;

class SafetyCheckerTest : public ::testing::Test {
protected:
    /// Executes a request as a server does.
    void execute(detail::ScriptUse KindTraits::*use, const std::string& holder, std::uint64_t number,
                 const std::vector<Keyspace::Words>& commands, const Reply& reply = {},
                 const std::vector<std::string>& more = {})
    {
        Request request;
        request.run(KindTraits::of(kind), use, "stock", {holder});
        request.arguments.insert(request.arguments.end(), more.begin(), more.end());
        request.number = number;
        checker.before(request, checkedAt);
        keyspace.beginScript(millisecondOf(checkedAt));
        for (const auto& command : commands) {
            EXPECT_FALSE(keyspace.execute(command).isError()) << command[0];
        }
        checker.after(request, reply, checkedAt);
    }

    void lock(const std::string& holder, std::uint64_t number = 1, const std::string& count = "1")
    {
        execute(&KindTraits::lock, holder, number, {{"HSET", "stock", holder, count}, {"PEXPIRE", "stock", "1000"}});
    }

    /// Grants a fenced lock, or repeats the answer.
    void lockFenced(const std::string& holder, const std::string& token)
    {
        Reply reply;
        reply.kind = Reply::Kind::array;
        reply.elements = {{Reply::Kind::text, 0, token, {}}};
        execute(&KindTraits::lock, holder, 1,
                {{"SET", "redisson_lock_token:{stock}", token},
                 {"HSET", "stock", holder, "1"},
                 {"PEXPIRE", "stock", "1000"}},
                reply);
    }

    /// Grants half of a read/write lock, which is then in that mode.
    void lockHalf(LockKind half, const std::string& holder, const std::string& mode, const std::string& writer = {})
    {
        kind = half;
        execute(&KindTraits::lock, holder, 1,
                {{"HSET", "stock", "mode", mode},
                 {"HSET", "stock", holder, "1"},
                 {"SET", "{stock}:" + holder + ":rwlock_timeout:1", "1", "PX", "1000"},
                 {"PEXPIRE", "stock", "1000"}},
                {}, {"1000", "1", writer});
    }
    static Claim readerOf(const std::string& holder, const std::string& thread)
    {
        return {.name = "stock", .holder = holder, .thread = thread, .isShared = true};
    }
    static Claim writerOf(const std::string& holder, const std::string& thread)
    {
        return {.name = "stock", .holder = holder, .thread = thread};
    }

    LockKind kind = LockKind::redisLock;
    Keyspace keyspace;
    SafetyChecker checker{keyspace};
};

TEST_F(SafetyCheckerTest, AnOrderlyHistoryBreaksNoRule)
{
    EXPECT_EQ(ruleBrokenBy([&] {
                  lock("a:1");
                  checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms);
                  checker.expectCount("stock", "a:1", 1, checkedAt);
                  checker.renews("a:1");
                  checker.ends("stock", "a:1");
                  execute(&KindTraits::unlock, "a:1", 2, {{"DEL", "stock"}});
                  checker.expectGone("stock", "a:1", checkedAt);
                  lock("b:1");
                  checker.believes({"stock", "b:1"}, checkedAt, checkedAt + 990ms);
              }),
              "none");
}

TEST_F(SafetyCheckerTest, TwoBelieversBreakMutualExclusion)
{
    lock("a:1");
    checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes({"stock", "b:1"}, checkedAt, checkedAt + 990ms); }), "S1");
}

TEST_F(SafetyCheckerTest, OneWhoseLockWasTakenFromOutsideIsExcused)
{
    lock("a:1");
    checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms);
    checker.excuse("stock");
    keyspace.erase("stock");
    EXPECT_EQ(ruleBrokenBy([&] {
                  lock("b:1");
                  checker.believes({"stock", "b:1"}, checkedAt, checkedAt + 990ms);
                  checker.toldGone("a:1", "renewal");
              }),
              "none");
}

TEST_F(SafetyCheckerTest, ABeliefWithoutAKeyIsUntrue)
{
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms); }), "S2");
}

TEST_F(SafetyCheckerTest, ABeliefWhoseKeyIsDeletedByItsOwnRequestIsUntrue)
{
    lock("a:1");
    checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "a:1", 2, {{"DEL", "stock"}}); }), "S2");
}

TEST_F(SafetyCheckerTest, ADeadlineMustBeBeforeTheServers)
{
    lock("a:1");
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 1000ms); }), "S3");
}

TEST_F(SafetyCheckerTest, ACutLeaseBreaksTheDeadline)
{
    lock("a:1");
    checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "a:1", 2, {{"PEXPIRE", "stock", "20"}}); }), "S3");
}

TEST_F(SafetyCheckerTest, NobodyChangesAnothersKey)
{
    lock("a:1");
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "b:1", 1, {{"DEL", "stock"}}); }), "S5");
    lock("a:2");
    EXPECT_EQ(ruleBrokenBy([&] { lock("b:1"); }), "S5");
}

TEST_F(SafetyCheckerTest, ARenewalCreatesNoKey)
{
    EXPECT_EQ(ruleBrokenBy([&] {
                  execute(&KindTraits::renew, "a:1", 1, {{"HSET", "stock", "a:1", "1"}, {"PEXPIRE", "stock", "1000"}},
                          {}, {"1000"});
              }),
              "S5");
}

TEST_F(SafetyCheckerTest, TheServerHasTheTrueCount)
{
    lock("a:1", 1, "2");
    EXPECT_EQ(ruleBrokenBy([&] { checker.expectCount("stock", "a:1", 1, checkedAt); }), "S6");
    lock("a:1", 3, "1");
    lock("a:1", 2, "2"); // an older request that came late
    EXPECT_EQ(ruleBrokenBy([&] { checker.expectCount("stock", "a:1", 1, checkedAt); }), "none");
}

TEST_F(SafetyCheckerTest, WhatWasReleasedIsGone)
{
    lock("a:1");
    EXPECT_EQ(ruleBrokenBy([&] { checker.expectGone("stock", "a:1", checkedAt); }), "S8");
}

TEST_F(SafetyCheckerTest, NothingIsLostThatNobodyTook)
{
    lock("a:1");
    EXPECT_EQ(ruleBrokenBy([&] { checker.toldGone("a:1", "renewal"); }), "S8");
}

TEST_F(SafetyCheckerTest, WhatIsOverStaysOver)
{
    lock("a:1");
    checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 900ms);
    checker.ends("stock", "a:1");
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes({"stock", "a:1"}, checkedAt, checkedAt + 990ms); }), "S9");
    EXPECT_EQ(ruleBrokenBy([&] { checker.renews("a:1"); }), "S9");
}

TEST_F(SafetyCheckerTest, ALockHasOneHolder)
{
    lock("a:1");
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::lock, "a:1", 2, {{"HSET", "stock", "b:1", "1"}}); }), "S5");
}

TEST_F(SafetyCheckerTest, TheLibrarySendsNoRequestThatAScriptRefuses)
{
    Request request;
    request.run(KindTraits::of(LockKind::redisLock), &KindTraits::lock, "stock", {"a:1"});
    Reply refusal;
    refusal.kind = Reply::Kind::error;
    refusal.text = "ERR the lease is no number";
    checker.before(request, checkedAt);
    EXPECT_EQ(ruleBrokenBy([&] { checker.after(request, refusal, checkedAt); }), "valid");
    refusal.text = "OOM command not allowed";
    EXPECT_EQ(ruleBrokenBy([&] { checker.after(request, refusal, checkedAt); }), "none");
}

TEST_F(SafetyCheckerTest, TokensGrowFromHoldToHoldAndStayForItsLevels)
{
    kind = LockKind::fencedLock;
    EXPECT_EQ(ruleBrokenBy([&] {
                  lockFenced("a:1", "100");
                  lockFenced("a:1", "100"); // the request again, or a nested level
                  checker.expectToken("a:1", 100, 100);
                  execute(&KindTraits::unlock, "a:1", 2, {{"DEL", "stock"}});
                  lockFenced("b:1", "101");
              }),
              "none");
}

TEST_F(SafetyCheckerTest, ATokenThatDoesNotGrowBreaksS4)
{
    kind = LockKind::fencedLock;
    lockFenced("a:1", "100");
    execute(&KindTraits::unlock, "a:1", 2, {{"DEL", "stock"}});
    EXPECT_EQ(ruleBrokenBy([&] { lockFenced("b:1", "100"); }), "S4");
}

TEST_F(SafetyCheckerTest, ALevelWithATokenOfItsOwnBreaksS4)
{
    kind = LockKind::fencedLock;
    lockFenced("a:1", "100");
    EXPECT_EQ(ruleBrokenBy([&] { lockFenced("a:1", "101"); }), "S4");
    EXPECT_EQ(ruleBrokenBy([&] { checker.expectToken("a:1", 100, 101); }), "S4");
}

TEST_F(SafetyCheckerTest, TheLastTokenAloneHasNoTimeToLive)
{
    kind = LockKind::fencedLock;
    EXPECT_EQ(ruleBrokenBy([&] {
                  execute(&KindTraits::lock, "a:1", 1,
                          {{"SET", "redisson_lock_token:{stock}", "7"}, {"HSET", "stock", "a:1", "1"}});
              }),
              "R4");
}

TEST_F(SafetyCheckerTest, ReadersOverlapAndAWriterReads)
{
    EXPECT_EQ(ruleBrokenBy([&] {
                  lockHalf(LockKind::readLock, "a:1", "read");
                  checker.believes(readerOf("a:1", "a/1"), checkedAt, checkedAt + 990ms);
                  lockHalf(LockKind::readLock, "b:1", "read");
                  checker.believes(readerOf("b:1", "b/1"), checkedAt, checkedAt + 990ms);
                  checker.ends("stock", "a:1");
                  checker.ends("stock", "b:1");
                  keyspace.erase("stock");
                  lockHalf(LockKind::writeLock, "a:2:write", "write");
                  checker.believes(writerOf("a:2:write", "a/1"), checkedAt, checkedAt + 990ms);
                  lockHalf(LockKind::readLock, "a:3", "write", "a:2:write");
                  checker.believes(readerOf("a:3", "a/1"), checkedAt, checkedAt + 990ms);
              }),
              "none");
}

TEST_F(SafetyCheckerTest, AWriterBesideAReaderBreaksS10)
{
    lockHalf(LockKind::readLock, "a:1", "read");
    checker.believes(readerOf("a:1", "a/1"), checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes(writerOf("b:1:write", "b/1"), checkedAt, checkedAt + 990ms); }),
              "S10");
}

TEST_F(SafetyCheckerTest, AReaderBesideAnothersWriterBreaksS10)
{
    lockHalf(LockKind::writeLock, "a:1:write", "write");
    checker.believes(writerOf("a:1:write", "a/1"), checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes(readerOf("a:2", "a/2"), checkedAt, checkedAt + 990ms); }), "S10");
    EXPECT_EQ(ruleBrokenBy([&] { lockHalf(LockKind::readLock, "a:2", "write"); }), "S5");
}

TEST_F(SafetyCheckerTest, TwoWritersBreakMutualExclusion)
{
    lockHalf(LockKind::writeLock, "a:1:write", "write");
    checker.believes(writerOf("a:1:write", "a/1"), checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] { checker.believes(writerOf("b:1:write", "b/1"), checkedAt, checkedAt + 990ms); }),
              "S1");
}

TEST_F(SafetyCheckerTest, AReaderThatLeavesTakesOnlyItsOwnHoldAway)
{
    lockHalf(LockKind::readLock, "a:1", "read");
    lockHalf(LockKind::readLock, "b:1", "read");
    Reply ended;
    ended.kind = Reply::Kind::integer;
    ended.integer = 1;
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "a:1", 2, {{"HDEL", "stock", "a:1"}}, ended); }), "none");
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "a:1", 2, {{"HDEL", "stock", "b:1"}}, ended); }), "S5");
}

TEST_F(SafetyCheckerTest, AWriterThatLeavesTheModeBehindBreaksS5)
{
    lockHalf(LockKind::writeLock, "a:1:write", "write");
    lockHalf(LockKind::readLock, "a:2", "write", "a:1:write");
    kind = LockKind::writeLock;
    EXPECT_EQ(ruleBrokenBy([&] {
                  execute(&KindTraits::unlock, "a:1:write", 2, {{"HDEL", "stock", "a:1:write"}});
              }),
              "S5");
}

TEST_F(SafetyCheckerTest, ALockLeftToReadersThatAreGoneBreaksS7)
{
    lockHalf(LockKind::readLock, "a:1", "read");
    lockHalf(LockKind::readLock, "b:1", "read");
    keyspace.erase("{stock}:b:1:rwlock_timeout:1"); // its lease is over
    Reply ended;
    ended.kind = Reply::Kind::integer;
    ended.integer = 1;
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::unlock, "a:1", 2, {{"HDEL", "stock", "a:1"}}, ended); }), "S7");
}

TEST_F(SafetyCheckerTest, AHoldKeyHasATimeToLive)
{
    kind = LockKind::readLock;
    EXPECT_EQ(ruleBrokenBy([&] {
                  execute(&KindTraits::lock, "a:1", 1,
                          {{"HSET", "stock", "mode", "read"},
                           {"HSET", "stock", "a:1", "1"},
                           {"PEXPIRE", "stock", "1000"},
                           {"SET", "{stock}:a:1:rwlock_timeout:1", "1"}},
                          {}, {"1000", "1", ""});
              }),
              "R4");
}

TEST_F(SafetyCheckerTest, AForcedUnlockExcusesAllWhoseHoldsItEnds)
{
    lockHalf(LockKind::readLock, "a:1", "read");
    lockHalf(LockKind::readLock, "b:1", "read");
    checker.believes(readerOf("b:1", "b/1"), checkedAt, checkedAt + 990ms);
    EXPECT_EQ(ruleBrokenBy([&] {
                  execute(&KindTraits::forceUnlock, "a:1", 2, {{"DEL", "stock"}});
                  checker.toldGone("b:1", "renewal");
              }),
              "none");
}

TEST_F(SafetyCheckerTest, EveryKeyHasATimeToLive)
{
    EXPECT_EQ(ruleBrokenBy([&] { execute(&KindTraits::lock, "a:1", 1, {{"HSET", "stock", "a:1", "1"}}); }), "R4");
}

} // namespace
} // namespace redislock::simulation
