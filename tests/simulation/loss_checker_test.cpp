// Losses made by hand: T1 and T3.
#include "core/renewing.hpp"
#include "simulation/loss_checker.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;

class LossCheckerTest : public ::testing::Test {
protected:
    void SetUp() override { scheduler.step(10s); } // it is ten o'clock

    /// The rule that a hold of 3 s breaks that was last renewed at @p renewedAt, and given up by the clock 32 ms before
    /// its lease was over.
    std::string ruleBrokenByRunningOut(TimePoint renewedAt, VirtualTime lastTrouble)
    {
        return ruleBrokenBy([&] {
            expectNoChance({.holder = "a:1",
                            .lease = 3s,
                            .commandTimeout = 200ms,
                            .renewedAt = renewedAt,
                            .deadline = renewedAt + 2968ms},
                           *host, lastTrouble);
        });
    }
    std::string ruleBrokenByDeadline(TimePoint deadline)
    {
        return ruleBrokenBy([&] { expectLossTold("a:1", deadline, *host, scheduler.now()); });
    }

    Scheduler scheduler;
    std::shared_ptr<Host> host = std::make_shared<Host>(scheduler, "a", DriftingClock(0ns, 0), 1);
};

TEST_F(LossCheckerTest, AHoldThatIsOverAndNotLostBreaksT1)
{
    EXPECT_EQ(ruleBrokenByDeadline(host->now() - 1ms - 1ns), "T1");
    EXPECT_EQ(ruleBrokenByDeadline(host->now() - 1ms), "none"); // it may still be reported now
    EXPECT_EQ(ruleBrokenByDeadline(host->now() + 1s), "none");
}

TEST_F(LossCheckerTest, AProcessThatStoodStillTellsItWhenItGoesOn)
{
    host->pauseUntil(11s);
    EXPECT_EQ(ruleBrokenByDeadline(host->now() - 1s), "none");
    scheduler.step(11s);
    EXPECT_EQ(ruleBrokenByDeadline(host->now() - 1s), "none");
    scheduler.step(11s + 1ns);
    EXPECT_EQ(ruleBrokenByDeadline(host->now() - 1s), "T1");
}

// A renewal is due 1080 ms after the last one at the latest, and needs 2 x 200 + 1200 + 150 + 50 ms.
TEST_F(LossCheckerTest, AHoldThatCouldHaveBeenRenewedBreaksT3)
{
    EXPECT_EQ(ruleBrokenByRunningOut(host->now(), 0s), "T3");
    EXPECT_EQ(ruleBrokenByRunningOut(host->now(), host->trueTime(host->now()) + 1080ms + 87ms), "T3");
}

TEST_F(LossCheckerTest, TroubleThatEndsTooLateExcusesALoss)
{
    EXPECT_EQ(ruleBrokenByRunningOut(host->now(), host->trueTime(host->now()) + 2968ms - 1800ms), "none");
    EXPECT_EQ(ruleBrokenByRunningOut(host->now(), host->trueTime(host->now()) + 5s), "none");
}

TEST_F(LossCheckerTest, ARenewalIsWaitedForForASixthOfTheLeaseAtMost)
{
    EXPECT_EQ(detail::renewalTimeout(3s, 3s), 500ms);
    EXPECT_EQ(detail::renewalTimeout(30s, 3s), 3s);
    EXPECT_EQ(detail::renewalTimeout(30ms, 3s), 10ms);
}

} // namespace
} // namespace redislock::simulation
