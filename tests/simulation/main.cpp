// Runs the simulation over many seeds, or one seed with a trace.
#include "simulation/runner.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>

int main(int argc, char** argv)
{
    using namespace redislock::simulation;
    Options options;
    std::uint64_t seed = 0;
    bool trace = false;
    CLI::App app(
        "Deterministic simulation of redislock: clients, threads, a network and a server, decided by one seed. "
        "Exit status: 0 no rule was broken, 1 one was, 2 it could not run, 130 Ctrl-C.");
    app.add_option("--seeds", options.seeds, "how many seeds")
        ->envname("REDISLOCK_SIMULATION_SEEDS")
        ->capture_default_str();
    app.add_option("--first", options.first, "the first of them")->take_last()->capture_default_str();
    app.add_option("--seconds", options.seconds, "no new seeds after that time; 0: no limit")->capture_default_str();
    app.add_option("--soak-minutes", options.soakMinutes, "instead of a number of seeds: for that long, with progress")
        ->check(CLI::PositiveNumber);
    app.add_option("--only", options.only,
                   "of those, only the worlds of locks, of counters (semaphores and latches), of groups, of a fair "
                   "queue in which threads of Redisson's wait too (mixed-queue), of the routes to masters that "
                   "Sentinels watch, of the choice of a node of a cluster, or of a master with replicas and fail-overs")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Population>{{"locks", Population::locks},
                                                                              {"counters", Population::counters},
                                                                              {"groups", Population::groups},
                                                                              {"mixed-queue", Population::mixedQueue},
                                                                              {"routes", Population::routes},
                                                                              {"clusters", Population::clusters},
                                                                              {"replicas", Population::replicas}}));
    const auto* one = app.add_option("--seed", seed, "this one only");
    app.add_flag("--trace", trace, "prints what happens in it");
    try {
        app.parse(argc, argv);
        return *one ? runOne(seed, trace) : runMany(options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    }
}
