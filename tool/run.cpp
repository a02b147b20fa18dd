// Runs a command while the lock is held.
#include "command.hpp"
#include "settings.hpp"
#include "table.hpp"

#include "values/printable.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace redislock::tool {

namespace {

using std::chrono::milliseconds;

/// Has those who wait for signals look again. For other threads.
void wake() noexcept
{
    ::kill(::getpid(), SIGCHLD);
}

/// A moment of the boot clock, which goes on while the machine is suspended; can be polled.
class Deadline {
public:
    Deadline() : handle_(madeHandle(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {}
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    ~Deadline() { ::close(handle_); }

    [[nodiscard]] int handle() const noexcept { return handle_; }
    void set(milliseconds fromNow) const noexcept
    {
        itimerspec time{};
        time.it_value.tv_sec = static_cast<std::time_t>(fromNow.count() / 1000);
        time.it_value.tv_nsec = static_cast<long>(fromNow.count() % 1000) * 1'000'000 + 1; // zero would disarm it
        ::timerfd_settime(handle_, 0, &time, nullptr);
    }

private:
    int handle_;
};

/// Writes a line to standard error, or drops it if nobody reads there: the command's end must not wait for that.
void say(const Settings& settings, const std::string& words)
{
    const auto line = fmt::format("redislock: lock \"{}\" {}\n", detail::printable(settings.name, 200), words);
    pollfd error{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&error, 1, 0) == 1 && (error.revents & POLLOUT) != 0) {
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
}

/// Waits for the lock. @return the signal that ended the wait; 0: none did. @throws what acquiring threw
int obtain(const FencedLock& lock, const Settings& settings, const Signals& signals, LockGuard& guard)
{
    std::packaged_task<LockGuard(std::stop_token)> acquire([&](std::stop_token stop) {
        return LockGuard(lock, settings.wait ? Wait(*settings.wait) : waitForever,
                         settings.lease ? Lease(*settings.lease) : keepRenewing, std::move(stop));
    });
    auto obtained = acquire.get_future();
    const std::jthread thread([&acquire](std::stop_token stop) {
        acquire(std::move(stop));
        wake();
    });
    while (obtained.wait_for(milliseconds(0)) != std::future_status::ready) {
        pollfd event{signals.handle(), POLLIN, 0};
        ::poll(&event, 1, -1);
        const auto come = signals.next();
        if (come.signal == SIGTSTP) {
            stopByTerminal();
        } else if (come.signal != 0 && !come.isIgnored && come.signal != SIGCONT && come.signal != SIGCHLD) {
            return come.signal;
        }
    }
    guard = obtained.get();
    return 0;
}

/// Watches over a command until it has ended.
class Watching {
public:
    /// Starts the command.
    Watching(const Settings& settings, const Config& config, const LockGuard& guard, const Signals& signals,
             const Processes& processes, const std::vector<std::string>& environment)
        : settings_(settings),
          guard_(guard),
          signals_(signals),
          reserve_(
              std::min<milliseconds>(std::chrono::seconds(1), settings.lease.value_or(config.watchdogTimeout) / 10)),
          command_(settings.command, environment, signals, processes)
    {
    }

    /// @return whether the command was ended because of the lock.
    bool untilEnd()
    {
        const std::stop_callback atRisk(guard_.stopToken(StopAt::atRisk), wake);
        const std::stop_callback lost(guard_.stopToken(), wake);
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
               (!isEnding_ || !command_.isAnyLeft() || (isKilled_ && guard_.validFor().count() == 0));
    }

    /// Does what the remaining time of the lock demands.
    void judge()
    {
        auto left = guard_.validFor();
        if (left <= reserve_) {
            kill();
            left = guard_.validFor();
            deadline_.set(left.count() == 0 ? milliseconds(1000) : left);
            return;
        }
        if (guard_.stopToken(StopAt::atRisk).stop_requested() && !std::exchange(isWarned_, true)) {
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
        const auto left = guard_.validFor();
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
    const LockGuard& guard_;
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
              LockGuard& held)
{
    const auto token = std::to_string(static_cast<std::uint64_t>(held.token().value_or(FencingToken{})));
    std::vector<std::string> environment{"REDISLOCK_NAME=" + settings.name, "REDISLOCK_TOKEN=" + token};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        environment.emplace_back(*variable);
    }
    Watching watching(settings, config, held, signals, processes, environment);
    const bool wasEnded = watching.untilEnd();
    const auto& command = watching.command();
    std::error_code ec;
    const auto how = held.release(ec);
    if (how == Unlocked::unconfirmed) {
        say(settings, "was given back, but the server did not answer: it is free when its lease is over");
    }
    if (how == Unlocked::alreadyLost && !wasEnded) {
        say(settings, "was lost before it could be given back");
    }
    if (command.error() != 0) {
        complain(detail::printable(settings.command.front()) + ": " + std::generic_category().message(command.error()));
    }
    if (wasEnded || how == Unlocked::alreadyLost) {
        return settings.lostStatus;
    }
    return command.endSignal() != 0 ? endedBy(command.endSignal()) : command.status();
}

} // namespace

int run(const Settings& settings)
{
    ::unsetenv("REDISLOCK_NAME"); // of an outer run; no other thread reads the environment yet
    ::unsetenv("REDISLOCK_TOKEN");
    const Signals signals;
    const Processes processes; // without them no command is started that could not be ended
    const Client client(settings.url);
    LockGuard held;
    if (const int signal = obtain(client.getFencedLock(settings.name), settings, signals, held)) {
        return endedBy(signal);
    }
    if (!held) {
        say(settings, "was not to be had");
        return settings.notObtainedStatus;
    }
    return supervise(settings, client.config(), signals, processes, held);
}

} // namespace redislock::tool
