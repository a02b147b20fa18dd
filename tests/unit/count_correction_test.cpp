#include "core/operation/release_flow.hpp"
#include "keeping_port.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

/// A hold with two levels, whose count is sent to Redis.
class CountCorrection : public ::testing::Test {
protected:
    CountCorrection()
    {
        for (int i = 0; i < 2; ++i) {
            const auto level = hold->levels.add(30s, EndedBy::thread);
            core->grant(*hold, level, {.kind = AcquireResult::Kind::granted, .validUntil = port->time + 30s});
        }
        core->releasing.correctCount(*hold, true);
    }

    ~CountCorrection() override
    {
        dropRuns(*core, *port);
        if (hold->phase == Hold::Phase::held) {
            core->lose(*hold, LossReason::gone);
        }
    }

    /// The request under way ends.
    void end(Outcome outcome, Reply::Kind kind = Reply::Kind::nil)
    {
        const auto call = std::exchange(port->sent, nullptr);
        ASSERT_NE(call, nullptr);
        call->outcome = outcome;
        call->reply = {};
        call->reply.kind = kind;
        call->finished();
    }
    void fail(Failure failure, Errc error = Errc::unreachable)
    {
        Outcome outcome;
        outcome.fault = {failure, error};
        end(outcome);
    }
    void answer(Reply::Kind kind)
    {
        Outcome outcome;
        outcome.replied = true;
        end(outcome, kind);
    }

    const std::shared_ptr<KeepingPort> port = std::make_shared<KeepingPort>();
    const Config config;
    const std::shared_ptr<Core> core = std::make_shared<Core>(*port, config, "client", 1);
    const std::shared_ptr<NamedLock> lock = NamedLock::of(port, *core, KindTraits::redisLock, "stock");
    const HoldRef hold = core->takeHold(*lock, 1, Lane::commands);
};

TEST_F(CountCorrection, IsOverWhenRedisHasTheCount)
{
    answer(Reply::Kind::integer); // 0
    EXPECT_EQ(hold->phase, Hold::Phase::held);
    EXPECT_EQ(hold->countsUnderWay, 0);
    EXPECT_TRUE(core->runs.empty());
}

TEST_F(CountCorrection, FindsOutThatTheHoldIsGone)
{
    answer(Reply::Kind::nil);
    EXPECT_EQ(hold->phase, Hold::Phase::lost);
}

TEST_F(CountCorrection, FindsOutThatAnotherKeyTookTheName)
{
    fail(Failure::fatal, Errc::wrongType);
    EXPECT_EQ(hold->phase, Hold::Phase::lost);
}

TEST_F(CountCorrection, ThatIsNotAnsweredIsSentAgain)
{
    fail(Failure::lostReply);
    EXPECT_NE(port->sent, nullptr) << "at once";
    fail(Failure::notConnected);
    EXPECT_NE(port->sent, nullptr);
}

TEST_F(CountCorrection, ThatIsRefusedIsSentAgainAfterAPause)
{
    fail(Failure::refused, Errc::serverRefused);
    EXPECT_EQ(port->sent, nullptr);
    EXPECT_EQ(hold->countsUnderWay, 1);
    port->time += 2s;
    core->ring();
    EXPECT_NE(port->sent, nullptr);
    fail(Failure::fatal, Errc::permissionDenied);
    EXPECT_EQ(port->sent, nullptr);
    port->time += 2s;
    core->ring();
    EXPECT_NE(port->sent, nullptr) << "rights may come back";
}

TEST_F(CountCorrection, OfACountThatIsNoLongerTrueIsNotSentAgain)
{
    hold->levels.remove(1);
    fail(Failure::lostReply);
    EXPECT_EQ(port->sent, nullptr);
}

TEST_F(CountCorrection, OfAHoldWhoseTimeIsOverIsNotSentAgain)
{
    port->time += 31s;
    fail(Failure::lostReply);
    EXPECT_EQ(port->sent, nullptr);
}

TEST_F(CountCorrection, IsNotSentAgainWithoutAClient)
{
    fail(Failure::fatal, Errc::shutdown);
    EXPECT_EQ(port->sent, nullptr);
    EXPECT_EQ(hold->phase, Hold::Phase::held);
}

TEST_F(CountCorrection, ThatSleepsEndsWithTheClientsConnections)
{
    fail(Failure::refused, Errc::serverRefused);
    core->endRuns();
    EXPECT_EQ(hold->countsUnderWay, 0);
    EXPECT_TRUE(core->runs.empty());
}

TEST_F(CountCorrection, OfNoLevelIsAReleaseThatEndsWithTheLease)
{
    fail(Failure::fatal, Errc::shutdown);
    hold->levels.clear();
    core->releasing.correctCount(*hold, true);
    EXPECT_TRUE(core->isAnythingUnderWay());
    port->sent->pending = true; // no answer comes
    port->time += 30s;
    core->ring();
    EXPECT_FALSE(core->isAnythingUnderWay()) << "nobody waits for an answer any more";
    EXPECT_EQ(hold->phase, Hold::Phase::ended);
}

} // namespace
} // namespace redislock::detail
