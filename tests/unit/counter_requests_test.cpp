// Requests whose answers Redis keeps, at a client's end.
#include "client/engine.hpp"
#include "core/counter/counter_flow.hpp"
#include "core/counter/counter_requests.hpp"
#include "core/counter/permit_requests.hpp"
#include "unit/keeping_port.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

// A call that began before the end may make its request after it: nobody would wait for the record of its answer.
TEST(CounterRequests, WithARecordAreRefusedWhenTheirClientHasEnded)
{
    const auto engine = Engine::make(Config());
    const auto semaphore = engine->counter(CounterKind::semaphore, "permits");
    const auto permits = engine->counter(CounterKind::permitExpirableSemaphore, "leased");
    const auto latch = engine->counter(CounterKind::countDownLatch, "latch");
    EXPECT_EQ(releaseRequest(*semaphore, 1, AddTo::existingCounter).refused, std::nullopt);
    engine->shutdown(std::chrono::milliseconds(0));
    EXPECT_EQ(releaseRequest(*semaphore, 1, AddTo::existingCounter).refused, Errc::shutdown);
    EXPECT_EQ(drainRequest(*semaphore).refused, Errc::shutdown);
    EXPECT_EQ(trySetForRequest(*semaphore, 1, std::chrono::seconds(1)).refused, Errc::shutdown);
    EXPECT_EQ(deleteRequest(*semaphore).refused, Errc::shutdown);
    EXPECT_EQ(setPermitsRequest(*permits, 1).refused, Errc::shutdown);
    EXPECT_EQ(countDownRequest(*latch).refused, Errc::shutdown);
    EXPECT_EQ(getRequest(*semaphore).refused, std::nullopt) << "it leaves nothing";
}

// A connection may come long after the request was queued for it.
TEST(CounterRequests, ThatAreRepeatedAreNotSentWhenTheirRecordMayBeGone)
{
    const auto port = std::make_shared<KeepingPort>();
    const Config config;
    Core core(*port, config, "client", 1);
    const auto latch = NamedCounter::of(port, core, CounterKind::countDownLatch, "latch");
    latch->askUnawaited(countDownRequest(*latch).call, {});
    ASSERT_NE(port->sent, nullptr);
    EXPECT_TRUE(port->sent->isWanted(port->time + std::chrono::milliseconds(59'999)));
    EXPECT_FALSE(port->sent->isWanted(port->time + std::chrono::milliseconds(60'000)));
    dropRuns(core, *port);
}

// The server forgets a grant after a while. A process that stood still until then must not ask for it again.
class UnansweredAcquire : public ::testing::Test {
protected:
    explicit UnansweredAcquire(std::chrono::milliseconds unreachableAfter = 10s) : config(patient(unreachableAfter)) {}
    WaitStep loseAnswer(std::chrono::nanoseconds stood)
    {
        Outcome outcome;
        outcome.fault = {Failure::lostReply, Errc::unreachable};
        outcome.stood = stood;
        return flow.answered(outcome);
    }
    static Config patient(std::chrono::milliseconds unreachableAfter)
    {
        Config config;
        config.unreachableAfter = unreachableAfter;
        return config;
    }
    /// What the flow leaves to be done when it has ended.
    void conclude() { semaphore->conclude(flow.takeEnding()); }
    ~UnansweredAcquire() override { dropRuns(core, *port); }

    const std::shared_ptr<KeepingPort> port = std::make_shared<KeepingPort>();
    const Config config;
    Core core{*port, config, "client", 1};
    const std::shared_ptr<NamedCounter> semaphore = NamedCounter::of(port, core, CounterKind::semaphore, "permits");
    CounterFlow flow{*semaphore, permitsOrder(*semaphore, 1, waitForever), nullptr};
};

TEST_F(UnansweredAcquire, IsRepeatedWhileItsGrantIsRemembered)
{
    EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer);
    port->pass(59'999ms);
    EXPECT_EQ(loseAnswer(59'999ms).kind, WaitStep::Kind::awaitAnswer);
    port->pass(1ms);
    EXPECT_EQ(loseAnswer(1ms).kind, WaitStep::Kind::done);
    const auto ending = flow.takeEnding();
    EXPECT_EQ(ending.error(), Errc::unreachable);
    EXPECT_TRUE(ending.isOpen());
}

TEST_F(UnansweredAcquire, IsRepeatedForLongerIfItWasRefusedMeanwhile)
{
    EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer);
    port->pass(30'000ms);
    Outcome refusal;
    refusal.replied = true;
    flow.call().reply.kind = Reply::Kind::integer;
    flow.call().reply.integer = -1;
    EXPECT_EQ(flow.answered(refusal).kind, WaitStep::Kind::sleep);
    port->pass(10'000ms);
    EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer) << "the poll";
    port->pass(59'999ms);
    EXPECT_EQ(loseAnswer(59'999ms).kind, WaitStep::Kind::awaitAnswer);
}

TEST_F(UnansweredAcquire, IsTakenBackWhileItsGrantIsRemembered)
{
    EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer);
    port->pass(40'000ms);
    EXPECT_EQ(loseAnswer(40'000ms).kind, WaitStep::Kind::awaitAnswer);
    EXPECT_EQ(flow.cancel().kind, WaitStep::Kind::done);
    conclude();
    EXPECT_TRUE(port->sent->isWanted(port->time + 19'999ms));
    EXPECT_FALSE(port->sent->isWanted(port->time + 20'000ms));
}

class UnansweredPatientAcquire : public UnansweredAcquire {
protected:
    UnansweredPatientAcquire() : UnansweredAcquire(5min) {}
};

TEST_F(UnansweredPatientAcquire, IsRepeatedForAsLongAsItsClientIsPatient)
{
    EXPECT_EQ(flow.look().kind, WaitStep::Kind::awaitAnswer);
    port->pass(5min - 1ms);
    EXPECT_EQ(loseAnswer(0ms).kind, WaitStep::Kind::awaitAnswer);
    port->pass(1ms);
    EXPECT_EQ(loseAnswer(0ms).kind, WaitStep::Kind::done);
}

} // namespace
} // namespace redislock::detail
