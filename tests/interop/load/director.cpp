// Runs processes of both languages under load, kills some of them, and judges their reports.
#include "interop/kinds.hpp"
#include "interop/load/fleet.hpp"
#include "support/eventually.hpp"
#include "support/interruption.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace redislock::test;
using namespace std::chrono_literals;

std::vector<LoadKind> kinds()
{
    std::vector<LoadKind> all;
    for (const auto& kind : lockKinds) {
        all.push_back({.name = std::string(kind.java), .since = kind.since});
    }
    all.push_back({.name = "readWrite"});
    all.push_back({.name = "semaphore", .permits = 3});
    all.push_back({.name = "permitExpirableSemaphore", .permits = 3});
    all.push_back({.name = "multiLock", .ours = "load:a,load:b,load:c", .theirs = "load:c,load:b,load:a"});
    all.push_back({.name = "redLock", .ours = "load@0,load@1,load@2", .theirs = "load@0,load@1,load@2"});
    return all;
}

struct Order {
    int minutes = 10;
    std::string kind = "all";
    std::uint64_t seed = std::random_device{}();
    FleetSize size;
    double killEvery = 8;
    bool isInCluster = false;
};

/// The sums so far, over all kinds.
struct Sum {
    std::string table;
    std::size_t turns = 0;
    std::size_t kills = 0;
    std::size_t moves = 0;
    std::size_t switchOvers = 0;
    std::size_t violations = 0;
};

void load(Fleet& fleet, const LoadKind& kind, const Order& order, std::chrono::seconds time, std::mt19937_64& random)
{
    const Stopwatch watch;
    // A dead waiter costs a fair queue half a minute.
    const auto every = order.killEvery * (kind.name == "fairLock" ? 4 : 1);
    const auto next = [&] {
        return watch.elapsed() + std::chrono::milliseconds(static_cast<long>(
                                     1000 * std::uniform_real_distribution(0.25 * every, 1.75 * every)(random)));
    };
    auto kill = next();
    auto tell = 10s;
    while (watch.elapsed() < time && !Interruption::isAsked()) {
        fleet.watch();
        if (watch.elapsed() >= kill) {
            fleet.kill(std::uniform_int_distribution<std::size_t>(0, fleet.berths() - 1)(random));
            kill = next();
        }
        if (watch.elapsed() >= tell) {
            std::cerr << kind.name << ": " << watch.elapsed() / 1s << " of " << time / 1s << " s, " << fleet.turns()
                      << " turns, " << fleet.kills() << " kills, " << fleet.violations() << " violations" << std::endl;
            tell = std::chrono::floor<std::chrono::seconds>(watch.elapsed()) + 10s;
        }
        std::this_thread::sleep_for(5ms);
    }
}

/// Runs one kind, and judges it at the end.
void run(const LoadKind& kind, FleetSize size, const Order& order, std::chrono::seconds time, std::mt19937_64& random,
         Sum& sum)
{
    if (order.isInCluster) {
        size.moves = random();
    }
    Fleet fleet(kind, size);
    const auto note = [&] {
        sum.table += fleet.report();
        sum.turns += fleet.turns();
        sum.kills += fleet.kills();
        sum.moves += fleet.mover() ? fleet.mover()->moves() : 0;
        sum.switchOvers += fleet.mover() ? fleet.mover()->switchOvers() : 0;
        sum.violations += fleet.violations();
    };
    try {
        load(fleet, kind, order, time, random);
        if (!Interruption::isAsked()) {
            fleet.end();
        }
    } catch (const std::exception& error) {
        note();
        if (!Interruption::isAsked()) { // Ctrl-C ends the servers and the processes too
            throw;
        }
        return;
    }
    note();
}

int obey(const Order& order, const std::vector<LoadKind>& chosen)
{
    const Interruption interruption;
    std::mt19937_64 random(order.seed);
    Sum sum;
    int status = 0;
    try {
        const auto share = std::chrono::seconds(std::chrono::minutes(order.minutes)) / static_cast<int>(chosen.size());
        for (const auto& kind : chosen) {
            if (Interruption::isAsked()) {
                continue;
            }
            const bool isMeasured = kind.name == "fairLock" || kind.name == "readWrite" || kind.name == "multiLock";
            run(kind, order.size, order, isMeasured ? share / 2 : share, random, sum);
            if (isMeasured && !Interruption::isAsked()) {
                auto alone = order.size;
                alone.isMixed = false;
                run(kind, alone, order, share / 2, random, sum);
            }
        }
    } catch (const std::exception& error) {
        if (!Interruption::isAsked()) {
            std::cout << "failed: " << error.what() << '\n';
        }
        status = 1;
    }
    std::cout << Fleet::heading() << sum.table << sum.turns << " turns, " << sum.kills << " kills, ";
    if (order.isInCluster) {
        std::cout << "moves: " << sum.moves << ", switch-overs: " << sum.switchOvers << ", ";
    }
    std::cout << sum.violations << " violations\n";
    if (Interruption::isAsked()) {
        return Interruption::exitStatus();
    }
    if (sum.turns == 0) {
        std::cout << "nobody came in\n";
        return 1;
    }
    return sum.violations > 0 ? 1 : status;
}

void addLoad(CLI::App& app, Order& order)
{
    app.add_option("--processes", order.size.processes, "Of the library, and of each version of Redisson")
        ->capture_default_str()
        ->check(CLI::Range(1, 8));
    app.add_option("--threads", order.size.threads, "In each process")->capture_default_str()->check(CLI::Range(1, 16));
    app.add_option("--hold", order.size.hold, "Milliseconds inside")->capture_default_str()->check(CLI::Range(0, 1000));
    app.add_option("--pause", order.size.pause, "The longest of the random pauses between turns, in milliseconds")
        ->capture_default_str()
        ->check(CLI::Range(0, 1000));
    app.add_option("--redisson", order.size.redisson, "Only this version (default: all)")
        ->check(CLI::IsMember(redissonVersions()));
    app.add_option("--kill-every", order.killEvery, "Seconds, on average; four times as many for fair locks")
        ->capture_default_str()
        ->check(CLI::Range(1.0, 100000.0));
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Processes of the library and of Redisson use the same objects, and are killed now and then; what they do is "
        "judged: exclusion, the order of fair locks, keys that are left. Exit status: 0 if nothing was violated."};
    Order order;
    const auto all = kinds();
    std::vector<std::string> names{"all"};
    for (const auto& kind : all) {
        names.push_back(kind.name);
    }
    app.add_option("--minutes", order.minutes, "For all kinds together")
        ->capture_default_str()
        ->check(CLI::Range(1, 1440));
    app.add_option("--kind", order.kind, "One kind, or all, one after the other")
        ->capture_default_str()
        ->check(CLI::IsMember(names));
    app.add_option("--seed", order.seed, "Of who is killed, and when (default: by chance)");
    addLoad(app, order);
    app.add_flag(
        "--cluster", order.isInCluster,
        "In a cluster, where the object's slot moves to other masters and replicas take over as planned, again "
        "and again; without redLock, which refuses members in one cluster");
    CLI11_PARSE(app, argc, argv);
    if (order.isInCluster && order.kind == "redLock") {
        std::cerr << "A redLock has no members in one cluster\n";
        return 2;
    }
    std::cout << "seed " << order.seed << std::endl; // NOLINT: before anything can go wrong
    auto chosen = all;
    std::erase_if(chosen, [&](const LoadKind& kind) {
        return order.kind == "all" ? order.isInCluster && kind.name == "redLock" : kind.name != order.kind;
    });
    return obey(order, chosen);
}
