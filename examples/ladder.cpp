/// @file
/// The ladder of locks: each rung is a lock that people write, and meets a failure that it cannot handle.
///
/// Four buyers, each a process of its own, sell one stock. Each reads the number of pieces, thinks, and writes back one
/// less. The failures are real: a buyer is killed, is stopped, or works for longer than a lease, at the worst moment.
#include "ladder/facts.hpp"
#include "ladder/journal.hpp"
#include "ladder/page.hpp"
#include "ladder/rungs.hpp"
#include "shared/demonstration.hpp"
#include "shared/progress.hpp"
#include "shared/shop.hpp"
#include "shared/workers.hpp"

#include <redislock/redislock.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using example::Progress;
using example::Shop;
using example::Workers;
using ladder::Fate;
using ladder::Fault;
using ladder::Journal;
using ladder::Kind;
using ladder::Rung;

constexpr int exitNotShown = 1;
constexpr int exitInterrupted = 130;
constexpr auto think = 20ms;
constexpr auto betweenPurchases = 4ms; ///< otherwise the buyer that has just sold would be the first to ask
constexpr ladder::Time patience = 4s;  ///< the shop is closed when nothing has happened for this time

struct Settings {
    long long stock = 60;
    std::string url = "redis://127.0.0.1:6379";
    std::string page;
};

/// One buyer: read, think, write, until nothing is left.
void buyUntilSoldOut(Shop& shop, ladder::Lock& lock, Fate& fate, Journal& journal, int number)
{
    const auto buyer = fmt::format("buyer {}", number + 1);
    for (bool isOpen = true; isOpen;) {
        fate.nextPurchase();
        lock.take();
        journal.note(number, Kind::holds);
        const auto left = shop.stock();
        isOpen = left > 0;
        if (isOpen) {
            std::this_thread::sleep_for(think);
        }
        if (isOpen && lock.isOurs()) {
            fate.reach(ladder::Point::selling);
            journal.note(number, lock.sell(shop, left - 1, buyer) ? Kind::sold : Kind::refused);
        }
        journal.note(number, Kind::ends);
        if (lock.giveBack()) {
            journal.note(number, Kind::deletesAnothers);
        }
        std::this_thread::sleep_for(betweenPurchases);
    }
}

/// Kills or resumes the buyers that stopped themselves.
class Conductor {
public:
    Conductor(const Rung& rung, Workers& workers, Journal& journal) : rung_(rung), workers_(workers), journal_(journal)
    {
    }

    void look()
    {
        for (const auto& trouble : rung_.what) {
            if (trouble.fault == Fault::killed && workers_.hasStopped(trouble.buyer)) {
                workers_.kill(trouble.buyer);
                journal_.note(trouble.buyer, Kind::killed);
            } else if (trouble.fault == Fault::stopped) {
                letStandStill(trouble);
            }
        }
    }
    /// Whether nothing has happened for so long that nothing will happen any more.
    [[nodiscard]] bool isStuck() const
    {
        const auto entries = journal_.entries();
        return journal_.now() - (entries.empty() ? ladder::Time{} : entries.back().at) > patience;
    }

private:
    void letStandStill(const ladder::Trouble& trouble)
    {
        if (resumeAt_ == ladder::Time::max()) {
            if (workers_.hasStopped(trouble.buyer)) {
                resumeAt_ = journal_.now() + trouble.time;
                journal_.note(trouble.buyer, Kind::stopped);
            }
        } else if (!isResumed_ && journal_.now() >= resumeAt_) {
            // deleting a lock does harm only while somebody holds it
            if (trouble.point != ladder::Point::beforeDelete || stopsTheHolder()) {
                isResumed_ = true;
                journal_.note(trouble.buyer, Kind::resumed);
                workers_.resume(trouble.buyer);
            }
        } else if (holder_ != noBuyer && isFollowed()) {
            workers_.resume(std::exchange(holder_, noBuyer));
        }
    }

    /// Whether a buyer has just begun to sell; if so, it stands still until another buyer begins too.
    bool stopsTheHolder()
    {
        const auto begun = journal_.entries().back();
        if (begun.kind != Kind::holds) {
            return false;
        }
        workers_.stop(begun.buyer);
        if (const auto last = journal_.entries().back(); last.kind != Kind::holds || last.buyer != begun.buyer) {
            workers_.resume(begun.buyer);
            return false;
        }
        holder_ = begun.buyer;
        return true;
    }
    /// Whether another buyer sells beside the buyer that stands still.
    [[nodiscard]] bool isFollowed() const
    {
        const auto last = journal_.entries().back();
        return last.kind == Kind::holds && last.buyer != holder_;
    }

    static constexpr int noBuyer = -1;

    const Rung& rung_;
    Workers& workers_;
    Journal& journal_;
    ladder::Time resumeAt_ = ladder::Time::max(); ///< of the buyer that stopped itself
    bool isResumed_ = false;
    int holder_ = noBuyer; ///< stopped for a moment, in the middle of its sale
};

/// What a rung showed, in a few words; empty: it did not show its trouble. @param forEver the lock has no time to live.
std::string verdictOf(const Rung& rung, const ladder::Facts& facts, long long sold, long long stock, bool forEver)
{
    if (rung.isExact) {
        return sold == stock ? "exact" : "";
    }
    if (sold < stock) {
        return forEver ? "locked for ever" : "";
    }
    if (facts.overlaps.empty()) {
        return "";
    }
    const std::string verdict = sold > stock ? "oversells" : "two sell at once";
    return facts.foreignReleases > 0 ? verdict + ", deletes others' locks" : verdict;
}

/// @return nothing if the user ended the program meanwhile.
std::optional<ladder::Shown> show(const Rung& rung, const Settings& settings, Shop& shop, const std::string& prefix)
{
    const example::OpenShop open(shop, settings.stock);
    auto server = redislock::Config::fromUrl(settings.url);
    server.watchdogTimeout = ladder::lease;
    Journal journal;
    const auto buy = [&](int number) {
        Shop own(server, prefix);
        const redislock::Client client(server); // made after the fork: a client does not survive a fork
        Fate fate(rung.what, journal, number);
        const auto lock = rung.make(own, fate, client, number);
        buyUntilSoldOut(own, *lock, fate, journal, number);
    };
    {
        Progress progress(std::string(rung.name), settings.stock);
        Workers workers(ladder::buyers, buy);
        Conductor conductor(rung, workers, journal);
        auto nextLook = std::chrono::steady_clock::now();
        for (auto event = Workers::Event::timeOut; event != Workers::Event::allEnded && !conductor.isStuck();) {
            event = workers.wait(1ms);
            if (event == Workers::Event::interrupted) {
                return std::nullopt;
            }
            conductor.look();
            if (const auto now = std::chrono::steady_clock::now(); now >= nextLook) {
                progress.show(shop.stock(), shop.sold());
                nextLook = now + 50ms;
            }
        }
        if (workers.anyFailed()) {
            throw std::runtime_error(fmt::format("a buyer of \"{}\" failed", rung.name));
        }
    }
    const auto sold = shop.sold();
    auto facts = ladder::FactFinder(journal.entries(), journal.now()).take();
    const bool forEver = shop.command({"PTTL", shop.lockName()})->integer == -1;
    auto verdict = verdictOf(rung, facts, sold, settings.stock, forEver);
    return ladder::Shown{rung.name,    rung.trouble,   rung.lesson, std::move(verdict),
                         rung.isExact, settings.stock, sold,        std::move(facts)};
}

void printHeader()
{
    fmt::print("{:<21} {:>5} {:>9} {:>9} {:>14} {:>11} {:>8}\n", "", "", "", "", "others' locks", "late sales", "");
    fmt::print("{:<21} {:>5} {:>9} {:>9} {:>14} {:>11} {:>8}  {}\n", "lock", "sold", "oversold", "stuck", "deleted",
               "refused", "sales/s", "verdict");
}

void printRow(const ladder::Shown& rung)
{
    const auto& facts = rung.facts;
    const std::chrono::duration<double> seconds = facts.end;
    const auto stuck = rung.sold < rung.stock ? "for ever" : fmt::format("{:.1f} s", facts.stuckSeconds());
    fmt::print("{:<21} {:>5} {:>9} {:>9} {:>14} {:>11} {:>8.0f}  {}\n", rung.name, rung.sold,
               std::max(0LL, rung.sold - rung.stock), stuck, facts.foreignReleases, facts.refusals,
               static_cast<double>(rung.sold) / seconds.count(),
               rung.verdict.empty() ? "not shown this time" : rung.verdict);
    std::fflush(stdout);
}

void writePage(const std::vector<ladder::Shown>& rungs, const std::string& path)
{
    std::ofstream file(path, std::ios::trunc);
    file << ladder::Page(rungs).text();
    file.close();
    if (!file) {
        throw std::runtime_error(fmt::format("the page cannot be written to {}", path));
    }
    fmt::print("\nThe time lines of all locks: {}\n", path);
}

int run(const Settings& settings)
{
    const auto rungs = ladder::allRungs();
    fmt::print("Climbs the ladder of locks: {} buyers sell a stock of {}; each lock meets its worst failure.\n\n",
               ladder::buyers, settings.stock);
    std::fflush(stdout);
    example::holdSignals();
    std::random_device random;
    const auto prefix = fmt::format("ladder:{:08x}{:08x}:", random(), random()); // so that runs do not collide
    Shop shop(redislock::Config::fromUrl(settings.url), prefix);
    printHeader();
    std::vector<ladder::Shown> shown;
    for (const auto& rung : rungs) {
        auto one = show(rung, settings, shop, prefix);
        if (!one) {
            fmt::print(stderr, "ladder: interrupted; the buyers were ended and the keys removed\n");
            return exitInterrupted;
        }
        printRow(*one);
        shown.push_back(std::move(*one));
    }
    if (!settings.page.empty()) {
        writePage(shown, settings.page);
    }
    const bool all = std::ranges::none_of(shown, [](const ladder::Shown& rung) { return rung.verdict.empty(); });
    return all ? 0 : exitNotShown;
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings;
    CLI::App app("ladder: sells a stock under eight locks, and causes the failure that each of them handles worst.\n"
                 "Exit status: 0 if every rung showed what it is there for; 1 if one did not; 2 after any other "
                 "error.");
    app.option_defaults()->always_capture_default();
    app.add_option("--stock", settings.stock, "units to sell in each rung")->check(CLI::Range(40, 1'000));
    app.add_option("--page", settings.page, "also write a page with the time line of each rung to this file");
    app.add_option("--url", settings.url,
                   "the server, as redis://[[user]:password@]host[:port][/database] or unix://path");
    return example::demonstrate(app, "ladder", argc, argv, [&] { return run(settings); });
}
