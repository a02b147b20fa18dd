// Histories of a fair lock, made by hand: T6, the order of asking.
#include "simulation/queue_checker.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace redislock::simulation {
namespace {

using detail::KindTraits;

class QueueCheckerTest : public ::testing::Test {
protected:
    void request(detail::ScriptUse KindTraits::*use, std::vector<std::string> arguments, const Reply& reply,
                 bool hadIt = false, const std::string& passedTo = {})
    {
        Request request;
        request.run(KindTraits::of(detail::LockKind::fairLock), use, "stock", std::move(arguments));
        checker.executed(request, reply, hadIt, passedTo, nowMs);
    }
    /// A waiter asks, keeps its place for a second, and gets the answer that another has the lock.
    void ask(const std::string& holder, const std::string& place = "1000")
    {
        request(&KindTraits::lock, {holder, "1000", "1", place},
                {Reply::Kind::array, 0, {}, {{Reply::Kind::integer, 500, {}, {}}, {}}});
    }
    void get(const std::string& holder, bool hadIt = false)
    {
        request(&KindTraits::lock, {holder, "1000", "1", "1000"}, {}, hadIt);
    }
    /// A waiter gives up its place, or a holder the lock.
    void leave(const std::string& holder) { request(&KindTraits::unlock, {holder, "0", "1", "channel:"}, {}); }
    /// A holder ends its hold, and passes the lock on.
    void pass(const std::string& holder, const std::string& next)
    {
        request(&KindTraits::unlock, {holder, "0", "1", "channel:"}, {Reply::Kind::integer, 2, {}, {}}, true, next);
    }

    QueueChecker checker;
    std::int64_t nowMs = 0;
};

TEST_F(QueueCheckerTest, FirstComeFirstServedBreaksNothing)
{
    EXPECT_EQ(ruleBrokenBy([&] {
                  get("a:1");
                  ask("b:1");
                  ask("c:1");
                  ask("b:1");
                  get("b:1");
                  get("b:1", true); // sent again
                  get("c:1");
              }),
              "none");
}

TEST_F(QueueCheckerTest, WhoGetsItBeforeOneWhoAskedFirstBreaksT6)
{
    ask("b:1");
    ask("c:1");
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "T6");
}

TEST_F(QueueCheckerTest, WhoIsPassedTheLockBeforeOneWhoAskedFirstBreaksT6)
{
    get("a:1");
    ask("b:1");
    ask("c:1");
    auto inTurn = checker;
    EXPECT_EQ(ruleBrokenBy([&] { pass("a:1", "c:1"); }), "T6");
    checker = inTurn;
    EXPECT_EQ(ruleBrokenBy([&] {
                  pass("a:1", "b:1");
                  pass("b:1", "c:1");
              }),
              "none");
}

TEST_F(QueueCheckerTest, WhoDoesNotWaitMayNotPassTheQueueEither)
{
    ask("d:1", "0");
    ask("b:1");
    EXPECT_EQ(ruleBrokenBy([&] { get("d:1"); }), "T6");
}

TEST_F(QueueCheckerTest, WhoGaveItsPlaceUpKeepsNobodyWaiting)
{
    ask("b:1");
    ask("c:1");
    leave("b:1");
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "none");
}

TEST_F(QueueCheckerTest, WhoStoppedAskingKeepsNobodyWaiting)
{
    ask("b:1");
    nowMs = 500;
    ask("c:1");
    nowMs = 999;
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "T6") << "a moment too early";
    nowMs = 1000;
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "none");
}

TEST_F(QueueCheckerTest, WhoGoesOnAskingKeepsItsPlace)
{
    ask("b:1");
    ask("c:1");
    nowMs = 900;
    ask("b:1");
    nowMs = 1800;
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "T6");
}

TEST_F(QueueCheckerTest, AServerThatForgotEverythingKnowsNoOrder)
{
    ask("b:1");
    ask("c:1");
    checker.forgetAll();
    EXPECT_EQ(ruleBrokenBy([&] { get("c:1"); }), "none");
}

} // namespace
} // namespace redislock::simulation
