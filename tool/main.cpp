// The command-line tool.
#include "options.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::tool {

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

/// Takes what follows the first `--`: a name that may begin with `-`, unless there was one before; then, for run, the
/// other program, with `--` between the two.
/// @param hasMark whether there was a `--`
void takeRest(const CLI::App& command, const std::vector<std::string>& rest, bool hasMark, Settings& settings)
{
    const bool isRun = command.get_name() == "run";
    const auto* name = command.get_options([](const CLI::Option* each) { return each->get_positional(); }).front();
    auto from = rest.begin();
    if (name->count() == 0 && from != rest.end()) {
        (name->get_name() == "PATTERN" ? settings.pattern
         : name->get_name() == "FILE"  ? settings.tokenFile
                                       : settings.name) = *from++;
        hasMark = from != rest.end() && *from == "--";
        from += hasMark ? 1 : 0;
        if (isRun && !hasMark && !settings.name.starts_with('-')) {
            throw CLI::ValidationError("run needs the NAME of a lock before --: redislock run NAME -- COMMAND");
        }
    }
    const std::vector<std::string> words(from, rest.end());
    if (isRun && !settings.command.empty() && hasMark) {
        throw CLI::ValidationError("run takes one command: that of -c, or that behind --");
    }
    if (isRun && words.empty() && hasMark) {
        throw CLI::ValidationError("run needs a command behind --: redislock run NAME -- COMMAND");
    }
    if (isRun && !hasMark && !words.empty()) {
        throw CLI::ValidationError(fmt::format("-- is missing before the command: redislock run -- {} -- {}",
                                               shown(settings.name), shown(words.front())));
    }
    if (!isRun && !words.empty()) {
        throw CLI::ValidationError(command.get_name() + " takes no command behind --");
    }
    if (!words.empty()) {
        settings.command = words;
    }
}

/// What must hold for all options together.
void validate(const CLI::App& command, const Settings& settings)
{
    const auto& name = command.get_name();
    if (name == "kick" && settings.name.empty() && settings.host.empty()) {
        throw CLI::ValidationError("kick needs a NAME, or --host HOST");
    }
    if (name == "lock" && settings.lease && settings.process) {
        throw CLI::ValidationError("lock takes --lease or --process: a lease does not end with a process");
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

/// `help` and `help COMMAND`, `version`: the options that other tools have as commands.
void takeWordsForOptions(std::vector<std::string>& arguments)
{
    if (!arguments.empty() && (arguments.front() == "help" || arguments.front() == "version")) {
        const auto option = "--" + arguments.front();
        arguments.erase(arguments.begin());
        arguments.push_back(option);
    }
}

int failed(const CLI::App& app)
{
    return app.got_subcommand("run") || app.got_subcommand("lock") ? exitFailed : exitError;
}

int main(std::vector<std::string> arguments)
{
    reserveStandardHandles();
    std::setlocale(LC_CTYPE, "");
    Settings settings;
    takeWordsForOptions(arguments);
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    const bool hasMark = mark != arguments.end();
    const std::vector<std::string> rest(hasMark ? mark + 1 : mark, arguments.end());
    arguments.erase(mark, arguments.end());
    CLI::App app("Locks in Redis: holds them for commands, and shows who holds them.", "redislock");
    app.set_version_flag("-V,--version", fmt::format("redislock {}.{}.{}", REDISLOCK_VERSION_MAJOR,
                                                     REDISLOCK_VERSION_MINOR, REDISLOCK_VERSION_PATCH));
    const auto* url =
        app.add_option("-u,--url", settings.url, "The server")->envname("REDISLOCK_URL")->capture_default_str();
    app.require_subcommand(1);
    app.fallthrough();
    addCommands(app, settings, !rest.empty());
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend())); // CLI11 expects this order
        if (const char* variable = std::getenv("REDISLOCK_URL"); url->empty() && variable != nullptr) {
            throw CLI::ValidationError("REDISLOCK_URL is empty: it must be unset, or the address of a server");
        }
        const auto& command = *app.get_subcommands().front();
        takeRest(command, rest, hasMark, settings);
        validate(command, settings);
        const int status = settings.perform(settings);
        flushOutput();
        return status;
    } catch (const CLI::Success& wish) { // help, version
        return app.exit(wish);
    } catch (const CLI::ParseError& error) {
        const auto meant = whatWasMeant(app, arguments);
        complain(meant.empty() ? error.what() : meant);
        return failed(app);
    } catch (const std::exception& error) {
        complain(error.what());
        return failed(app);
    }
}

} // namespace

} // namespace redislock::tool

int main(int argc, char** argv)
{
    return redislock::tool::main({argv + 1, argv + std::max(argc, 1)});
}
