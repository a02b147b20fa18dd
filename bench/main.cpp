/// @file
/// The library's speed as ratios to hand-written hiredis, on a private server.
#include "apart.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "shared.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace {

using namespace redislock::bench;

constexpr int exitFailed = 1;
constexpr int exitInterrupted = 130;

struct Settings {
    std::vector<std::string> rows;
    std::vector<std::string> groups;
    Effort effort{7, 0.4};
    bool tsv = false;
    std::string tsvFile;
    bool list = false;
    std::vector<std::string> partner;
    std::vector<std::string> sharer;
    std::string measure;
};

struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// Shows the progress; on a terminal in one line that is overwritten.
void showProgress(const Row& row, std::size_t pairs, const Effort& effort)
{
    const int repetitions = effort.tryOut || row.asked == Asked::byName ? 1 : effort.repetitions;
    if (::isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\x1b[K{}: {} of {} pairs", row.name, pairs, repetitions);
        std::fflush(stderr);
    } else if (pairs == 0) {
        fmt::print(stderr, "measuring {}\n", row.name);
    }
}

void clearProgress()
{
    if (::isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\x1b[K");
    }
}

bool isWanted(const Row& row, const Settings& settings)
{
    if (settings.rows.empty() && settings.groups.empty()) {
        return settings.effort.tryOut || row.asked == Asked::always;
    }
    return std::ranges::find(settings.rows, row.name) != settings.rows.end() ||
           std::ranges::find(settings.groups, nameOf(row.group)) != settings.groups.end();
}

File openTsv(const std::string& path)
{
    File file(path.empty() ? nullptr : std::fopen(path.c_str(), "w"));
    if (!path.empty() && file == nullptr) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    return file;
}

/// @return the rows that could not be measured; their processes have said why on standard error.
std::vector<std::string_view> runRows(const Settings& settings)
{
    std::vector<std::string_view> failed;
    const File file = openTsv(settings.tsvFile);
    if (!settings.tsv) {
        printHead();
    }
    for (const auto& row : allRows()) {
        if (!isWanted(row, settings)) {
            continue;
        }
        const auto progress = [&](std::size_t pairs) { showProgress(row, pairs, settings.effort); };
        try {
            const auto result = summarize(measureApart(row, settings.effort, progress));
            clearProgress();
            settings.tsv ? printTsv(stdout, row, result) : printRow(row, result);
            if (file) {
                printTsv(file.get(), row, result);
            }
        } catch (const std::exception& error) { // Interrupted is not a std::exception
            clearProgress();
            fmt::print(stderr, "redislock_bench: {}\n", error.what());
            failed.push_back(row.name);
        }
    }
    return failed;
}

/// @return the exit status.
int dispatch(const Settings& settings)
{
    if (settings.partner.size() == 3) {
        runPartner(settings.partner[0], settings.partner[1], settings.partner[2]);
        return 0;
    }
    if (!settings.sharer.empty()) {
        runSharer(settings.sharer);
        return 0;
    }
    if (settings.list) {
        printList(allRows());
        return 0;
    }
    handleSignals();
    if (!settings.measure.empty()) {
        measureForParent(settings.measure, settings.effort);
        return 0;
    }
    const auto failed = runRows(settings);
    if (!failed.empty()) {
        fmt::print(stderr, "redislock_bench: could not be measured: {}\n", fmt::join(failed, ", "));
    }
    return failed.empty() ? 0 : exitFailed;
}

void declareOptions(CLI::App& app, Settings& settings)
{
    std::vector<std::string> names;
    for (const auto& row : allRows()) {
        names.emplace_back(row.name);
    }
    std::vector<std::string> groups;
    for (const auto group : allGroups) {
        groups.emplace_back(nameOf(group));
    }
    app.add_option("--row", settings.rows, "only this row; may be given more than once")
        ->type_name("NAME")
        ->check(CLI::IsMember(names).description(""));
    app.add_option("--group", settings.groups,
                   "all rows of this group, also those that are otherwise measured only when they are named")
        ->type_name("NAME")
        ->check(CLI::IsMember(groups));
    app.add_option("--repetitions", settings.effort.repetitions, "pairs of measurements a row")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--seconds", settings.effort.seconds, "how long each side is measured in a pair")
        ->check(CLI::Range(0.01, 60.0))
        ->capture_default_str();
    app.add_flag("--tsv", settings.tsv,
                 std::string("instead of the table, words separated by tabs, no header: ") + tsvColumns);
    app.add_option("--tsv-file", settings.tsvFile, "writes the same to a file, beside the table")->type_name("FILE");
    app.add_flag(
        "--try-out", settings.effort.tryOut,
        "all rows, or those that are named, for a moment and with few locks: shows that they can be measured, and "
        "measures nothing");
    app.add_flag("--list", settings.list, "say what the rows are, and measure nothing");
    // how the program starts its other processes
    app.add_option("--partner", settings.partner)->expected(3)->group("");
    app.add_option("--sharer", settings.sharer)->expected(sharerWords)->group("");
    app.add_option("--measure", settings.measure)->check(CLI::IsMember(names))->group("");
}

} // namespace

int main(int argc, char** argv)
{
    std::signal(SIGPIPE, SIG_IGN); // hiredis writes to connections that the server may have closed
    Settings settings;
    CLI::App app(
        "Measures the library against hand-written hiredis, side by side, each row in a process of its own with a\n"
        "private redis-server. Exit status 0, goals reached or not; another one only when a row could not be "
        "measured,\n"
        "which does not keep the others from it.");
    declareOptions(app, settings);
    try {
        app.parse(argc, argv);
        return dispatch(settings);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exitFailed;
    } catch (const Interrupted&) {
        if (settings.measure.empty()) { // the parent prints the message
            clearProgress();
            fmt::print(stderr, "redislock_bench: interrupted\n");
        }
        return exitInterrupted;
    } catch (const std::exception& error) {
        clearProgress();
        fmt::print(stderr, "redislock_bench: {}\n", error.what());
        return exitFailed;
    }
}
