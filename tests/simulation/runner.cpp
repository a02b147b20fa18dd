#include "simulation/runner.hpp"

#include "simulation/cluster_world.hpp"
#include "simulation/counter_world.hpp"
#include "simulation/group_world.hpp"
#include "simulation/mixed_queue_world.hpp"
#include "simulation/replica_world.hpp"
#include "simulation/route_world.hpp"
#include "simulation/world.hpp"
#include "support/interruption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace redislock::simulation {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t enoughForAll =
    30'000; ///< enough seeds for every fault to hit every state: the rarest hit comes in 3 000

constexpr std::uint64_t enoughForKinds = 100; ///< enough seeds for every kind of lock to be held

double secondsSince(Clock::time_point begin)
{
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The population of a seed's world.
Population populationOf(std::uint64_t seed)
{
    using enum Population;
    constexpr Population each[] = {counters, locks,    routes,   locks, counters, locks, groups, locks,
                                   counters, replicas, clusters, locks, counters, locks, groups, mixedQueue};
    return each[seed % std::size(each)];
}

std::unique_ptr<Simulated> worldOf(LuaRuntime& lua, std::uint64_t seed, bool traced)
{
    switch (populationOf(seed)) {
    case Population::clusters:
        return std::make_unique<ClusterWorld>(seed, traced);
    case Population::counters:
        return std::make_unique<CounterWorld>(lua, seed, traced);
    case Population::groups:
        return std::make_unique<GroupWorld>(lua, seed, traced);
    case Population::mixedQueue:
        return std::make_unique<MixedQueueWorld>(lua, seed, traced);
    case Population::replicas:
        return std::make_unique<ReplicaWorld>(lua, seed, traced);
    case Population::routes:
        return std::make_unique<RouteWorld>(seed, traced);
    case Population::locks:
        break;
    }
    return std::make_unique<World>(lua, seed, traced);
}

/// The last lines of a trace, which lead to the failure.
std::string_view lastLines(std::string_view text, std::size_t lines)
{
    auto from = text.size();
    for (std::size_t i = 0; i <= lines && from != std::string_view::npos && from > 0; ++i) {
        from = text.rfind('\n', from - 1);
    }
    return from == std::string_view::npos || from == 0 ? text : text.substr(from + 1);
}

/// The state that the workers share.
struct Campaign {
    explicit Campaign(const Options& o) : options(o), next(o.first) {}

    /// The next seed; none when the campaign is over. A seed that was taken is run to its end: all seeds before `next`
    /// were run.
    std::optional<std::uint64_t> take()
    {
        const std::lock_guard lock(mutex);
        while (options.only && populationOf(next) != *options.only) {
            ++next;
        }
        return isOver() ? std::nullopt : std::optional(next++);
    }

    [[nodiscard]] bool isOver() const
    {
        if (failed || test::Interruption::isAsked()) {
            return true;
        }
        if (options.soakMinutes > 0) {
            return secondsSince(begin) >= options.soakMinutes * 60;
        }
        return next - options.first >= options.seeds || (options.seconds > 0 && secondsSince(begin) >= options.seconds);
    }

    const Options& options;
    const Clock::time_point begin = Clock::now();
    std::mutex mutex; ///< of what follows
    std::uint64_t next;
    bool failed = false;
    Statistics total;
    std::vector<std::uint64_t> operations, faults; ///< of each seed
    std::uint64_t failedSeed = 0;
    std::string failure;
    double told = 0;
};

void note(Campaign& campaign, const Statistics& statistics)
{
    const std::lock_guard lock(campaign.mutex);
    campaign.total.add(statistics);
    campaign.operations.push_back(statistics.operations);
    campaign.faults.push_back(statistics.faults);
    const double seconds = secondsSince(campaign.begin);
    if (seconds - campaign.told >= 10) {
        campaign.told = seconds;
        fmt::print(stderr, "{:.0f} s: {} seeds (from {} on), {} operations, {} faults hit\n", seconds,
                   campaign.operations.size(), campaign.options.first, campaign.total.operations,
                   campaign.total.faults);
    }
}

void work(Campaign& campaign)
{
    LuaRuntime lua;
    while (const auto seed = campaign.take()) {
        try {
            const auto world = worldOf(lua, *seed, false);
            world->run();
            note(campaign, world->statistics());
        } catch (const std::exception& error) {
            const std::lock_guard lock(campaign.mutex);
            if (!campaign.failed || *seed < campaign.failedSeed) {
                campaign.failed = true;
                campaign.failedSeed = *seed;
                campaign.failure = error.what();
            }
        }
    }
}

std::uint64_t median(std::vector<std::uint64_t> values)
{
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Prints how often each fault hit each state. @return how many possible hits did not happen.
std::size_t printHits(const Statistics& total)
{
    std::size_t missing = 0;
    std::string reasons;
    fmt::print("{:<18}", "hits");
    for (const auto& name : situationNames) {
        fmt::print("{:>20}", name);
    }
    fmt::print("\n");
    for (std::size_t i = 0; i < faultCount; ++i) {
        fmt::print("{:<18}", faultNames[i]);
        for (std::size_t j = 0; j < situationCount; ++j) {
            const auto reason = impossible(static_cast<Fault>(i), static_cast<Situation>(j));
            reason.empty() ? fmt::print("{:>20}", total.hits[i][j]) : fmt::print("{:>20}", "-");
            missing += reason.empty() && total.hits[i][j] == 0 ? 1 : 0;
            if (!reason.empty()) {
                reasons += fmt::format("  {} x {}: {}\n", faultNames[i], situationNames[j], reason);
            }
        }
        fmt::print("\n");
    }
    fmt::print("cannot occur (-):\n{}", reasons);
    return missing;
}

/// Prints how often each kind was held. @return how many kinds never were.
std::size_t printKinds(const Statistics& total)
{
    std::string text;
    for (std::size_t i = 0; i < kindCount; ++i) {
        text += fmt::format("{} {} {}", i == 0 ? "" : ",", kindNames[i], total.held[i]);
    }
    fmt::print("held:{}\n", text);
    return static_cast<std::size_t>(std::count(total.held.begin(), total.held.end(), 0U));
}

/// Prints how often each event of runs with replicas came. @return how many never did.
std::size_t printReplicaEvents(const Statistics& total)
{
    std::string text;
    for (std::size_t i = 0; i < replicaEventCount; ++i) {
        text += fmt::format("{} {} {}", i == 0 ? "" : ",", replicaEventNames[i], total.replicas[i]);
    }
    fmt::print("with replicas:{}\n", text);
    return static_cast<std::size_t>(std::ranges::count(total.replicas, 0U));
}

void printSummary(const Campaign& campaign)
{
    const auto seeds = campaign.operations.size();
    if (seeds == 0) {
        return fmt::print("no seed was run to its end\n");
    }
    fmt::print("seeds {} to {}: {} in {:.1f} s: {} operations (median {}), {} faults hit (median {}), {} grants, "
               "{} hand-overs, {} passings, {} events\n",
               campaign.options.first, campaign.next - 1, seeds, secondsSince(campaign.begin),
               campaign.total.operations, median(campaign.operations), campaign.total.faults, median(campaign.faults),
               campaign.total.grants, campaign.total.handOvers, campaign.total.passings, campaign.total.events);
}

/// Runs the seed that failed again, for the end of its trace.
void printFailure(const Campaign& campaign)
{
    LuaRuntime lua;
    const auto world = worldOf(lua, campaign.failedSeed, true);
    try {
        world->run();
    } catch (const std::exception&) { // as before
        fmt::print("{}", lastLines(world->trace().text(), 60));
    }
    fmt::print(
        "{} seeds from {} on broke no rule\nseed {} FAILED: {}\nrepeat it with: ./tests/run simulation --seed {}\n",
        campaign.operations.size(), campaign.options.first, campaign.failedSeed, campaign.failure, campaign.failedSeed);
}

} // namespace

int runOne(std::uint64_t seed, bool trace)
{
    LuaRuntime lua;
    const auto world = worldOf(lua, seed, trace);
    int status = 0;
    std::string failure;
    try {
        world->run();
    } catch (const Violation& violation) {
        status = 1;
        failure = violation.what();
    }
    fmt::print("{}", world->trace().text());
    if (status != 0) {
        fmt::print("seed {} FAILED: {}\n", seed, failure);
    } else {
        fmt::print("seed {}: {} operations, {} grants, {} faults hit, {} events\n", seed,
                   world->statistics().operations, world->statistics().grants, world->statistics().faults,
                   world->statistics().events);
    }
    return status;
}

int runMany(const Options& options)
{
    const test::Interruption interruption;
    Campaign campaign(options);
    std::vector<std::thread> workers;
    for (unsigned i = std::max(std::thread::hardware_concurrency(), 1U); i > 0; --i) {
        workers.emplace_back([&campaign] { work(campaign); });
    }
    for (auto& worker : workers) {
        worker.join();
    }
    if (campaign.failed) {
        printFailure(campaign);
        return 1;
    }
    const auto missing = printHits(campaign.total);
    const auto idle = printKinds(campaign.total);
    const auto unseen = printReplicaEvents(campaign.total);
    printSummary(campaign);
    const bool isAll = !options.only; // some hits are impossible in other populations
    if (isAll && idle > 0 && campaign.operations.size() >= enoughForKinds) {
        fmt::print("{} kinds of lock were never held\n", idle);
        return 1;
    }
    if (isAll && campaign.total.passings == 0 && campaign.operations.size() >= enoughForKinds) {
        fmt::print("no hold was ever passed on\n");
        return 1;
    }
    const bool hasReplicas = isAll || options.only == Population::replicas;
    const auto enoughForReplicas = isAll ? enoughForAll : enoughForKinds;
    if (hasReplicas && unseen > 0 && campaign.operations.size() >= enoughForReplicas) {
        fmt::print("{} events of replicas never came\n", unseen);
        return 1;
    }
    if (isAll && missing > 0 && campaign.operations.size() >= enoughForAll) {
        fmt::print("{} faults never hit a state that they can hit\n", missing);
        return 1;
    }
    if (test::Interruption::isAsked()) {
        fmt::print("interrupted\n");
        return test::Interruption::exitStatus();
    }
    return 0;
}

} // namespace redislock::simulation
