// Injects faults for some time while several processes work with locks, then checks the histories of these processes.
#include "chaos/failovers.hpp"
#include "chaos/faults.hpp"
#include "chaos/habits.hpp"
#include "chaos/world.hpp"
#include "history/report.hpp"
#include "support/eventually.hpp"
#include "support/interruption.hpp"
#include "support/packets.hpp"

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

using chaos::Broken;

/// The options of the program.
struct Order {
    chaos::Plan plan;
    int seconds = 60;
    std::string only;
    double load = 500;
    bool keep = false;
    bool failOvers = false;
    bool inCluster = false;
    history::Limits limits;
};

using chaos::Injected;

void requireLoad(chaos::World& world, double least)
{
    const Stopwatch watch;
    const auto before = world.operations();
    std::this_thread::sleep_for(2500ms);
    const auto seconds = std::chrono::duration<double>(watch.elapsed()).count();
    const auto load = static_cast<double>(world.operations() - before) / seconds;
    std::cout << "load before the faults  " << std::fixed << std::setprecision(0) << load << " operations/s\n";
    if (load < least) {
        throw history::Refused("less than " + std::to_string(static_cast<std::uint64_t>(least)) +
                               " operations/s before the faults prove nothing");
    }
}

void requireRecovery(chaos::World& world, const std::string& after)
{
    if (const auto missing = world.awaitRecovery(bootTime()); !missing.empty()) {
        throw Broken("T9: process " + std::to_string(missing.front()) +
                     " locked and freed nothing, or no group, after: " + after + "; " + world.stateOf(missing.front()));
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

/// Nothing can be learnt from the histories of such a run.
bool mustFail(const std::string& only)
{
    const auto& faults = chaos::impossibleFaults();
    return std::any_of(faults.begin(), faults.end(), [&](const auto& fault) { return only == fault.name; });
}

std::vector<chaos::Fault> chosenFaults(const std::string& only, bool withPackets)
{
    auto all = mustFail(only) ? chaos::impossibleFaults() : chaos::faults();
    if (!mustFail(only)) {
        all.insert(all.end(), chaos::groupFaults().begin(), chaos::groupFaults().end());
    }
    if (withPackets) {
        all.insert(all.end(), chaos::packetFaults().begin(), chaos::packetFaults().end());
    }
    std::erase_if(all, [&](const auto& fault) { return std::string(fault.name).find(only) == std::string::npos; });
    if (all.empty()) {
        throw std::invalid_argument("no such fault: " + only);
    }
    return all;
}

/// A run of at least this time has each fault at least once.
constexpr auto longRun = 60s;

/// Injects each fault once, in random order, and again, until the time is over or the user interrupts.
void breakThings(chaos::World& world, std::vector<chaos::Fault> faults, std::chrono::seconds time, Injected& injected)
{
    const Stopwatch watch;
    auto told = 0s;
    const auto isOver = [&] { return watch.elapsed() >= time && (time < longRun || injected.size() == faults.size()); };
    for (std::size_t next = faults.size(); !isOver() && !Interruption::isAsked(); ++next) {
        if (next >= faults.size()) {
            std::shuffle(faults.begin(), faults.end(), world.random());
            next = 0;
        }
        inject(world, faults[next], injected);
        if (const auto now = std::chrono::floor<std::chrono::seconds>(watch.elapsed()); now >= told + 10s) {
            told = now;
            std::cerr << now.count() << " s: " << injected.size() << " of " << faults.size() << " kinds of faults, "
                      << world.operations() << " operations\n";
        }
    }
}

void print(const Injected& injected, const char* what = "effects")
{
    std::cout << "injected                          times  " << what << '\n';
    for (const auto& [name, counts] : injected) {
        std::cout << "  " << std::left << std::setw(32) << name << std::right << std::setw(4) << counts.first
                  << std::setw(10) << counts.second << '\n';
    }
}

/// @return whether the run was completed.
bool run(const Order& order, bool withPackets)
{
    Injected injected;
    chaos::World world(order.plan);
    try {
        requireRecovery(world, "the start");
        requireLoad(world, order.load);
        breakThings(world, chosenFaults(order.only, withPackets), std::chrono::seconds(order.seconds), injected);
    } catch (const std::exception&) {
        print(injected);
        if (!Interruption::isAsked()) { // Ctrl-C ends the server and the processes too
            throw;
        }
        return false;
    }
    print(injected);
    if (Interruption::isAsked()) {
        return false;
    }
    std::this_thread::sleep_for(4s); // a time without faults, in which everything has to work
    if (!world.awaitQuiet()) {
        if (Interruption::isAsked()) {
            return false;
        }
        throw Broken("T9: a process did not come to an end");
    }
    world.finish();
    return true;
}

/// The same with fail-overs.
bool runFailOvers(const Order& order, bool withPackets)
{
    Injected injected;
    const std::chrono::seconds time(order.seconds);
    try {
        order.inCluster ? chaos::failOverCluster(order.plan, time, order.only, withPackets, injected)
                        : chaos::failOverSentinels(order.plan, time, order.only, injected);
    } catch (const std::exception&) {
        print(injected, "fail-overs");
        if (!Interruption::isAsked()) {
            throw;
        }
        return false;
    }
    print(injected, "fail-overs");
    return !Interruption::isAsked();
}

/// @return whether no invariant is broken.
bool judge(const std::filesystem::path& folder, const history::Limits& limits)
{
    const auto [read, report] = history::judge(history::readHistory(folder), limits);
    std::cout << history::summaryOf(read, report);
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < std::min(most, report.violations.size()); ++i) {
        std::cout << history::textOf(read, report.violations[i]);
        std::ofstream(folder / ("violation-" + std::to_string(i + 1) + ".svg"))
            << history::timelineSvg(read, report.violations[i]);
    }
    return report.violations.empty();
}

/// The exit status: 0, or 1 when an invariant is broken, 2 when the run proves nothing, 130 after Ctrl-C.
int obey(const Order& order)
{
    const auto why = enterNetworkOfItsOwn(); // before the process has threads
    if (!why.empty()) {
        std::cout << "no packets are dropped, half-open links are the proxy's alone: " << why << std::endl;
    }
    const Interruption interruption;
    const Stopwatch watch;
    int status = 2;
    try {
        std::filesystem::create_directories(order.plan.folder);
        if (!std::filesystem::is_empty(order.plan.folder)) {
            throw std::invalid_argument(order.plan.folder.string() + " is not empty");
        }
        const bool isOfFailOvers = order.failOvers || order.inCluster;
        if (isOfFailOvers ? runFailOvers(order, why.empty()) : run(order, why.empty())) {
            status = judge(order.plan.folder, order.limits) ? 0 : 1;
        } else {
            status = Interruption::exitStatus();
            std::cout << "interrupted after " << watch.elapsedMs().count() / 1000 << " s; nothing was judged\n";
        }
    } catch (const Broken& error) {
        status = 1;
        std::cout << "broken: " << error.what() << '\n';
    } catch (const history::Refused& error) {
        std::cout << "refused: " << error.what() << '\n';
    } catch (const std::exception& error) {
        std::cout << "failed: " << error.what() << '\n';
    }
    if (status == 1) {
        std::cout << "repeat the choice of faults with: ./tests/run chaos "
                  << (order.inCluster   ? "--cluster "
                      : order.failOvers ? "--failovers "
                                        : "")
                  << "--seconds " << order.seconds << " --seed " << order.plan.seed << '\n';
    }
    return status;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Several processes work with locks of a server that is killed, frozen and cut off, and are killed and "
                 "stopped themselves; at the end their histories are tested. Exit status: 0 if no invariant is "
                 "broken, 1 if one is, 2 if the run proves nothing."};
    Order order;
    auto& plan = order.plan;
    plan.seed = std::random_device{}();
    plan.folder = std::filesystem::temp_directory_path() / ("redislock-chaos-" + std::to_string(::getpid()));
    const auto temporary = plan.folder;
    order.limits.kinds = chaos::otherKinds;
    order.limits.kinds.insert(order.limits.kinds.end(), {"permit", "semaphore", "latch", "red", "multi"});
    plan.worker = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "redislock_chaos_worker";
    app.add_option("--seconds", order.seconds, "How long things are broken; a minute or more: until each fault came")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    app.add_option("--seed", plan.seed, "Of the order and the size of the faults (default: by chance)");
    app.add_option("--processes", plan.processes)->capture_default_str()->check(CLI::Range(1, 16));
    app.add_option("--threads", plan.threads, "In each process")->capture_default_str()->check(CLI::Range(1, 64));
    app.add_option("--only", order.only, "Only faults whose name contains this");
    app.add_option("--load", order.load, "Refuse a run with fewer operations/s before the faults")
        ->capture_default_str();
    app.add_option("--hand-overs", order.limits.leastHandOvers, "Refuse a run with fewer changes of holder")
        ->capture_default_str();
    app.add_flag("--failovers", order.failOvers,
                 "Of a master with two replicas that Sentinels watch: fail-overs, and what leads to them");
    app.add_flag("--cluster", order.inCluster,
                 "Of a cluster of three masters with a replica each: fail-overs, and slots that move")
        ->excludes("--failovers");
    app.add_option("--redisson", plan.redisson, "In a cluster: the folder of the driver of Redisson, which takes part")
        ->needs("--cluster")
        ->check(CLI::ExistingDirectory);
    app.add_option("--folder", plan.folder, "Of the histories (default: a temporary one)");
    app.add_flag("--keep", order.keep, "Keep the histories of a run in which nothing was found");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (order.failOvers || order.inCluster) {
        order.limits.kinds = {"nonReentrant", "fenced", "fair"};
    }
    std::cout << "seed " << plan.seed << std::endl; // NOLINT: before anything can go wrong
    const int status = obey(order);
    if ((status == 1 && !mustFail(order.only)) || order.keep) {
        std::cout << "histories: " << plan.folder.string() << '\n';
    } else if (plan.folder == temporary) {
        std::filesystem::remove_all(plan.folder);
    }
    return status;
}
