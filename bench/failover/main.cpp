/// @file
/// How long nobody gets a lock when another server becomes the master: this library, and Redisson beside it.
#include "failover/subjects.hpp"
#include "statistics.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

namespace {

using namespace redislock::bench;
using namespace std::chrono_literals;

constexpr auto never = std::numeric_limits<double>::infinity();
constexpr auto limit = 15s; ///< a client that has no lock so long after the fault is not waited for

struct Settings {
    int rounds = 5;
    std::vector<std::string> faults{std::begin(masterFaults), std::end(masterFaults)};
    std::size_t held = 100;
    bool isApart = false;
    int waitMs = 0;
    std::string redisson;
    unsigned seed = std::random_device()();
    std::string tsvFile;
};

/// The figures of all rounds of a fault, by name.
using Figures = std::map<std::string_view, std::vector<double>>;

/// What is printed, in this order: seconds, but for the whole numbers.
constexpr std::pair<std::string_view, std::string_view> columns[] = {
    {"writable", "the new master takes a write, after the fault"},
    {"named", "a Sentinel names it, or the address leads to it, after the fault"},
    {"gap", "redislock: longest time between two locks"},
    {"next", "redislock: from writable and named to the next lock"},
    {"judged", "redislock: from writable and named to the last verdict on a hold"},
    {"lost", "redislock: holds lost"},
    {"errors", "redislock: calls that failed"},
    {"redisson gap", "Redisson: longest time between two locks"},
    {"redisson next", "Redisson: from writable and named to the next lock"},
    {"redisson errors", "Redisson: calls that failed"},
};

void measure(const std::string& fault, const Settings& settings, RedissonLoop* redisson, std::mt19937& random,
             Figures& all)
{
    Deployment deployment(fault);
    Ours ours(redislock::Config::fromUrl(deployment.url()), settings.held, settings.isApart,
              std::chrono::milliseconds(settings.waitMs));
    const auto theirs = redisson != nullptr ? redisson->begin(deployment.kind(), deployment.ports()) : nullptr;
    // The clients look for the master once a second: the fault comes at any time of that.
    const auto ready = Clock::now() + 1500ms + std::chrono::milliseconds(random() % 1000);
    while (ours.successes.firstFrom(ready) == Time{} || (theirs && theirs->firstFrom(ready) == Time{})) {
        if (Clock::now() > ready + 30s) {
            throw std::runtime_error("no lock before the fault");
        }
        std::this_thread::sleep_for(1ms);
    }
    // Watched at least while an old master that lives may do harm: Sentinels send it away after 11 s.
    const Seconds shortestWatch = fault == "switchover" ? 12.5s : fault == "stop" || fault == partition ? 6.5s : 0s;
    const bool keepsMaster = fault == otherShard; // the names do: the round lasts until each held lock was renewed
    deployment.prepare(settings.held);
    ours.verdicts->isWatching = true;
    ours.moves->isWatching = true;
    const auto faultAt = Clock::now();
    deployment.cause();

    Time reachable{}; // writable and named
    Time next{};      // our first lock from the new master
    Time judged{};    // in a cluster the first one: renewals' connections are made to other nodes too
    const auto isDone = [&] {
        const Time writable = deployment.writableAt;
        const Time named = deployment.namedAt;
        reachable = writable == Time{} || named == Time{} ? Time{} : std::max(writable, named);
        const Time moved = keepsMaster ? reachable : Time(ours.moves->movedAt);
        next = moved == Time{} ? moved : ours.successes.firstFrom(std::max(moved, reachable));
        judged = judged == Time{} || deployment.kind() != "cluster" ? Time(ours.verdicts->judgedAt) : judged;
        return reachable != Time{} && next != Time{} && judged != Time{} &&
               (!theirs || theirs->firstFrom(reachable) != Time{}) && Clock::now() - faultAt > shortestWatch;
    };
    while (!isDone() && Clock::now() - faultAt < limit) {
        std::this_thread::sleep_for(5ms);
        Clock::now() - faultAt > 5s ? deployment.resume() : void();
    }
    std::this_thread::sleep_for(500ms); // whether it stays so
    isDone();
    redisson != nullptr ? redisson->end() : void();
    if (reachable == Time{}) {
        throw std::runtime_error("there is no new master");
    }
    const auto seconds = [](Time from, Time to) { return to == Time{} ? never : Seconds(to - from).count(); };
    all["writable"].push_back(seconds(faultAt, deployment.writableAt));
    all["named"].push_back(seconds(faultAt, deployment.namedAt));
    all["gap"].push_back(next == Time{} ? never : ours.successes.longestGap(faultAt).second.count());
    all["next"].push_back(seconds(reachable, next));
    if (!keepsMaster) {
        all["judged"].push_back(seconds(reachable, judged));
    }
    all["lost"].push_back(ours.verdicts->lostCount);
    all["errors"].push_back(ours.successes.errors);
    if (theirs) { // where the old master lives, the lock after the longest gap is the first one from the new master
        const auto first = theirs->firstFrom(reachable);
        const auto [end, gap] = theirs->longestGap(faultAt);
        all["redisson gap"].push_back(first == Time{} ? never : gap.count());
        all["redisson next"].push_back(
            seconds(reachable, first == Time{} || keepsMaster ? first : std::max(first, end)));
        all["redisson errors"].push_back(theirs->errors);
    }
}

std::string text(std::string_view figure, double value)
{
    const bool isNumber = figure == "lost" || figure.ends_with("errors");
    return value == never ? "never" : isNumber ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value);
}

void print(std::string_view fault, const Figures& all, bool isWaiting, std::FILE* tsv)
{
    fmt::print("\n{:<68} {:>9} {:>9} {:>9}\n", fault, "median", "least", "worst");
    for (const auto& [figure, title] : columns) {
        if (!all.contains(figure)) {
            continue;
        }
        const auto& values = all.at(figure);
        const auto [least, worst] = std::ranges::minmax(values);
        fmt::print("{:<68} {:>9} {:>9} {:>9}\n", title, text(figure, median(values)), text(figure, least),
                   text(figure, worst));
        if (tsv != nullptr) {
            fmt::print(tsv, "{}\t{}\t{}\t{}\t{}\n", fault, figure, median(values), least, worst);
        }
    }
    const auto goal = [](std::string_view what, double value, double most) {
        fmt::print("goal: {:<62} {:>9} {:>9}\n", what, text("", most), value <= most ? "reached" : "MISSED");
    };
    goal("the next lock, median at most", median(all.at("next")), 0.3);
    goal("the next lock, worst at most", std::ranges::max(all.at("next")), 0.6);
    if (all.contains("judged")) {
        goal("the last verdict, median at most", median(all.at("judged")), 0.5);
    } else {
        isWaiting ? goal("calls that failed, worst at most", std::ranges::max(all.at("errors")), 0) : void();
        goal("holds lost, worst at most", std::ranges::max(all.at("lost")), 0);
    }
    if (all.contains("redisson gap")) {
        goal("the gap, median at most Redisson's", median(all.at("gap")), median(all.at("redisson gap")));
    }
    std::fflush(stdout);
}

void run(const Settings& settings)
{
    std::optional<RedissonLoop> redisson;
    if (!settings.redisson.empty()) {
        redisson.emplace(settings.redisson);
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> tsv(
        settings.tsvFile.empty() ? nullptr : std::fopen(settings.tsvFile.c_str(), "w"), &std::fclose);
    std::mt19937 random(settings.seed);
    fmt::print("Seconds; {} rounds; {} locks held; never: not within 15 s of the fault; seed {}.\n", settings.rounds,
               settings.held, settings.seed);
    for (const auto& fault : settings.faults) {
        Figures all;
        for (int round = 1; round <= settings.rounds; ++round) {
            fmt::print(stderr, "{}, round {} of {}\n", fault, round, settings.rounds);
            measure(fault, settings, redisson ? &*redisson : nullptr, random, all);
            for (const auto& [figure, values] : all) {
                fmt::print(stderr, "  {} {}", figure, text(figure, values.back()));
            }
            fmt::print(stderr, "\n");
        }
        print(fault, all, settings.waitMs > 0, tsv.get());
    }
}

} // namespace

int main(int argc, char** argv)
{
    std::signal(SIGPIPE, SIG_IGN); // hiredis writes to connections that the server may have closed
    Settings settings;
    CLI::App app(
        "Measures for how long nobody gets a lock when another server becomes the master: a master, two\n"
        "replicas and three Sentinels (down-after 500 ms, failover-timeout 3 s), or a master and two replicas\n"
        "behind one address, or a cluster of three masters with a replica each; made anew for each round.\n"
        "For cluster-partition the process enters a network of its own, in which packets are dropped with nft.\n"
        "Somebody locks and unlocks all the time, a new name each time, since the old master may have\n"
        "acknowledged a release that is lost.");
    app.option_defaults()->always_capture_default();
    app.add_option("--rounds", settings.rounds, "of each fault")->check(CLI::Range(1, 1000));
    app.add_option("--fault", settings.faults, "what happens to the master; may be given more than once")
        ->check(CLI::IsMember(settings.faults));
    app.add_option("--held", settings.held, "locks that are only held")->check(CLI::Range(1, 1'000'000));
    app.add_flag("--apart", settings.isApart, "they belong to a client of their own, which does nothing else");
    app.add_option("--wait", settings.waitMs, "ms that tryLock() of this library waits for; 0: one attempt");
    app.add_option("--redisson", settings.redisson, "the folder of Redisson and its driver: also measures that");
    app.add_option("--seed", settings.seed, "of the moments at which the faults come; by default random");
    app.add_option("--tsv-file", settings.tsvFile, "also writes: fault, figure, median, least, worst");
    try {
        app.parse(argc, argv);
        if (std::ranges::count(settings.faults, partition) > 0) { // before there are threads and other processes
            if (const auto why = redislock::test::enterNetworkOfItsOwn(); !why.empty()) {
                fmt::print("{} is left out: {}\n", partition, why);
                std::erase(settings.faults, partition);
            }
        }
        run(settings);
        return 0;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "redislock_failover: {}\n", error.what());
        return 1;
    }
}
