// One number decides everything.
#include "simulation/whole_runs.hpp"
#include "simulation/world.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redislock::simulation {
namespace {

struct Ran {
    std::string trace;
    Statistics statistics;
};

Ran simulate(std::uint64_t seed, bool traced)
{
    LuaRuntime lua;
    World world(lua, seed, traced);
    world.run();
    return {world.trace().text(), world.statistics()};
}

TEST(Replay, TheSameSeedGivesTheSameTrace)
{
    expectSameTraceOfSameSeed<World>();
}

TEST(Replay, AnotherSeedGivesAnotherTrace)
{
    EXPECT_FALSE(simulate(1, true).trace == simulate(2, true).trace);
}

TEST(Replay, ATraceChangesNothing)
{
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Statistics traced = simulate(seed, true).statistics;
        const Statistics silent = simulate(seed, false).statistics;
        EXPECT_EQ(traced.events, silent.events) << "seed " << seed;
        EXPECT_EQ(traced.operations, silent.operations) << "seed " << seed;
        EXPECT_EQ(traced.hits, silent.hits) << "seed " << seed;
    }
}

} // namespace
} // namespace redislock::simulation
