/// @file
/// A row of a database that refuses late writers, and a row that does not.
///
/// A writer takes a FencedLock, reads the row, and is stopped for longer than its lease. Meanwhile another writer takes
/// the lock, and writes. When the first writer goes on, it writes too: it does not know yet that its lock is lost. If
/// its UPDATE checks the token, nothing happens; otherwise the UPDATE overwrites the work of the other writer.
#include "shared/demonstration.hpp"
#include "shared/workers.hpp"

#include <redislock/format.hpp>
#include <redislock/redislock.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <pqxx/pqxx>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using example::Workers;

constexpr int exitNotShown = 1;
constexpr int units = 100; ///< at the beginning; the late writer sells 1, the other writer 30
constexpr auto lease = 500ms;

struct Settings {
    std::string url = "redis://127.0.0.1:6379";
    std::string database;
};

/// The row that both writers want to change.
class Row {
public:
    explicit Row(const std::string& database) : connection_(database)
    {
        connection_.prepare("read", "SELECT units FROM redislock_stock WHERE id = 42");
        connection_.prepare("plain", "UPDATE redislock_stock SET units = $1, token = $2 WHERE id = 42");
        connection_.prepare("fenced",
                            "UPDATE redislock_stock SET units = $1, token = $2 WHERE id = 42 AND token <= $2");
    }
    [[nodiscard]] int read()
    {
        pqxx::nontransaction work(connection_);
        return work.exec_prepared1("read")[0].as<int>();
    }
    /// @return whether the row was changed.
    bool write(bool isFenced, int left, redislock::FencingToken token)
    {
        pqxx::work work(connection_);
        const auto number = static_cast<std::int64_t>(token); // microseconds: fits a bigint for 290 000 years
        const auto changed = work.exec_prepared(isFenced ? "fenced" : "plain", left, number).affected_rows();
        work.commit();
        return changed == 1;
    }

private:
    pqxx::connection connection_;
};

/// The table of the row, dropped by the destructor.
class Table {
public:
    explicit Table(const std::string& database) : connection_(database)
    {
        execute("DROP TABLE IF EXISTS redislock_stock");
        execute("CREATE TABLE redislock_stock (id integer PRIMARY KEY, units integer NOT NULL, token bigint NOT NULL)");
        execute(fmt::format("INSERT INTO redislock_stock VALUES (42, {}, 0)", units));
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table()
    {
        try {
            execute("DROP TABLE redislock_stock");
        } catch (const std::exception& error) {
            fmt::print(stderr, "fenced_row: the table stays: {}\n", error.what());
        }
    }

private:
    void execute(const std::string& statement)
    {
        pqxx::work work(connection_);
        work.exec(statement);
        work.commit();
    }

    pqxx::connection connection_;
};

/// Takes the lock, reads, stops at the worst moment, and writes.
void writeLate(const Settings& settings, bool isFenced)
{
    Row row(settings.database);
    const redislock::Client client(settings.url); // made after the fork: a client does not survive a fork
    const auto token = client.getFencedLock("example:row").lockAndGetToken(lease);
    const int left = row.read();
    std::raise(SIGSTOP); // stands for a debugger, a machine that is moved, a disk that does not answer
    const bool written = row.write(isFenced, left - 1, token);
    fmt::print("  the late writer, token {}: writes {}{}\n", token, left - 1, written ? "" : ", and is refused");
    std::fflush(stdout);
}

/// @return the units that are left at the end; right are 30 less than at the beginning.
int sell(const Settings& settings, bool isFenced)
{
    const Table table(settings.database);
    fmt::print("{}\n", isFenced ? "UPDATE … WHERE id = 42 AND token <= $token:" : "UPDATE … WHERE id = 42:");
    Workers late(1, [&](int) { writeLate(settings, isFenced); });
    while (!late.hasStopped(0)) {
        if (late.wait(1ms) != Workers::Event::timeOut) {
            throw std::runtime_error("the late writer ended before its time");
        }
    }
    Row row(settings.database);
    {
        const redislock::Client client(settings.url);
        const redislock::LockGuard held(client.getFencedLock("example:row")); // granted when the lease is over
        const int left = row.read() - 30;
        row.write(isFenced, left, *held.token());
        fmt::print("  the other writer, token {}: writes {}\n", *held.token(), left);
        std::fflush(stdout);
    }
    late.resume(0);
    while (late.wait(100ms) == Workers::Event::timeOut) {
    }
    if (late.anyFailed()) {
        throw std::runtime_error("the late writer failed");
    }
    const int left = row.read();
    fmt::print("  in the row at the end: {}\n\n", left);
    return left;
}

int run(const Settings& settings)
{
    fmt::print("Two writers change a row under a FencedLock; one of them is stopped for longer than its lease.\n"
               "There are {} units, of which one writer sells 30 and the late one 1.\n\n",
               units);
    std::fflush(stdout);
    example::holdSignals();
    const int plain = sell(settings, false);
    const int fenced = sell(settings, true);
    const redislock::Client client(settings.url);
    client.getSemaphore("redisson_lock_token:{example:row}").forceDelete(); // kept for ever, so that tokens grow
    fmt::print("Without the token {} sales were lost; with it the late write was refused, and its writer knows.\n",
               plain - (units - 31));
    return plain == units - 1 && fenced == units - 30 ? 0 : exitNotShown;
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings;
    CLI::App app("fenced_row: a late writer overwrites a row of PostgreSQL, and is refused when its UPDATE checks the "
                 "token.\nExit status: 0 if both were seen; 1 if not; 2 after any other error.");
    app.option_defaults()->always_capture_default();
    app.add_option("--url", settings.url,
                   "the Redis server, as redis://[[user]:password@]host[:port][/database] or unix://path");
    app.add_option(
        "--database", settings.database,
        "the database, as postgresql://user@host/database or as host=… dbname=…; what is left out comes from "
        "PGHOST, PGUSER and so on");
    return example::demonstrate(app, "fenced_row", argc, argv, [&] { return run(settings); });
}
