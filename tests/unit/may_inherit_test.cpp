#include "core/core.hpp"
#include "core/operation/acquire_flow.hpp"
#include "core/share/handoff.hpp"
#include "unit/keeping_port.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using test::at;

/// A situation in which all conditions for passing on are met; each case breaks one of them.
struct Situation {
    const char* name;
    EndingHold hold{
        .ownUntil = at(11s), .atRiskFrom = at(27s), .isRenewed = true, .isConfirmed = true, .isAnswered = true};
    NextCaller next{.isRenewed = true, .sleeps = true};
    bool mayFollow = true;
    TimePoint now = at(10s + 99ms);
};

bool mayInherit(const Situation& each)
{
    return mayInherit(each.hold, each.next, each.mayFollow, each.now);
}

Situation spoilt(const char* name, void (*spoil)(Situation&))
{
    Situation each{name};
    spoil(each);
    return each;
}

TEST(MayInherit, WhatIsConfirmedAndNotAtRiskToWhoSleepsWithinTheTurn)
{
    EXPECT_TRUE(mayInherit(Situation{"nothing is spoilt"}));
}

TEST(MayInherit, NothingElse)
{
    const Situation cases[] = {
        spoilt("fixed lease", [](Situation& c) { c.hold.isRenewed = false; }),
        spoilt("held too long", [](Situation& c) { c.hold.isHeldTooLong = true; }),
        spoilt("member of a group", [](Situation& c) { c.hold.isMember = true; }),
        spoilt("a count is under way", [](Situation& c) { c.hold.isConfirmed = false; }),
        spoilt("a request without an answer", [](Situation& c) { c.hold.isAnswered = false; }),
        spoilt("at risk", [](Situation& c) { c.hold.atRiskFrom = c.now; }),
        spoilt("to a fixed lease", [](Situation& c) { c.next.isRenewed = false; }),
        spoilt("to a member of a group", [](Situation& c) { c.next.isMember = true; }),
        spoilt("to who asks itself", [](Situation& c) { c.next.sleeps = false; }),
        spoilt("to who leaves", [](Situation& c) { c.next.leaves = true; }),
        spoilt("it is time to ask Redis", [](Situation& c) { c.hold.ownUntil = c.now; }),
        spoilt("the turn is over", [](Situation& c) { c.mayFollow = false; }),
    };
    for (const auto& each : cases) {
        EXPECT_FALSE(mayInherit(each)) << each.name;
    }
}

TEST(MayInherit, GoesThroughRedisAgainTheLaterTheLongerARequestTakes)
{
    EXPECT_EQ(longestInheritance(0us), 10ms);
    EXPECT_EQ(longestInheritance(200us), 10ms);
    EXPECT_EQ(longestInheritance(5ms), 50ms);
    EXPECT_EQ(longestInheritance(1s), 100ms);
}

class PassedOn : public ::testing::Test {
protected:
    using Flow = std::unique_ptr<AcquireFlow>;

    Flow flow(std::uint64_t thread)
    {
        auto made =
            std::make_unique<AcquireFlow>(*core, *lock, core->takeHold(*lock, thread, Lane::commands), order, nullptr);
        made->look();
        return made;
    }
    /// A hold, granted by Redis, and another thread that waits for its end.
    PassedOn()
    {
        Flow first = flow(1);
        Outcome granted;
        granted.replied = true;
        EXPECT_EQ(first->answered(granted).kind, WaitStep::Kind::done);
        EXPECT_EQ(first->conclude(held), std::error_code());
        first.reset();
        (void)lock->takeTurns();
        lock->turn->granted(port->time, port->time);
        next = flow(2);
    }
    ~PassedOn() override
    {
        next.reset();
        (void)core->close(); // as at a client's end: what is held keeps the core
        dropRuns(*core, *port);
    }

    const std::shared_ptr<KeepingPort> port = std::make_shared<KeepingPort>();
    static Config observed()
    {
        Config config;
        config.observer = std::make_shared<Observer>();
        return config;
    }
    const Config config = observed();
    const std::shared_ptr<Core> core = std::make_shared<Core>(*port, config, "client", 1);
    const std::shared_ptr<NamedLock> lock = NamedLock::of(port, *core, KindTraits::redisLock, "stock");
    const AcquireOrder order{.wait = waitForever, .lease = keepRenewing, .endedBy = EndedBy::thread, .durability = {}};
    Acquired held;
    Flow next;
};

TEST_F(PassedOn, IsAHolderThatNobodyForcesOut)
{
    core->forces(*lock, "client:4711");
    EXPECT_EQ(core->releasing.endLevel(*held.hold, held.level), Unlocked::passedOn);
    EXPECT_EQ(next->look().kind, WaitStep::Kind::done);
}

TEST_F(PassedOn, IsNoHolderWhoseForcedEndMayStillCome)
{
    core->forces(*lock, core->holderText(*held.hold));
    EXPECT_EQ(core->releasing.endLevel(*held.hold, held.level), Unlocked::unconfirmed);
}

TEST_F(PassedOn, IsReceivedThoughThereIsNoMemoryToTellTheObserver)
{
    port->eventsWithMemory = 1; // for the end of the last caller's hold
    EXPECT_EQ(core->releasing.endLevel(*held.hold, held.level), Unlocked::passedOn);
    EXPECT_EQ(port->woken, 1);
    EXPECT_EQ(next->look().kind, WaitStep::Kind::done);
}

} // namespace
} // namespace redislock::detail
