// The command line.
#include "settings.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::tool {

std::optional<std::chrono::milliseconds> durationOf(const std::string& text)
{
    constexpr std::pair<std::string_view, double> units[] = {{"ms", 1.0},   {"s", 1e3},    {"m", 60e3},
                                                             {"min", 60e3}, {"h", 3600e3}, {"", 1e3}};
    double number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto* found =
        std::find_if(std::begin(units), std::end(units), [&](const auto& each) { return each.first == unit; });
    constexpr double most = 365.0 * 24 * 3600e3;
    if (failure != std::errc() || found == std::end(units) || !(number >= 0) || number * found->second > most) {
        return std::nullopt;
    }
    return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(number * found->second));
}

void complain(const std::string& words) noexcept
{
    (void)!std::fprintf(stderr, "redislock: %s\n", words.c_str());
}

void flushOutput()
{
    if (std::fflush(stdout) != 0) {
        throw std::system_error(errno, std::generic_category(), "standard output");
    }
}

namespace {

constexpr int runFailed = 125;

/// Adds an option that is a time. @param set called with the time.
void addDuration(CLI::App& command, const std::string& names, const std::string& help,
                 std::function<void(std::chrono::milliseconds)> set)
{
    command
        .add_option_function<std::string>(
            names, [set = std::move(set)](const std::string& text) { set(*durationOf(text)); }, help)
        ->type_name("TIME")
        ->check([](const std::string& text) {
            return durationOf(text) ? std::string() : "a time is written as 500ms, 30s, 5m or 2h, not " + text;
        });
}

void addStatus(CLI::App& command, const std::string& names, const std::string& help, int& status)
{
    command.add_option(names, status, help)->type_name("STATUS")->check(CLI::Range(0, 255))->capture_default_str();
}

/// @param isNameBehind that a name may follow `--`
void addCommands(CLI::App& app, Settings& settings, bool isNameBehind)
{
    const auto add = [&](const char* name, const char* help, int (*perform)(const Settings&)) {
        auto* command = app.add_subcommand(name, help);
        command->callback([&settings, perform] { settings.perform = perform; });
        return command;
    };
    auto* run =
        add("run", "Runs a command while it holds a lock: redislock run [OPTIONS] NAME -- COMMAND [ARGUMENT...]",
            tool::run);
    auto* ls = add("ls", "Lists the locks that are held", tool::ls);
    auto* who = add("who", "Says who holds a lock and who waits; status 1: nobody holds it", tool::who);
    auto* watch = add("watch", "Shows the locks that are held, again and again, until Ctrl-C", tool::watch);
    auto* kick = add("kick", "Frees a lock, whoever holds it; says whom and asks first", tool::kick);
    auto* doctor = add("doctor", "Looks whether the server is fit for locks; status 1: it is not", tool::doctor);
    for (auto* command : {run, who, kick}) {
        command->add_option("NAME", settings.name, "The lock")->required(!isNameBehind);
    }
    for (auto* command : {ls, watch}) {
        command->add_option("PATTERN", settings.pattern, "Which: *, ?, [ab] as of Redis")->capture_default_str();
    }
    doctor->add_option("NAME", settings.name, "A lock for whose keys the rights are judged");
    for (auto* command : {ls, who, watch, doctor}) {
        command->add_flag("--json", settings.json, "One JSON object a line");
    }
    addDuration(*watch, "-n,--interval", "How often; 1 s", [&settings](auto time) { settings.interval = time; });
    kick->add_flag("-y,--yes", settings.yes, "Does not ask");
    addDuration(*run, "-w,--wait", "How long to wait for the lock, 0 for one attempt; without this: for ever",
                [&settings](auto time) { settings.wait = time; });
    addDuration(*run, "-l,--lease", "Not renewed: the command is ended before this time is over",
                [&settings](auto time) { settings.lease = time; });
    run->add_flag("--no-term", settings.noTerm, "When the lock is at risk only warn, before it comes to KILL");
    addStatus(*run, "-E,--not-obtained-status", "Exit status when the lock was not to be had",
              settings.notObtainedStatus);
    addStatus(*run, "--lost-status", "Exit status when the lock was lost, or the command ended for it",
              settings.lostStatus);
    run->footer(
        "The lock is a fenced one. The command finds its name in REDISLOCK_NAME and its token in REDISLOCK_TOKEN.\n"
        "When the lock is at risk the command's processes get TERM, and KILL a second before it can be another's\n"
        "(with a lease below 10 s: a tenth of it before).\n"
        "Exit status: the command's; 128 + signal; 75 the lock was not to be had; 76 it was lost;\n"
        "125 redislock failed; 126 the command cannot be run; 127 there is no such command.");
}

/// Takes what follows the first `--`: a name that may begin with `-`, unless there was one before; then, for run, the
/// other program, with `--` between the two.
void takeRest(const CLI::App& command, const std::vector<std::string>& rest, Settings& settings)
{
    const bool isRun = command.get_name() == "run";
    const auto* name = command.get_options([](const CLI::Option* each) { return each->get_positional(); }).front();
    auto from = rest.begin();
    bool hasMark = true;
    if (name->count() == 0 && from != rest.end()) {
        (name->get_name() == "PATTERN" ? settings.pattern : settings.name) = *from++;
        hasMark = isRun && from != rest.end() && *from == "--";
        from += hasMark ? 1 : 0;
    }
    settings.command.assign(from, rest.end());
    if (isRun && (settings.command.empty() || !hasMark)) {
        throw CLI::ValidationError("run needs a command behind --: redislock run NAME -- COMMAND");
    }
    if (!isRun && from != rest.end()) {
        throw CLI::ValidationError(command.get_name() + " takes no command behind --");
    }
}

/// Takes those of the first three handles that are closed: else a connection may get their number, and a message go to
/// the server. A command finds them closed.
void reserveStandardHandles()
{
    int handle = 0;
    do {
        handle = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        handle = handle < 0 ? ::epoll_create1(EPOLL_CLOEXEC) : handle; // there may be no /dev
    } while (handle >= 0 && handle <= STDERR_FILENO);
    ::close(handle);
}

int main(std::vector<std::string> arguments)
{
    reserveStandardHandles();
    Settings settings;
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    const std::vector<std::string> rest(mark == arguments.end() ? mark : mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
    CLI::App app("Locks in Redis: holds them for commands, and shows who holds them.", "redislock");
    app.set_version_flag("--version", fmt::format("redislock {}.{}.{}", REDISLOCK_VERSION_MAJOR,
                                                  REDISLOCK_VERSION_MINOR, REDISLOCK_VERSION_PATCH));
    const auto* url =
        app.add_option("-u,--url", settings.url, "The server")->envname("REDISLOCK_URL")->capture_default_str();
    app.require_subcommand(1);
    app.fallthrough();
    addCommands(app, settings, !rest.empty());
    const auto failed = [&app] { return app.got_subcommand("run") ? runFailed : exitError; };
    try {
        std::reverse(arguments.begin(), arguments.end()); // CLI11 expects this order
        app.parse(std::move(arguments));
        if (const char* variable = std::getenv("REDISLOCK_URL"); url->empty() && variable != nullptr) {
            throw CLI::ValidationError("REDISLOCK_URL is empty: it must be unset, or the address of a server");
        }
        takeRest(*app.get_subcommands().front(), rest, settings);
        const int status = settings.perform(settings);
        flushOutput();
        return status;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exitFine : failed();
    } catch (const std::exception& error) {
        complain(error.what());
        return failed();
    }
}

} // namespace

} // namespace redislock::tool

int main(int argc, char** argv)
{
    return redislock::tool::main({argv + 1, argv + std::max(argc, 1)});
}
