/// @file
/// Overselling, and how to stop it: several processes sell the same stock, once without a lock and once with a
/// RedisLock.
///
/// Each buyer reads the stock, thinks for a moment and writes back one less. Two buyers that read the same number sell
/// one unit twice. A lock around the three steps lets one buyer at a time do them, whichever process it runs in.
#include "shared/demonstration.hpp"
#include "shared/progress.hpp"
#include "shared/shop.hpp"
#include "shared/workers.hpp"

#include <redislock/redislock.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using example::OpenShop;
using example::Progress;
using example::Shop;
using example::Workers;
using namespace std::chrono_literals;

constexpr int exitOversold = 1;
constexpr int exitInterrupted = 130;

struct Settings {
    long long stock = 200;
    int processes = 4;
    int threads = 4;
    int thinkMs = 10;
    std::vector<std::string> locks{"none", "redislock"};
    std::string url = "redis://127.0.0.1:6379";
};

struct Outcome {
    std::string lock;
    long long stock;
    long long sold;
    long long left;
    double seconds;
    bool complete; ///< no process ended before the stock was sold out

    [[nodiscard]] long long oversold() const { return std::max(0LL, sold - stock); }
    [[nodiscard]] bool wrongFinalStock() const { return left != stock - sold; }
    [[nodiscard]] bool exact() const { return sold == stock && !wrongFinalStock(); }
};

/// One buyer: read, think, write, until nothing is left. @param lock null: the buyer uses no lock.
void buyUntilSoldOut(Shop& shop, const std::string& buyer, std::chrono::milliseconds think,
                     const redislock::RedisLock* lock)
{
    for (;;) {
        const auto held = lock != nullptr ? redislock::LockGuard(*lock) : redislock::LockGuard();
        const auto left = shop.stock();
        if (left <= 0) {
            return;
        }
        std::this_thread::sleep_for(think);
        if (lock != nullptr && !held) {
            continue; // this process was stopped for longer than the lease: another buyer may be changing the stock
        }
        shop.setStock(left - 1);
        shop.recordSale(buyer);
    }
}

/// One process of buyers. Its client is made here, after the fork, since a client does not survive a fork.
void runBuyers(const Settings& settings, const std::string& lockKind, const std::string& prefix, int process)
{
    const auto server = redislock::Config::fromUrl(settings.url);
    const redislock::Client client(server);
    std::vector<std::future<void>> buyers;
    for (int thread = 1; thread <= settings.threads; ++thread) {
        buyers.push_back(std::async(std::launch::async, [&, thread] {
            Shop shop(server, prefix);
            const auto lock = client.getLock(shop.lockName());
            const auto buyer = fmt::format("process {} thread {}", process + 1, thread);
            buyUntilSoldOut(shop, buyer, std::chrono::milliseconds(settings.thinkMs),
                            lockKind == "none" ? nullptr : &lock);
        }));
    }
    for (auto& buyer : buyers) {
        buyer.get();
    }
}

/// Sells one stock out. @return nothing if the user ended the program before that.
std::optional<Outcome> sellOut(const Settings& settings, const std::string& lockKind, Shop& shop,
                               const std::string& prefix)
{
    const OpenShop open(shop, settings.stock);
    Progress progress(lockKind, settings.stock);
    const auto start = std::chrono::steady_clock::now();
    Workers workers(settings.processes, [&](int process) { runBuyers(settings, lockKind, prefix, process); });
    for (auto event = Workers::Event::timeOut; event != Workers::Event::allEnded;) {
        event = workers.wait(50ms);
        if (event == Workers::Event::interrupted) {
            return std::nullopt;
        }
        progress.show(shop.stock(), shop.sold());
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return Outcome{lockKind, settings.stock, shop.sold(), shop.stock(), seconds.count(), !workers.anyFailed()};
}

void printTable(const std::vector<Outcome>& outcomes)
{
    fmt::print("{:<10} {:>7} {:>7} {:>9}   {:<22} {:>8} {:>8}\n", "lock", "stock", "sold", "oversold",
               "wrong final stock", "seconds", "sales/s");
    for (const auto& o : outcomes) {
        const auto wrong = o.wrongFinalStock() ? fmt::format("yes: {}, not {}", o.left, o.stock - o.sold) : "no";
        fmt::print("{:<10} {:>7} {:>7} {:>9}   {:<22} {:>8.2f} {:>8.0f}\n", o.lock, o.stock, o.sold, o.oversold(),
                   wrong, o.seconds, static_cast<double>(o.sold) / o.seconds);
    }
}

std::string whatWasSeen(const Outcome& o, const Settings& settings)
{
    const auto count = settings.processes * settings.threads;
    const auto buyers = fmt::format("{} buyer{} in {} process{}", count, count == 1 ? "" : "s", settings.processes,
                                    settings.processes == 1 ? "" : "es");
    if (o.lock != "none") {
        return o.exact()
                   ? fmt::format("with a RedisLock around the same three steps {} sold exactly {}", buyers, o.sold)
                   : fmt::format("with a RedisLock {} sold {} units of {}", buyers, o.sold, o.stock);
    }
    if (o.oversold() == 0) {
        return fmt::format("without a lock {} oversold nothing this time", buyers);
    }
    return fmt::format(
        "without a lock {} sold {} units of {}, because several read the same number and each wrote back one less",
        buyers, o.sold, o.stock);
}

int report(const std::vector<Outcome>& outcomes, const Settings& settings)
{
    printTable(outcomes);
    std::string sentence;
    for (const auto& outcome : outcomes) {
        sentence += (sentence.empty() ? "" : "; ") + whatWasSeen(outcome, settings);
    }
    sentence.front() = 'W'; // each begins with "with"
    fmt::print("\n{}.\n", sentence);
    const auto broken = [](const Outcome& o) {
        return o.lock != "none" && (o.oversold() > 0 || (o.complete && !o.exact()));
    };
    if (std::ranges::any_of(outcomes, broken)) {
        return exitOversold;
    }
    if (!std::ranges::all_of(outcomes, &Outcome::complete)) {
        fmt::print(stderr, "oversell: a process ended before the stock was sold out; its buyers are missing above\n");
        return example::exitFailed;
    }
    return 0;
}

void announce(const Settings& settings)
{
    fmt::print("Sells {} units to {} processes of {} buyers:", settings.stock, settings.processes, settings.threads);
    const char* then = "";
    for (const auto& lockKind : settings.locks) {
        fmt::print("{} {}", then, lockKind == "none" ? "without a lock" : "with a RedisLock");
        then = ", then";
    }
    fmt::print(".\n\n");
    std::fflush(stdout);
}

int run(const Settings& settings)
{
    announce(settings);
    example::holdSignals();
    std::random_device random;
    const auto prefix = fmt::format("oversell:{:08x}{:08x}:", random(), random()); // so that runs do not collide
    Shop shop(redislock::Config::fromUrl(settings.url), prefix);
    std::vector<Outcome> outcomes;
    for (const auto& lockKind : settings.locks) {
        const auto outcome = sellOut(settings, lockKind, shop, prefix);
        if (!outcome) {
            fmt::print(stderr, "oversell: interrupted; the buyers were ended and the keys removed\n");
            return exitInterrupted;
        }
        outcomes.push_back(*outcome);
    }
    return report(outcomes, settings);
}

void declareOptions(CLI::App& app, Settings& settings)
{
    app.add_option("--stock", settings.stock, "units to sell")->check(CLI::Range(1, 1'000'000));
    app.add_option("--processes", settings.processes, "processes of buyers")->check(CLI::Range(1, 64));
    app.add_option("--threads", settings.threads, "buyers in each process")->check(CLI::Range(1, 64));
    app.add_option("--think", settings.thinkMs, "ms between reading and writing the stock")
        ->check(CLI::Range(0, 10'000));
    app.add_option("--lock", settings.locks, "what to show, in this order: none, redislock")
        ->delimiter(',')
        ->check(CLI::IsMember({"none", "redislock"}));
    app.add_option("--url", settings.url,
                   "the server, as redis://[[user]:password@]host[:port][/database] or unix://path");
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings;
    CLI::App app("Sells a stock from several processes at once, without a lock and with a RedisLock.\n"
                 "Exit status: 0; 1 if RedisLock did not sell exactly the stock; 2 after any other error.");
    app.option_defaults()->always_capture_default();
    declareOptions(app, settings);
    return example::demonstrate(app, "oversell", argc, argv, [&] { return run(settings); });
}
