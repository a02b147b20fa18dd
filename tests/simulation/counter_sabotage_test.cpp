// Whole runs of semaphores and latches that something is wrong with: S11, S12, R1. And one seed is one run.
#include "simulation/counter_world.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;

/// The rules that some of the first runs break.
std::set<std::string> rulesBrokenWith(const CounterSabotage& sabotage)
{
    std::set<std::string> rules;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        LuaRuntime lua;
        rules.insert(ruleBrokenBy([&] { CounterWorld(lua, seed, false, sabotage).run(); }));
    }
    rules.erase("none");
    return rules;
}

/// Does something to every semaphore, or every latch.
template <class Deed>
CounterSabotage::Deed toEach(Counter::Kind kind, Deed deed)
{
    return [kind, deed](const CounterSabotage::Hands& hands) {
        for (const auto& subject : hands.workload.subjects) {
            if (subject.kind == kind) {
                hands.server.keyspace().beginScript(millisecondOf(hands.scheduler.now()));
                deed(hands, subject.name());
            }
        }
    };
}

using Rules = std::set<std::string>;
using enum Counter::Kind;

TEST(CounterSabotage, RunsWithoutItAreGood)
{
    EXPECT_EQ(rulesBrokenWith({}), Rules());
    EXPECT_EQ(rulesBrokenWith({.whenCalm = [](const auto&) {}}), Rules());
}

TEST(CounterSabotage, APermitTooManyBreaksS11)
{
    EXPECT_EQ(rulesBrokenWith({.whenCalm = toEach(semaphore,
                                                  [](const auto& hands, const std::string& name) {
                                                      hands.server.keyspace().execute({"INCRBY", name, "1"});
                                                  })}),
              Rules{"S11"});
}

TEST(CounterSabotage, APermitThatIsLostBreaksS11)
{
    EXPECT_EQ(rulesBrokenWith({.whenCalm = toEach(permitExpirableSemaphore,
                                                  [](const auto& hands, const std::string& name) {
                                                      hands.server.keyspace().execute({"DECR", name});
                                                  })}),
              Rules{"S11"});
}

TEST(CounterSabotage, ALatchThatNobodyCountedBreaksS12)
{
    EXPECT_EQ(rulesBrokenWith({.whenCalm = toEach(countDownLatch,
                                                  [](const auto& hands, const std::string& name) {
                                                      hands.server.keyspace().execute({"SET", name, "1000"});
                                                  })}),
              Rules{"S12"});
}

TEST(CounterSabotage, ARequestThatIsLeftBreaksR1)
{
    const auto leave = [](const CounterSabotage::Hands& hands) {
        auto& counter = hands.client.counter(countDownLatch, "gate");
        hands.client.askUnawaited(counter, {&detail::scripts::counterGet, {}, {}});
    };
    EXPECT_EQ(rulesBrokenWith({.beforeResidue = leave}), Rules{"R1"});
}

TEST(CounterSabotage, TheSameSeedGivesTheSameTrace)
{
    const auto traceOf = [](std::uint64_t seed) {
        LuaRuntime lua;
        CounterWorld world(lua, seed, true);
        world.run();
        return world.trace().text();
    };
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const auto trace = traceOf(seed);
        EXPECT_FALSE(trace.empty());
        EXPECT_TRUE(trace == traceOf(seed)) << "seed " << seed;
    }
}

} // namespace
} // namespace redislock::simulation
