/// @file
/// Runs many seeds.
#pragma once

#include <cstdint>
#include <optional>

namespace redislock::simulation {

/// The population of a world, which the seed decides.
enum class Population : std::uint8_t { locks, counters, groups, mixedQueue, routes, clusters, replicas };

struct Options {
    std::uint64_t seeds = REDISLOCK_SIMULATION_SEEDS;
    std::uint64_t first = 1;
    unsigned seconds = 0;
    double soakMinutes = 0;
    std::optional<Population> only{}; ///< only seeds with this population
};

/// Runs one seed. @return the exit status of the program.
int runOne(std::uint64_t seed, bool trace);

/// Runs many seeds on all processors and prints which states the faults hit. The first failure ends the campaign, with
/// its trace and the command that repeats it.
/// @return the exit status of the program: 1 also when some fault never hit some state of a machine.
int runMany(const Options& options);

} // namespace redislock::simulation
