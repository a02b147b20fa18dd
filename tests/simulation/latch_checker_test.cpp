// Histories of latches and waiters, made by hand: S12, T4.
#include "simulation/latch_checker.hpp"
#include "simulation/poll_checker.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;
namespace scripts = detail::scripts;

class LatchCheckerTest : public ::testing::Test {
protected:
    /// Executes a request as a server does: @p left is the remaining count. @return the rule that the request broke.
    std::string ruleBrokenBy(const detail::Script& script, const std::string& record, const std::string& left,
                             std::int64_t answer)
    {
        keyspace.beginScript(millisecondOf(now));
        keyspace.execute(left == "0" ? Keyspace::Words{"DEL", "gate"} : Keyspace::Words{"SET", "gate", left});
        Request request;
        request.script = &script;
        request.name = "gate";
        request.otherKeys = {record};
        request.arguments = {"2"};
        return simulation::ruleBrokenBy([&] {
            checker.executed(request, {Reply::Kind::integer, answer, {}, {}}, now);
        });
    }
    std::string ruleBrokenByMaking(const std::string& record)
    {
        return ruleBrokenBy(scripts::counterTrySet, record, "2", 1);
    }
    std::string ruleBrokenByCounting(const std::string& record, int left)
    {
        return ruleBrokenBy(scripts::countDownLatchCountDown, record, std::to_string(left), left);
    }
    std::string ruleBrokenByPassing(VirtualTime began)
    {
        return simulation::ruleBrokenBy([&] { checker.passed("gate", began); });
    }

    VirtualTime now = 1s;
    Keyspace keyspace;
    LatchChecker checker{keyspace};
};

TEST_F(LatchCheckerTest, OpensWithTheLastOfTheDistinctCountDowns)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none") << "sent twice";
    EXPECT_EQ(ruleBrokenBy(scripts::counterGet, "", "1", 1), "none");
    EXPECT_EQ(ruleBrokenByCounting("b:1", 0), "none");
    EXPECT_EQ(ruleBrokenByPassing(0s), "none");
    EXPECT_EQ(ruleBrokenByCounting("c:1", 0), "none") << "nothing to count";
}

TEST_F(LatchCheckerTest, OneThatOpensTooEarlyBreaksS12)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 0), "S12");
}

TEST_F(LatchCheckerTest, ARequestThatCountsTwiceBreaksS12)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 0), "S12");
}

TEST_F(LatchCheckerTest, OneThatDoesNotOpenBreaksS12)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none");
    EXPECT_EQ(ruleBrokenByCounting("b:1", 1), "S12");
}

TEST_F(LatchCheckerTest, OneThatClosesWhileItIsCountedBreaksS12)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenBy(scripts::counterTrySet, "b:1", "2", 1), "S12") << "made over one that is closed";
}

TEST_F(LatchCheckerTest, ALateCopyOfWhatMadeItThatClosesItAgainBreaksS12)
{
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:3", 0), "none");
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "S12");
}

TEST_F(LatchCheckerTest, WhoPassesOneThatIsClosedBreaksS12)
{
    EXPECT_EQ(ruleBrokenByPassing(0s), "none") << "nobody made it";
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByPassing(now), "none") << "it was open when the wait began";
    EXPECT_EQ(ruleBrokenByPassing(now + 1ns), "S12");
    checker.excuse("gate");
    EXPECT_EQ(ruleBrokenByPassing(now + 1ns), "none");
}

TEST_F(LatchCheckerTest, EachCallCountsOnce)
{
    const auto ruleBrokenInTheEnd = [&] { return simulation::ruleBrokenBy([&] { checker.expectAllCounted(); }); };
    EXPECT_EQ(ruleBrokenByMaking("a:1"), "none");
    EXPECT_EQ(ruleBrokenByCounting("a:2", 1), "none");
    EXPECT_EQ(ruleBrokenInTheEnd(), "S12") << "nobody counted";
    checker.counts("gate");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none") << "its answer was lost";
    checker.counted("gate");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none");
    checker.counts("gate");
    checker.counted("gate");
    EXPECT_EQ(ruleBrokenInTheEnd(), "S12") << "two were told that they did";
}

class PollCheckerTest : public ::testing::Test {
protected:
    void SetUp() override { checker.begin(); }

    std::string ruleBrokenUntil(VirtualTime end)
    {
        return ruleBrokenBy([&] {
            while (scheduler.step(end)) {
            }
        });
    }

    Scheduler scheduler;
    std::vector<PollChecker::Waiter> waiters{{"a:1", 2, 1s}};
    PollChecker checker{scheduler, [this](const std::string&) { return waiters; }};
};

TEST_F(PollCheckerTest, WhoSleepsOnThoughThereIsEnoughBreaksT4)
{
    checker.executed("stock", 2);
    EXPECT_EQ(ruleBrokenUntil(1s - 1ns), "none");
    EXPECT_EQ(ruleBrokenUntil(1s), "T4");
}

TEST_F(PollCheckerTest, WhoNeedsMoreMaySleepOn)
{
    checker.executed("stock", 1);
    EXPECT_EQ(ruleBrokenUntil(5s), "none");
}

TEST_F(PollCheckerTest, WhoHadNoChanceForAWholePollMaySleepOn)
{
    checker.executed("stock", 2);
    scheduler.at(900ms, [&] { checker.executed("stock", 1); });
    scheduler.at(950ms, [&] { checker.executed("stock", 3); });
    EXPECT_EQ(ruleBrokenUntil(1950ms - 1ns), "none");
    EXPECT_EQ(ruleBrokenUntil(1950ms), "T4");
}

TEST_F(PollCheckerTest, WhoHasItDoesNotWait)
{
    checker.executed("stock", std::numeric_limits<std::int64_t>::max());
    waiters.clear();
    EXPECT_EQ(ruleBrokenUntil(5s), "none");
}

} // namespace
} // namespace redislock::simulation
