/// @file
/// The common parts of tests of whole runs.
#pragma once

#include "simulation/lua_runtime.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace redislock::simulation {

using Rules = std::set<std::string>;

/// The rules that the first runs break; "none" for a run that breaks none.
template <class World, class Sabotage>
Rules rulesBrokenWith(std::uint64_t seeds, const Sabotage& sabotage)
{
    Rules rules;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        LuaRuntime lua;
        rules.insert(ruleBrokenBy([&] { World(lua, seed, false, sabotage).run(); }));
    }
    return rules;
}

template <class World>
void expectSameTraceOfSameSeed()
{
    const auto traceOf = [](std::uint64_t seed) {
        LuaRuntime lua;
        World world(lua, seed, true);
        world.run();
        return world.trace().text();
    };
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const auto trace = traceOf(seed);
        EXPECT_FALSE(trace.empty());
        EXPECT_TRUE(trace == traceOf(seed)) << "seed " << seed;
    }
}

} // namespace redislock::simulation
