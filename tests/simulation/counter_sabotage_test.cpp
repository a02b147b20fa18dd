// Whole runs of semaphores and latches with an error in them: S11, S12, R1. Also: one seed gives one run.
#include "simulation/counter_world.hpp"
#include "simulation/whole_runs.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;

Rules countersBrokenWith(const CounterSabotage& sabotage)
{
    auto rules = rulesBrokenWith<CounterWorld>(40, sabotage);
    rules.erase("none"); // not every run contains the sabotaged object
    return rules;
}

/// Applies @p deed to every semaphore, or to every latch.
template <class Deed>
CounterSabotage::Deed toEach(CounterKind kind, Deed deed)
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

using enum CounterKind;

TEST(CounterSabotage, RunsWithoutItAreGood)
{
    EXPECT_EQ(countersBrokenWith({}), Rules());
    EXPECT_EQ(countersBrokenWith({.whenCalm = [](const auto&) {}}), Rules());
}

TEST(CounterSabotage, APermitTooManyBreaksS11)
{
    EXPECT_EQ(countersBrokenWith({.whenCalm = toEach(semaphore,
                                                     [](const auto& hands, const std::string& name) {
                                                         hands.server.keyspace().execute({"INCRBY", name, "1"});
                                                     })}),
              Rules{"S11"});
}

TEST(CounterSabotage, APermitThatIsLostBreaksS11)
{
    EXPECT_EQ(countersBrokenWith({.whenCalm = toEach(permitExpirableSemaphore,
                                                     [](const auto& hands, const std::string& name) {
                                                         hands.server.keyspace().execute({"DECR", name});
                                                     })}),
              Rules{"S11"});
}

TEST(CounterSabotage, ALatchThatNobodyCountedBreaksS12)
{
    EXPECT_EQ(countersBrokenWith({.whenCalm = toEach(countDownLatch,
                                                     [](const auto& hands, const std::string& name) {
                                                         hands.server.keyspace().execute({"SET", name, "1000"});
                                                     })}),
              Rules{"S12"});
}

TEST(CounterSabotage, ARequestThatIsLeftBreaksR1)
{
    const auto leave = [](const CounterSabotage::Hands& hands) {
        const auto counter = hands.client.counter(countDownLatch, "gate");
        counter->askUnawaited(detail::getRequest(*counter).call);
    };
    EXPECT_EQ(countersBrokenWith({.beforeResidue = leave}), Rules{"R1"});
}

TEST(CounterSabotage, TheSameSeedGivesTheSameTrace)
{
    expectSameTraceOfSameSeed<CounterWorld>();
}

} // namespace
} // namespace redislock::simulation
