// Runs the simulation over many seeds, or one seed with a trace.
#include "simulation/runner.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv)
{
    using namespace redislock::simulation;
    Options options;
    std::uint64_t seed = 0;
    bool trace = false;
    CLI::App app(
        "Deterministic simulation of redislock: clients, threads, a network and a server, decided by one seed.");
    app.add_option("--seeds", options.seeds, "how many seeds")
        ->envname("REDISLOCK_SIMULATION_SEEDS")
        ->capture_default_str();
    app.add_option("--first", options.first, "the first of them")->take_last()->capture_default_str();
    app.add_option("--seconds", options.seconds, "no new seeds after that time; 0: no limit")->capture_default_str();
    app.add_option("--soak-minutes", options.soakMinutes, "instead of a number of seeds: for that long, with progress");
    const auto* one = app.add_option("--seed", seed, "this one only");
    app.add_flag("--trace", trace, "prints what happens in it");
    CLI11_PARSE(app, argc, argv);
    try {
        return *one ? runOne(seed, trace) : runMany(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    }
}
