// Breaks things for some time while several processes work with locks, then tests what they wrote down.
#include "chaos/faults.hpp"
#include "chaos/world.hpp"
#include "history/report.hpp"
#include "support/eventually.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace redislock::test;
using namespace std::chrono_literals;
using history::Op;
using history::Phase;

/// What was injected: how often, and with how many effects.
using Injected = std::map<std::string, std::pair<int, std::size_t>>;

void requireLoad(chaos::World& world)
{
    constexpr double least = 500;
    const Stopwatch watch;
    const auto before = world.operations();
    std::this_thread::sleep_for(2500ms);
    const auto seconds = std::chrono::duration<double>(watch.elapsed()).count();
    const auto load = static_cast<double>(world.operations() - before) / seconds;
    std::cout << "load before the faults  " << std::fixed << std::setprecision(0) << load << " operations/s\n";
    if (load < least) {
        throw history::Refused("less than 500 operations/s before the faults prove nothing");
    }
}

void requireRecovery(chaos::World& world, const std::string& after)
{
    if (const auto missing = world.awaitRecovery(bootTime()); !missing.empty()) {
        throw std::runtime_error("T9: process " + std::to_string(missing.front()) +
                                 " locked and freed nothing after: " + after + "; " + world.stateOf(missing.front()));
    }
}

void inject(chaos::World& world, const chaos::Fault& fault, Injected& injected)
{
    world.recorder().write({.op = Op::fault, .phase = Phase::invoke, .error = fault.name});
    const auto hits = fault.inject(world);
    world.recorder().write(
        {.op = Op::fault, .phase = Phase::ok, .count = static_cast<std::int64_t>(hits), .error = fault.name});
    if (hits == 0) {
        throw history::Refused(std::string("it had no effect: ") + fault.name);
    }
    auto& [times, effects] = injected[fault.name];
    ++times;
    effects += hits;
    requireRecovery(world, fault.name);
    std::this_thread::sleep_for(world.between(0, 300));
}

/// Each fault once, in an order of chance, and again, until the time is over.
Injected breakThings(chaos::World& world, std::chrono::seconds time, const std::string& only)
{
    auto faults = chaos::allFaults();
    std::erase_if(faults, [&](const auto& fault) { return std::string(fault.name).find(only) == std::string::npos; });
    if (faults.empty()) {
        throw std::invalid_argument("no such fault: " + only);
    }
    Injected injected;
    const Stopwatch watch;
    for (std::size_t next = faults.size(); watch.elapsed() < time; ++next) {
        if (next >= faults.size()) {
            std::shuffle(faults.begin(), faults.end(), world.random());
            next = 0;
        }
        inject(world, faults[next], injected);
    }
    return injected;
}

void print(const Injected& injected)
{
    std::cout << "injected                  times  effects\n";
    for (const auto& [name, counts] : injected) {
        std::cout << "  " << std::left << std::setw(32) << name << std::right << std::setw(4) << counts.first
                  << std::setw(8) << counts.second << '\n';
    }
}

void run(const chaos::Plan& plan, std::chrono::seconds time, const std::string& only)
{
    chaos::World world(plan);
    requireRecovery(world, "the start");
    requireLoad(world);
    print(breakThings(world, time, only));
    std::this_thread::sleep_for(4s); // a time without faults, in which everything has to go well
    if (!world.awaitQuiet()) {
        throw std::runtime_error("a process did not come to an end");
    }
    world.finish();
}

/// @return whether no invariant is broken.
bool judge(const std::filesystem::path& folder, const history::Limits& limits)
{
    const auto read = history::understand(history::readHistory(folder));
    const auto report = history::check(read, limits);
    std::cout << history::summaryOf(read, report);
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < std::min(most, report.violations.size()); ++i) {
        std::cout << history::textOf(read, report.violations[i]);
        std::ofstream(folder / ("violation-" + std::to_string(i + 1) + ".svg"))
            << history::timelineSvg(read, report.violations[i]);
    }
    return report.violations.empty();
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Several processes work with locks of a server that is killed, frozen and cut off, and are killed and "
        "stopped themselves; at the end their histories are tested. Exit status: 0 if no invariant is broken."};
    chaos::Plan plan;
    plan.seed = std::random_device{}();
    plan.folder = std::filesystem::temp_directory_path() / ("redislock-chaos-" + std::to_string(::getpid()));
    plan.worker = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "redislock_chaos_worker";
    int seconds = 60;
    bool keep = false;
    std::string only;
    history::Limits limits;
    app.add_option("--seconds", seconds, "How long things are broken")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    app.add_option("--seed", plan.seed, "Of the order and the size of the faults (default: by chance)");
    app.add_option("--processes", plan.processes)->capture_default_str()->check(CLI::Range(1, 16));
    app.add_option("--threads", plan.threads, "In each process")->capture_default_str()->check(CLI::Range(1, 64));
    app.add_option("--only", only, "Only faults whose name contains this");
    app.add_option("--hand-overs", limits.leastHandOvers, "Refuse a run with fewer changes of holder")
        ->capture_default_str();
    app.add_option("--folder", plan.folder, "Of the histories (default: a temporary one)");
    app.add_flag("--keep", keep, "Keep the histories of a run in which nothing was found");
    CLI11_PARSE(app, argc, argv);
    std::cout << "seed " << plan.seed << std::endl; // NOLINT: before anything can go wrong
    bool good = false;
    try {
        std::filesystem::create_directories(plan.folder);
        run(plan, std::chrono::seconds(seconds), only);
        good = judge(plan.folder, limits);
    } catch (const std::exception& error) {
        std::cout << "failed: " << error.what() << '\n';
    }
    if (good && !keep) {
        std::filesystem::remove_all(plan.folder);
    } else {
        std::cout << "histories: " << plan.folder.string() << '\n';
    }
    return good ? 0 : 1;
}
