// What wakes the waiters of a client: what it hears of grants to them, and the ends of its own releases.
#include "core/core.hpp"
#include "core/operation/acquire_flow.hpp"
#include "unit/keeping_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

/// Another holder has the lock for a minute more.
void refuse(AcquireFlow& waiter)
{
    Outcome refusal;
    refusal.replied = true;
    Reply& reply = waiter.call().reply;
    reply.kind = Reply::Kind::array;
    reply.elements.resize(3);
    reply.elements[0].kind = reply.elements[2].kind = Reply::Kind::integer;
    reply.elements[0].integer = 60'000;
    reply.elements[1].kind = Reply::Kind::text;
    reply.elements[1].text = "other:1";
    EXPECT_EQ(waiter.answered(refusal).kind, WaitStep::Kind::sleep);
}

class WakingTest : public ::testing::Test {
protected:
    using Kind = SubscriptionTable<ChannelListener>::Incoming::Kind;

    explicit WakingTest(LockKind kind) : lock(NamedLock::of(port, *core, KindTraits::of(kind), "stock")) {}

    HoldRef hold() { return core->takeHold(*lock, 1, Lane::commands); }

    const std::shared_ptr<KeepingPort> port = std::make_shared<KeepingPort>();
    const Config config{};
    const std::shared_ptr<Core> core = std::make_shared<Core>(*port, config, "client", 1);
    const std::shared_ptr<NamedLock> lock;
    const AcquireOrder order{
        .wait = waitForever, .lease = Lease::renewed(), .endedBy = EndedBy::thread, .durability = {}};
};

class GrantChannel : public WakingTest {
protected:
    GrantChannel() : WakingTest(LockKind::fairLock) {}

    /// A waiter for the lock, which has asked.
    std::unique_ptr<AcquireFlow> ask()
    {
        auto waiter = std::make_unique<AcquireFlow>(*core, *lock, hold(), order, nullptr);
        EXPECT_EQ(waiter->look().kind, WaitStep::Kind::awaitAnswer);
        return waiter;
    }
};

TEST_F(GrantChannel, IsListenedToWhileAnyWaiterSleepsAndForASecondMore)
{
    auto waiter = ask();
    EXPECT_THAT(port->listened, ::testing::IsEmpty());
    refuse(*waiter);
    EXPECT_THAT(port->listened, ::testing::ElementsAre("redisson_lock__channel:client"));
    waiter.reset();
    port->pass(999ms);
    EXPECT_THAT(port->listened, ::testing::SizeIs(1));
    port->pass(1ms);
    EXPECT_THAT(port->listened, ::testing::IsEmpty());
}

TEST_F(GrantChannel, IsOnlyCountedOnOnceItsSubscriptionIsConfirmed)
{
    auto waiter = ask();
    refuse(*waiter);
    EXPECT_FALSE(ask()->call().isHeard);
    tell(port->listener, Kind::confirmed, {});
    EXPECT_TRUE(waiter->waiter.submitted) << "it asks again, since a release may have gone unheard";
    EXPECT_TRUE(ask()->call().isHeard);
}

TEST_F(GrantChannel, ThatWasDroppedIsNotCountedOnThoughItsConfirmationComesLater)
{
    auto waiter = ask();
    refuse(*waiter);
    waiter.reset();
    port->pass(1s);
    ASSERT_THAT(port->listened, ::testing::IsEmpty());
    tell(port->listener, Kind::confirmed, {});
    waiter = ask();
    EXPECT_FALSE(waiter->call().isHeard) << "a release would grant it the lock, and nobody would hear of it";
    refuse(*waiter);
    EXPECT_THAT(port->listened, ::testing::SizeIs(1));
}

/// A waiter that a release has just granted the lock for some time.
class GrantedHold : public GrantChannel {
protected:
    void TearDown() override
    {
        (void)core->close();
        port->sent.reset(); // keeps the hold, and this the port
    }

    void give(std::chrono::milliseconds lasts)
    {
        auto waiter = ask();
        refuse(*waiter);
        tell(port->listener, Kind::confirmed, {});
        waiter = ask();
        refuse(*waiter);
        const auto number = std::to_string(static_cast<std::uint64_t>(waiter->waiter.hold->id));
        tell(port->listener, Kind::message, number + " 0 " + std::to_string(lasts.count()) + " stock");
        EXPECT_EQ(waiter->look().kind, WaitStep::Kind::done);
        EXPECT_EQ(waiter->conclude(held), std::error_code());
        port->sent.reset();
    }
    /// How long the hold lasts until its lease is sent.
    std::chrono::nanoseconds timeUntilSent()
    {
        const TimePoint began = port->time;
        while (port->sent == nullptr && port->time < held.hold->validUntil()) {
            port->time = std::max(port->time, port->alarmAt);
            core->ring();
        }
        return port->time - began;
    }

    Acquired held;
};

TEST_F(GrantedHold, IsRenewedOnlyIfItIsNotOverInAMoment)
{
    give(5s);
    EXPECT_THAT(timeUntilSent(), ::testing::AllOf(::testing::Gt(0ms), ::testing::Le(2ms)));
}

TEST_F(GrantedHold, IsRenewedEarlyInAShortGrant)
{
    give(10ms);
    EXPECT_LE(timeUntilSent(), 500us);
}

class ChannelOfAName : public WakingTest {
protected:
    ChannelOfAName() : WakingTest(LockKind::redisLock) {}

    /// A hold of that time ends, which is told to so many other clients.
    Turn& endTurn(std::chrono::milliseconds lasted, int others)
    {
        Turn& turn = *lock->takeTurns();
        turn.granted(port->time - lasted, port->time - lasted);
        turn.releasePublished(port->time, false, false, core->random);
        turn.othersListen(others, port->time);
        return turn;
    }
};

TEST_F(ChannelOfAName, IsNotAwaitedByTheFirstWaiterWhenTheServerMayBeAnotherOne)
{
    AcquireFlow first(*core, *lock, hold(), order, nullptr);
    AcquireFlow second(*core, *lock, core->takeHold(*lock, 2, Lane::commands), order, nullptr);
    first.look();
    second.look();
    refuse(first);
    port->sent = nullptr;
    core->unsettle();
    EXPECT_EQ(port->sent.get(), &first.call());
    EXPECT_FALSE(second.waiter.submitted);
}

class OwnRelease : public ChannelOfAName {};

TEST_F(OwnRelease, WakesAWaiterThatWasRefusedMeanwhileEachTimeEvenIfTheRefusalWasTheAnswer)
{
    const HoldRef released = core->takeHold(*lock, 2, Lane::commands);
    AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    for (std::uint32_t refusals = 0; refusals <= Refusals::most; ++refusals) { // the last one is the answer
        SCOPED_TRACE(refusals);
        core->begins();
        lock->releases.begin();
        refuse(waiter);
        const int before = port->woken;
        core->releasing.over(*released, Unlocked::released);
        EXPECT_EQ(port->woken, before + 1);
        EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer) << "it asks again";
    }
}

TEST_F(ChannelOfAName, TellsAWaiterThatDefersToAskAMomentLater)
{
    endTurn(10s, 3);
    AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::sleep);
    port->pass(51ms);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    refuse(waiter);
    tell(port->listener, Kind::message, {});
    EXPECT_FALSE(waiter.waiter.submitted);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::sleep) << "the others come first";
    port->pass(1ms);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer) << "but the lock is not left idle";
    tell(port->listener, Kind::message, {}); // overtakes the refusal
    refuse(waiter);
    port->pass(1ms);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer) << "that release came after the refusal, perhaps";
    refuse(waiter);
    port->pass(config.pollInterval);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer) << "it polls all the same";
}

TEST_F(ChannelOfAName, ThatIsRefusedMakesItsWaitersAskAsOftenAsThoseOfASpinLock)
{
    AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    refuse(waiter);
    tell(port->listener, Kind::refused, {});
    for (int i = 0; i < 20; ++i) {
        const WaitStep sleep = waiter.look();
        ASSERT_EQ(sleep.kind, WaitStep::Kind::sleep);
        EXPECT_LE(sleep.until, port->time + 128ms);
        port->time = sleep.until;
        EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
        refuse(waiter);
    }
    tell(port->listener, Kind::confirmed, {}); // the right was given back
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    refuse(waiter);
    EXPECT_EQ(waiter.look().until, port->time + config.pollInterval);
}

TEST_F(ChannelOfAName, ThatIsNotListenedToByTheFirstPollIsNotReliedOn)
{
    AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    refuse(waiter);
    EXPECT_EQ(waiter.look().until, port->time + config.pollInterval);
    port->pass(config.pollInterval);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
    refuse(waiter);
    EXPECT_LE(waiter.look().until, port->time + 2ms);
}

/// A client that has had the lock for so long that its release begins a gap.
class GapOf : public WakingTest, public ::testing::WithParamInterface<LockKind> {
protected:
    GapOf() : WakingTest(GetParam())
    {
        Turn& turn = *lock->takeTurns();
        turn.granted(port->time - 300ms, port->time - 300ms);
        turn.releasePublished(port->time, false, false, core->random);
        EXPECT_GT(turn.gapUntil(), port->time);
    }

    WaitStep::Kind stepOf(const AcquireOrder& by)
    {
        AcquireFlow waiter(*core, *lock, hold(), by, nullptr);
        const auto kind = waiter.look().kind;
        (void)waiter.cancel();
        return kind;
    }

    AcquireOrder byPolicy = {.wait = waitForever,
                             .lease = Lease::renewed(),
                             .endedBy = EndedBy::thread,
                             .retry = std::make_shared<const RetryPolicy>(RetryPolicy::spin()),
                             .durability = {}};
    AcquireOrder once = {.wait = oneAttempt, .lease = Lease::renewed(), .endedBy = EndedBy::thread, .durability = {}};
};

TEST_P(GapOf, KeepsWaitersOfItsNameAndKindFromAskingButNoSingleAttempt)
{
    EXPECT_EQ(stepOf(order), WaitStep::Kind::sleep);
    EXPECT_EQ(stepOf(byPolicy), WaitStep::Kind::sleep);
    EXPECT_EQ(stepOf(once), WaitStep::Kind::awaitAnswer);
    EXPECT_THAT(port->listened, ::testing::IsEmpty()) << "a subscription would cost more than the gap";
    port->time = lock->turn->gapUntil();
    EXPECT_EQ(stepOf(order), WaitStep::Kind::awaitAnswer);
    EXPECT_EQ(stepOf(byPolicy), WaitStep::Kind::awaitAnswer);
}

TEST_P(GapOf, DoesNotKeepACallFromAskingWhoseWaitWouldBeOverInIt)
{
    byPolicy.wait = Wait(1ms);
    EXPECT_EQ(stepOf(byPolicy), WaitStep::Kind::awaitAnswer);
}

TEST_P(GapOf, EndsWithNoMessage)
{
    AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::sleep);
    core->waking.heard(*lock, {}, Notice::message);
    EXPECT_FALSE(waiter.waiter.submitted) << "another client released the lock, but others may want it too";
    EXPECT_EQ(waiter.look().kind, WaitStep::Kind::sleep);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GapOf,
                         ::testing::Values(LockKind::redisLock, LockKind::nonReentrantLock, LockKind::spinLock,
                                           LockKind::fencedLock, LockKind::writeLock));

TEST_F(ChannelOfAName, IsListenedToALittleLongerWhereTheUseOfAnAsideIsInDoubt)
{
    Turn& turn = endTurn(1ms, 1);
    Acquired held;
    {
        AcquireFlow waiter(*core, *lock, hold(), order, nullptr);
        EXPECT_EQ(waiter.look().kind, WaitStep::Kind::sleep);
        EXPECT_THAT(port->listened, ::testing::SizeIs(1));
        port->pass(3ms);
        EXPECT_EQ(waiter.look().kind, WaitStep::Kind::awaitAnswer);
        Outcome granted;
        granted.replied = true;
        EXPECT_EQ(waiter.answered(granted).kind, WaitStep::Kind::done);
        EXPECT_EQ(waiter.conclude(held), std::error_code());
    }
    EXPECT_THAT(port->listened, ::testing::SizeIs(1));
    port->pass(4ms);
    EXPECT_TRUE(turn.mayFollow(port->time)) << "nobody seems to have used it";
    tell(port->listener, Kind::message, {});
    EXPECT_FALSE(turn.mayFollow(port->time)) << "the message was late";
    port->pass(1ms);
    EXPECT_THAT(port->listened, ::testing::IsEmpty());
    (void)core->close();
    port->sent.reset();
}

} // namespace
} // namespace redislock::detail
