#include "shared/command_line.hpp"

#include <CLI/CLI.hpp>

#include <exception>
#include <functional>
#include <iostream>

namespace example {

namespace {

constexpr int exitFailed = 1;
constexpr int exitUsage = 2;

int parseAndRun(CLI::App& app, int argc, char** argv, const std::function<bool()>& work)
{
    app.footer("Exit status: 0 on success; 1 on failure, or if the server cannot be reached; "
               "2 for a wrong command line.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exitUsage;
    }
    std::cout << app.get_description() << std::endl; // before the work, which may take a while
    try {
        return work() ? 0 : exitFailed;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return exitFailed;
    }
}

constexpr const char* urlHelp = "as redis://[[user]:password@]host[:port][/database] or unix://path";

} // namespace

int run(int argc, char** argv, const std::string& about, bool (*work)(const std::string& url))
{
    CLI::App app(about);
    std::string url = "redis://127.0.0.1:6379";
    app.add_option("URL", url, std::string("the server, ") + urlHelp)->capture_default_str();
    return parseAndRun(app, argc, argv, [&] { return work(url); });
}

int runWithServers(int argc, char** argv, const std::string& about, bool (*work)(const std::vector<std::string>& urls))
{
    CLI::App app(about);
    std::vector<std::string> urls{"redis://127.0.0.1:6379", "redis://127.0.0.1:6380", "redis://127.0.0.1:6381"};
    app.add_option("URL", urls, std::string("the servers, each ") + urlHelp)->capture_default_str();
    return parseAndRun(app, argc, argv, [&] { return work(urls); });
}

} // namespace example
