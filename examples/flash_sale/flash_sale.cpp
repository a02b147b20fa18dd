/// @file
/// A flash sale: many users want few pieces, and no failure on the way may sell a piece twice or lose one.
///
/// A service admits each order with one script in Redis, which checks the stock, allows one order for each user, and
/// appends the order to a stream. Workers in other processes take the orders from the stream, and create them in
/// PostgreSQL under the lock of the user. Meanwhile service and workers are killed and stopped. Buyers without an
/// answer ask again. At the end stock, orders and answers have to agree.
#include "flash_sale/conductor.hpp"
#include "flash_sale/orders.hpp"
#include "flash_sale/page.hpp"
#include "flash_sale/proof.hpp"
#include "flash_sale/sale.hpp"
#include "flash_sale/service.hpp"
#include "flash_sale/settings.hpp"
#include "shared/demonstration.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <random>
#include <stdexcept>

namespace {

using namespace flash;

constexpr int exitWrong = 1;
constexpr int exitInterrupted = 130;

/// The tables of the sale, dropped by the destructor.
class Tables {
public:
    explicit Tables(Orders& orders) : orders_(orders)
    {
        orders_.dropTables();
        orders_.makeTables();
    }
    Tables(const Tables&) = delete;
    Tables& operator=(const Tables&) = delete;
    ~Tables()
    {
        try {
            orders_.dropTables();
        } catch (const std::exception& error) {
            fmt::print(stderr, "flash_sale: the tables stay: {}\n", error.what());
        }
    }

private:
    Orders& orders_;
};

/// Makes one figure wrong, to show that the proof notices it.
void falsify(const Settings& settings, Sale& sale, Orders& orders)
{
    if (settings.falsify == "stock") {
        sale.setStock(sale.stock() + 1);
    } else if (settings.falsify == "order") {
        orders.execute("DELETE FROM flash_order WHERE id = (SELECT min(id) FROM flash_order)");
    } else if (settings.falsify == "buyer") {
        orders.execute("UPDATE flash_order SET buyer = (SELECT max(buyer) FROM flash_order) "
                       "WHERE buyer = (SELECT min(buyer) FROM flash_order)");
    } else if (settings.falsify == "answer") {
        orders.execute("DELETE FROM flash_told WHERE id = (SELECT min(id) FROM flash_told WHERE answer = 'sold out')");
    }
}

int run(Settings settings)
{
    example::holdSignals();
    std::random_device random;
    settings.sale = fmt::format("flash_sale:{:08x}:", random());
    Orders orders(settings.database);
    const Tables tables(orders);
    Sale sale(settings);
    sale.open(settings.stock);
    Conductor conductor(settings, sale, orders);
    fmt::print("Sells {} pieces to {} users in {} processes; {} workers create the orders. See {}\n\n", settings.stock,
               settings.users, settings.buyerProcesses, settings.workers, conductor.page());
    std::fflush(stdout);
    const auto start = Clock::now();
    const auto done = conductor.run();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    falsify(settings, sale, orders);
    Proof proof(settings, sale, orders);
    const bool holds = proof.holds();
    const bool saw = proof.sawTroubles(done);
    const auto* const verdict = !holds ? "stock, orders and answers DO NOT AGREE."
                                : !saw ? "everything agrees, but no process was killed at work, so this proves little."
                                       : "stock, orders and answers agree; nobody bought twice, nothing is lost.";
    const auto sentence = fmt::format("After {:.0f} s: {}", seconds.count(), verdict);
    fmt::print("\n{}\n", sentence);
    std::fflush(stdout);
    sale.conclude(proof.json(holds && saw, sentence));
    if (!settings.page.empty()) {
        std::ofstream file(settings.page, std::ios::trunc);
        if (!(file << page(figures(settings, sale, orders)) << std::flush)) {
            throw std::runtime_error(fmt::format("the page cannot be written to {}", settings.page));
        }
        fmt::print("The page of the sale: {}\n", settings.page);
        std::fflush(stdout);
    }
    conductor.showVerdict();
    return !holds ? exitWrong : !saw ? example::exitFailed : 0;
}

void declareOptions(CLI::App& app, Settings& settings)
{
    app.add_option("--stock", settings.stock, "pieces to sell")->check(CLI::Range(1, 1'000'000));
    app.add_option("--users", settings.users, "users who want one")->check(CLI::Range(1, 1'000'000));
    app.add_option("--seconds", settings.seconds, "until the last user has come")->check(CLI::Range(1, 600));
    app.add_option("--workers", settings.workers, "processes that create orders")->check(CLI::Range(2, 16));
    app.add_option("--worker-kills", settings.workerKills, "how many workers to kill")->check(CLI::Range(0, 1000));
    app.add_option("--service-kills", settings.serviceKills, "how often to kill the service")
        ->check(CLI::Range(0, 1000));
    app.add_option("--pauses", settings.pauses, "how often to stop a worker for twice its lease")
        ->check(CLI::Range(0, 100));
    app.add_option("--seed", settings.seed, "of the random moments, and of the orders' numbers");
    app.add_option("--look-with", settings.lookWith,
                   "a command of the shell, run with the address of the page from the beginning until it has seen the "
                   "verdict; the sale fails if the command does");
    app.add_option("--page", settings.page, "keep the page of the finished sale in this file");
    app.add_option("--falsify", settings.falsify, "make this figure wrong before the proof, which has to notice")
        ->check(CLI::IsMember({"nothing", "stock", "order", "buyer", "answer"}));
    app.add_option("--url", settings.url,
                   "the Redis server, as redis://[[user]:password@]host[:port][/database] or unix://path");
    app.add_option("--database", settings.database,
                   "the database, as postgresql://user@host/database or as host=… dbname=…");
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings;
    CLI::App app("flash_sale: sells few pieces to many users while its processes are killed, and proves that the stock "
                 "in Redis, the orders in PostgreSQL and the answers of the buyers agree.\n"
                 "Exit status: 0 if they agree; 1 if not; 2 after any other error.");
    app.option_defaults()->always_capture_default();
    declareOptions(app, settings);
    return example::demonstrate(app, "flash_sale", argc, argv, [&] {
        try {
            return run(settings);
        } catch (const Interrupted&) {
            fmt::print(stderr, "flash_sale: interrupted; all processes were ended\n");
            return exitInterrupted;
        }
    });
}
