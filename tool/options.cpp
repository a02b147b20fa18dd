#include "options.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

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

namespace {

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

/// What is held, and how it is waited for.
void addHold(CLI::App& command, Settings& settings)
{
    const auto choose = [&settings](Hold hold) { return [&settings, hold] { settings.hold = hold; }; };
    auto* shared = command.add_flag_callback("-s,--shared", choose(Hold::shared),
                                             "Many may hold it at a time, unless one holds it with --exclusive");
    auto* exclusive = command.add_flag_callback("-x,--exclusive", choose(Hold::writing),
                                                "Nobody else may hold it, neither with --shared nor with --exclusive");
    auto* holders = command
                        .add_option_function<std::int64_t>(
                            "--holders",
                            [&settings](std::int64_t number) {
                                settings.holders = number;
                                settings.hold = Hold::permit;
                            },
                            "At most this many may hold it at a time")
                        ->type_name("N")
                        ->check(CLI::Range(1, 1'000'000));
    shared->excludes(exclusive)->excludes(holders);
    exclusive->excludes(holders);
    addDuration(command, "-w,--wait", "How long to wait, 0 for one attempt; without this: for ever",
                [&settings](auto time) { settings.wait = time; });
    command.add_flag_callback(
        "-n,--nonblock", [&settings] { settings.wait = std::chrono::milliseconds(0); }, "The same as --wait 0");
    command.add_flag("--verbose", settings.isVerbose, "Says how long the wait took, and what is run");
    command.add_flag("-q,--quiet", settings.isQuiet, "Does not say who holds the lock while it waits");
    addStatus(command, "-E,--not-obtained-status", "Exit status when the wait ended without the lock",
              settings.notObtainedStatus);
}

void addRun(CLI::App& run, Settings& settings)
{
    addHold(run, settings);
    addDuration(run, "-l,--lease", "Does not renew the lock: the command is ended before this time is over",
                [&settings](auto time) { settings.lease = time; });
    run.add_option_function<std::string>(
           "-c,--command",
           [&settings](const std::string& text) {
               settings.command = {"/bin/sh", "-c", text};
           },
           "Runs a line of shell instead of what follows --")
        ->type_name("STRING");
    run.add_flag("--no-term", settings.noTerm, "Only warns when the lock is at risk, instead of sending TERM");
    addStatus(run, "--lost-status", "Exit status when the lock was lost, or the command ended because of it",
              settings.lostStatus);
    run.footer(
        "Without a command the lock is held until Ctrl-C.\n"
        "The lock is a fenced one, unless an option says otherwise. The command finds its name in REDISLOCK_NAME and\n"
        "its token in REDISLOCK_TOKEN. When the lock is at risk the command's processes get TERM, and KILL a second\n"
        "before another can have the lock (with a lease below 10 s: a tenth of it before).\n"
        "Exit status: the command's; 128 + signal; 75 the wait ended without the lock; 76 the lock was lost;\n"
        "125 redislock failed; 126 the command cannot be run; 127 there is no such command.");
}

void addSteps(CLI::App& lock, CLI::App& unlock, Settings& settings)
{
    addHold(lock, settings);
    lock.add_option("-f,--token-file", settings.tokenFile, "The file to write, which unlock needs")
        ->type_name("FILE")
        ->required();
    addDuration(lock, "-l,--lease", "Does not renew the lock: it ends after this time, not with a process",
                [&settings](auto time) { settings.lease = time; });
    lock.add_option("-p,--process", settings.process, "The lock ends with this process, instead of with the parent")
        ->type_name("PID")
        ->check(CLI::PositiveNumber);
    lock.footer("Exit status: 0; 75 the wait ended without the lock; 125 redislock failed.");
    unlock.add_option("FILE", settings.tokenFile, "The token file that lock has written")->required();
    addStatus(unlock, "--lost-status", "Exit status when the lock was lost meanwhile", settings.lostStatus);
    unlock.footer("Exit status: 0; 76 the lock was lost meanwhile; 2 the server did not say.");
}

void addList(CLI::App& command, Settings& settings)
{
    static const std::map<std::string, Sort> orders{
        {"name", Sort::name}, {"left", Sort::left}, {"waiters", Sort::waiters}, {"age", Sort::age}};
    command.add_option("PATTERN", settings.pattern, "Which locks: *, ? and [ab] as in Redis")->capture_default_str();
    command
        .add_option_function<std::string>(
            "--sort", [&settings](const std::string& text) { settings.sort = orders.at(text); },
            "By name, time left, number of waiters, or how long the holder has been connected")
        ->type_name("name|left|waiters|age")
        ->check([](const std::string& text) {
            return orders.contains(text) ? std::string()
                                         : "locks are sorted by name, left, waiters or age, not " + text;
        });
    command.add_option("--limit", settings.limit, "Shows at most N")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000));
}

} // namespace

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
    auto* lock =
        add("lock", "Takes a lock for the steps of a script, until unlock or the end of the script", tool::lock);
    auto* unlock = add("unlock", "Releases what lock took", tool::unlock);
    auto* ls = add("ls", "Lists the locks that are held", tool::ls);
    auto* who = add("who", "Says who holds a lock and who waits; status 1: nobody holds it", tool::who);
    auto* watch = add("watch", "Shows the locks that are held, again and again, until Ctrl-C", tool::watch);
    auto* kick =
        add("kick", "Frees a lock, or all of a machine, whoever holds it; shows it and asks first", tool::kick);
    auto* doctor = add("doctor", "Checks whether the server is fit for locks; status 1: it is not", tool::doctor);
    for (auto* command : {run, lock, who}) {
        command->add_option("NAME", settings.name, "The lock")->required(!isNameBehind);
    }
    auto* kicked = kick->add_option("NAME", settings.name, "The lock");
    kick->add_option("--host", settings.host, "All locks that are held on this machine")
        ->type_name("HOST")
        ->excludes(kicked)
        ->check([](const std::string& text) { return text.empty() ? "the name of the machine is empty" : ""; });
    kick->add_flag("-y,--yes", settings.yes, "Does not ask");
    doctor->add_option("NAME", settings.name, "Also checks the rights for the keys of this lock");
    addRun(*run, settings);
    addSteps(*lock, *unlock, settings);
    addList(*ls, settings);
    addList(*watch, settings);
    addDuration(*watch, "-n,--interval", "How often; without this: each second",
                [&settings](auto time) { settings.interval = time; });
    for (auto* command : {ls, who, watch, doctor}) {
        command->add_flag("--json", settings.json, "One JSON object a line");
    }
}

} // namespace redislock::tool
