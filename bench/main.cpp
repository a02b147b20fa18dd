/// @file
/// The library's speed as ratios to hand-written hiredis, on a private server.
#include "report.hpp"
#include "rows.hpp"

#include <redislock/testing/redis_server.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace redislock::bench;

constexpr int exitFailed = 1;
constexpr int exitInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

struct Interrupted {};

struct Settings {
    std::vector<std::string> rows;
    int repetitions = 7;
    double seconds = 0.4;
    bool tsv = false;
    bool list = false;
    std::vector<std::string> partner;
};

/// Where the work is; on a terminal one line that is written over.
void showProgress(const Row& row, int repetition, int repetitions)
{
    if (::isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\x1b[K{}: pair {} of {}", row.name, repetition, repetitions);
        std::fflush(stderr);
    } else if (repetition == 1) {
        fmt::print(stderr, "measuring {}\n", row.name);
    }
}

void clearProgress()
{
    if (::isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\x1b[K");
    }
}

Result run(const Row& row, const Target& target, const Settings& settings)
{
    const auto measure = row.prepare(target);
    measure(Seconds(std::min(settings.seconds, 0.2)), First::ours); // warm-up
    std::vector<Pair> pairs;
    for (int repetition = 1; repetition <= settings.repetitions; ++repetition) {
        if (interrupted != 0) {
            throw Interrupted();
        }
        showProgress(row, repetition, settings.repetitions);
        pairs.push_back(measure(Seconds(settings.seconds), repetition % 2 == 1 ? First::ours : First::reference));
    }
    clearProgress();
    return summarize(pairs);
}

int runRows(const Settings& settings)
{
    const redislock::testing::RedisServer server;
    const Target target{server.host(), server.port(), server.url()};
    if (!settings.tsv) {
        printHead();
    }
    for (const auto& row : allRows()) {
        if (!settings.rows.empty() && std::ranges::find(settings.rows, row.name) == settings.rows.end()) {
            continue;
        }
        const auto result = run(row, target, settings);
        settings.tsv ? printTsv(row, result) : printRow(row, result);
    }
    return 0;
}

int dispatch(const Settings& settings)
{
    if (settings.partner.size() == 2) {
        runPartner(settings.partner[0], settings.partner[1]);
        return 0;
    }
    if (settings.list) {
        printList(allRows());
        return 0;
    }
    // The first Ctrl-C ends the server and removes its folder; a second one ends the program on the spot.
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    return runRows(settings);
}

void declareOptions(CLI::App& app, Settings& settings)
{
    std::vector<std::string> names;
    for (const auto& row : allRows()) {
        names.emplace_back(row.name);
    }
    app.add_option("--row", settings.rows, "only this row; may be given more than once")
        ->type_name("NAME")
        ->check(CLI::IsMember(names).description(""));
    app.add_option("--repetitions", settings.repetitions, "pairs of measurements a row")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--seconds", settings.seconds, "how long each side is measured in a pair")
        ->check(CLI::Range(0.01, 60.0))
        ->capture_default_str();
    app.add_flag("--tsv", settings.tsv, "row, ours, reference, ratio, goal, reached|not-reached; tabs, no header");
    app.add_flag("--list", settings.list, "say what the rows are, and measure nothing");
    app.add_option("--partner", settings.partner)->expected(2)->group(""); // how the program starts its second process
}

} // namespace

int main(int argc, char** argv)
{
    std::signal(SIGPIPE, SIG_IGN); // hiredis writes to connections that the server may have closed
    Settings settings;
    CLI::App app("Measures the library against hand-written hiredis on a private redis-server, side by side.\n"
                 "Exit status 0, goals reached or not; another one only when something could not be measured.");
    declareOptions(app, settings);
    try {
        app.parse(argc, argv);
        return dispatch(settings);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exitFailed;
    } catch (const Interrupted&) {
        fmt::print(stderr, "\nredislock_bench: interrupted\n");
        return exitInterrupted;
    } catch (const std::exception& error) {
        fmt::print(stderr, "\nredislock_bench: {}\n", error.what());
        return exitFailed;
    }
}
