// Runs a command while the lock is held.
#include "command.hpp"
#include "holding.hpp"
#include "settings.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;

namespace redislock::tool {

namespace {

using std::chrono::milliseconds;

/// Watches over a command until it has ended.
class Watching {
public:
    /// Starts the command.
    Watching(const Settings& settings, const Config& config, const Holding& holding, const Signals& signals,
             const Processes& processes, const std::vector<std::string>& environment)
        : settings_(settings),
          holding_(holding),
          signals_(signals),
          reserve_(
              std::min<milliseconds>(std::chrono::seconds(1), settings.lease.value_or(config.watchdogTimeout) / 10)),
          command_(settings.command, environment, signals, processes)
    {
    }

    /// @return whether the command was ended because of the lock.
    bool untilEnd()
    {
        std::array<pollfd, 2> events{{{signals_.handle(), POLLIN, 0}, {deadline_.handle(), POLLIN, 0}}};
        passSignalsOn(true);
        while (!hasEnded()) {
            judge();
            ::poll(events.data(), events.size(), -1);
            passSignalsOn(false);
        }
        return isEnding_;
    }

    [[nodiscard]] const Command& command() const noexcept { return command_; }

private:
    bool hasEnded()
    {
        while (const int signal = command_.look()) {
            // the terminal's user stopped the job: the shell waits for this process to stop too
            if (signal != SIGSTOP && !isEnding_) {
                stopByTerminal();
                judge();
                command_.forward(SIGCONT);
            }
        }
        // where the lock is the reason, what it started must have ended too
        return command_.hasEnded() &&
               (!isEnding_ || !command_.isAnyLeft() || (isKilled_ && holding_.validFor().count() == 0));
    }

    /// Does what the remaining time of the lock demands.
    void judge()
    {
        auto left = holding_.validFor();
        if (left <= reserve_) {
            kill();
            left = holding_.validFor();
            deadline_.set(left.count() == 0 ? milliseconds(1000) : left);
            return;
        }
        if (holding_.isAtRisk() && !std::exchange(isWarned_, true)) {
            std::string how = "the command goes on until it is killed";
            if (!settings_.noTerm) {
                isEnding_ = true;
                const auto refused = command_.signalAll(SIGTERM);
                command_.signalAll(SIGCONT); // a stopped process would not notice TERM
                how = refused.empty()
                          ? "the command gets TERM"
                          : fmt::format("TERM is not permitted for its processes {}", fmt::join(refused, " "));
            }
            say(settings_, fmt::format("is at risk, and ends in {}: {}", inWords(left), how));
        }
        deadline_.set(left - reserve_);
    }

    void kill()
    {
        if (!command_.isAnyLeft()) {
            return; // it ended by itself meanwhile
        }
        isEnding_ = true;
        if (std::exchange(isKilled_, true)) {
            command_.signalAll(SIGKILL);
            return;
        }
        command_.killAll();
        std::string how = "the command is killed";
        if (command_.isAnyLeft()) {
            const auto rest = command_.processes();
            how = rest.empty() ? std::string("KILL has not ended processes that /proc does not show")
                               : fmt::format("KILL has not ended processes {}", fmt::join(rest, " "));
        }
        const auto left = holding_.validFor();
        say(settings_, (left.count() == 0 ? std::string("is lost: ") : "ends in " + inWords(left) + ": ") + how);
    }

    /// @param areEarly whether the terminal sent them before the command was started
    void passSignalsOn(bool areEarly)
    {
        for (auto come = signals_.next(); come.signal != 0; come = signals_.next()) {
            const bool isForAll = come.byKernel && (come.signal == SIGINT || come.signal == SIGQUIT);
            if (come.signal != SIGCHLD && (areEarly || (come.signal != SIGTSTP && !isForAll))) {
                command_.forward(come.signal);
            }
        }
    }

    const Settings& settings_;
    const Holding& holding_;
    const Signals& signals_;
    const milliseconds reserve_;
    Deadline deadline_;
    Command command_; // what watches over it is there before it starts
    bool isWarned_ = false;
    bool isEnding_ = false;
    bool isKilled_ = false;
};

/// The status for the end by a signal. This process ends by INT too, as soon as its signals are restored: a shell ends
/// its loop or script only when it sees that.
int endedBy(int signal)
{
    if (signal == SIGINT) {
        ::raise(SIGINT);
    }
    return 128 + signal;
}

int supervise(const Settings& settings, const Config& config, const Signals& signals, const Processes& processes,
              Holding& holding)
{
    std::vector<std::string> environment{"REDISLOCK_NAME=" + settings.name};
    if (const auto token = holding.token()) {
        environment.push_back("REDISLOCK_TOKEN=" + std::to_string(static_cast<std::uint64_t>(*token)));
    }
    for (char** variable = environ; *variable != nullptr; ++variable) {
        environment.emplace_back(*variable);
    }
    if (settings.isVerbose) {
        complain("executing " + shown(settings.command.front()));
    }
    Watching watching(settings, config, holding, signals, processes, environment);
    const bool wasEnded = watching.untilEnd();
    const auto& command = watching.command();
    const auto how = giveBack(holding, settings, wasEnded);
    if (command.error() != 0) {
        complain(shown(settings.command.front()) + ": " + std::generic_category().message(command.error()));
    }
    if (wasEnded || how == Unlocked::alreadyLost) {
        return settings.lostStatus;
    }
    return command.endSignal() != 0 ? endedBy(command.endSignal()) : command.status();
}

/// Holds it until a signal comes: that is the end that the user wants.
int holdAlone(const Settings& settings, const Signals& signals, Holding& holding)
{
    const auto token = holding.token();
    fmt::print("holding {}{} until Ctrl-C\n", inQuotes(settings.name),
               token ? fmt::format(", token {},", static_cast<std::uint64_t>(*token)) : std::string());
    flushOutput();
    const bool isLost = holdOn(holding, settings, signals);
    const auto how = giveBack(holding, settings, isLost);
    return isLost || how == Unlocked::alreadyLost ? settings.lostStatus : exitFine;
}

} // namespace

int run(const Settings& settings)
{
    ::unsetenv("REDISLOCK_NAME"); // of an outer run; no other thread reads the environment yet
    ::unsetenv("REDISLOCK_TOKEN");
    const Signals signals;
    const Processes processes; // without them no command is started that could not be ended
    const Client client(settings.url);
    const auto [holding, signal] = obtain(client, settings, signals);
    if (signal != 0) {
        return endedBy(signal);
    }
    if (!holding) {
        return settings.notObtainedStatus;
    }
    return settings.command.empty() ? holdAlone(settings, signals, *holding)
                                    : supervise(settings, client.config(), signals, processes, *holding);
}

} // namespace redislock::tool
