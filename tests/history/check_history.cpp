// Reads the histories of a run and checks the promises of locks.
#include "history/report.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

namespace history = redislock::test::history;

void draw(const history::History& read, const history::Report& report, const std::filesystem::path& folder)
{
    constexpr std::size_t most = 5;
    for (std::size_t i = 0; i < std::min(most, report.violations.size()); ++i) {
        const auto& violation = report.violations[i];
        const auto file = folder / ("violation-" + std::to_string(i + 1) + "-" + violation.invariant + ".svg");
        std::ofstream(file) << history::timelineSvg(read, violation);
        std::cout << "drawn: " << file.string() << "\n";
    }
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Tests the histories of a run against the invariants of a lock. Exit status: 0 none is broken, 1 one "
                 "is, 2 the history proves nothing or cannot be read."};
    std::filesystem::path path;
    std::filesystem::path drawings;
    history::Limits limits;
    std::int64_t slackMs = limits.slack / history::millisecond;
    std::size_t most = 20;
    app.add_option("history", path, "A folder with *.jsonl, or one file")->required()->check(CLI::ExistingPath);
    app.add_option("--hand-overs", limits.leastHandOvers, "Refuse a history with fewer changes of holder")
        ->capture_default_str();
    app.add_option("--slack", slackMs, "How late a running process may be, in ms")
        ->capture_default_str()
        ->check(CLI::Range(0, 3'600'000));
    app.add_option("--most", most, "Violations to print")->capture_default_str();
    app.add_option("--svg", drawings, "Folder for timelines of the first violations (default: that of the history)");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    limits.slack = slackMs * history::millisecond;
    try {
        const auto [read, report] = history::judge(history::readHistory(path), limits);
        std::cout << history::summaryOf(read, report);
        for (std::size_t i = 0; i < std::min(most, report.violations.size()); ++i) {
            std::cout << history::textOf(read, report.violations[i]);
        }
        if (report.violations.empty()) {
            return 0;
        }
        const auto folder = std::filesystem::is_directory(path) ? path : path.parent_path();
        draw(read, report, drawings.empty() ? folder : drawings);
        return 1;
    } catch (const std::exception& error) {
        std::cerr << "refused: " << error.what() << '\n';
        return 2;
    }
}
