// Runs a command while the lock is held.
#include "command.hpp"
#include "settings.hpp"

#include "redislock/detail/protocol/printable.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
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

/// Raised by other threads; can be polled.
class Flag {
public:
    Flag() : handle_(madeHandle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}
    Flag(const Flag&) = delete;
    Flag& operator=(const Flag&) = delete;
    ~Flag() { ::close(handle_); }

    [[nodiscard]] int handle() const noexcept { return handle_; }
    void raise() const noexcept
    {
        const std::uint64_t one = 1;
        (void)!::write(handle_, &one, sizeof one);
    }
    void lower() const noexcept
    {
        std::uint64_t times = 0;
        (void)!::read(handle_, &times, sizeof times);
    }

private:
    int handle_;
};

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

std::string seconds(milliseconds time)
{
    return fmt::format("{:.1f} s", static_cast<double>(time.count()) / 1000);
}

/// The lock, or why there is none.
class Obtaining {
public:
    explicit Obtaining(const FencedLock& lock, const Settings& settings)
    {
        const Wait wait = settings.wait ? Wait(*settings.wait) : waitForever;
        const Lease lease = settings.lease ? Lease(*settings.lease) : keepRenewing;
        thread_ = std::thread([this, lock, wait, lease] {
            try {
                guard_ = LockGuard(lock, wait, lease, stop_.get_token());
            } catch (...) {
                thrown_ = std::current_exception();
            }
            over_.raise();
        });
    }
    Obtaining(const Obtaining&) = delete;
    Obtaining& operator=(const Obtaining&) = delete;
    ~Obtaining()
    {
        if (thread_.joinable()) {
            stop_.request_stop();
            thread_.join();
        }
    }

    /// Waits for the lock. @return the signal that ended the wait; 0: none did. @throws what acquiring threw
    int await(const Signals& signals, LockGuard& guard)
    {
        int endedBy = 0;
        std::array<pollfd, 2> events{{{over_.handle(), POLLIN, 0}, {signals.handle(), POLLIN, 0}}};
        while (events[0].revents == 0 && endedBy == 0) {
            ::poll(events.data(), events.size(), -1);
            for (auto come = signals.next(); come.signal != 0; come = signals.next()) {
                if (come.signal == SIGTSTP) {
                    stopByTerminal();
                } else if (!come.isIgnored && come.signal != SIGCONT && come.signal != SIGCHLD) {
                    endedBy = come.signal;
                }
            }
        }
        stop_.request_stop();
        thread_.join();
        if (thrown_ && endedBy == 0) {
            std::rethrow_exception(thrown_);
        }
        guard = std::move(guard_);
        return endedBy;
    }

private:
    std::stop_source stop_;
    Flag over_;
    LockGuard guard_;
    std::exception_ptr thrown_;
    std::thread thread_;
};

std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>>& more)
{
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const bool isReplaced =
            std::any_of(more.begin(), more.end(), [&](const auto& each) { return text.starts_with(each.first + "="); });
        if (!isReplaced) {
            all.emplace_back(text);
        }
    }
    for (const auto& [name, value] : more) {
        all.push_back(name + "=" + value);
    }
    return all;
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
        const std::stop_callback atRisk(guard_.stopToken(StopAt::atRisk), [this] { risk_.raise(); });
        const std::stop_callback lost(guard_.stopToken(), [this] { risk_.raise(); });
        std::array<pollfd, 3> events{
            {{signals_.handle(), POLLIN, 0}, {risk_.handle(), POLLIN, 0}, {deadline_.handle(), POLLIN, 0}}};
        passEarlySignalsOn();
        while (!hasEnded()) {
            judge();
            ::poll(events.data(), events.size(), -1);
            risk_.lower();
            passSignalsOn();
        }
        return isEnding_;
    }

    [[nodiscard]] const Command& command() const noexcept { return command_; }

private:
    bool hasEnded()
    {
        for (;;) {
            const auto event = command_.look();
            if (event == Command::Event::ended) { // where the lock is the reason, what it started must have ended too
                return !isEnding_ || !command_.isAnyLeft() || (isKilled_ && guard_.validFor().count() == 0);
            }
            if (event == Command::Event::none) {
                return false;
            }
            // the terminal's user stopped the job: the shell waits for this process to stop too
            if (command_.stopSignal() != SIGSTOP && !isEnding_) {
                stopByTerminal();
                judge();
                command_.forward(SIGCONT);
            }
        }
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
            say(settings_, fmt::format("is at risk, and ends in {}: {}", seconds(left), how));
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
        say(settings_, (left.count() == 0 ? std::string("is lost: ") : "ends in " + seconds(left) + ": ") + how);
    }

    /// Forwards the signals that the terminal sent before the command was started.
    void passEarlySignalsOn()
    {
        for (auto come = signals_.next(); come.signal != 0; come = signals_.next()) {
            if (come.signal != SIGCHLD) {
                command_.forward(come.signal);
            }
        }
    }

    void passSignalsOn()
    {
        for (auto come = signals_.next(); come.signal != 0; come = signals_.next()) {
            const bool isOwn = come.signal == SIGCHLD || come.signal == SIGTSTP;
            const bool isForAll = come.byKernel && (come.signal == SIGINT || come.signal == SIGQUIT);
            if (!isOwn && !isForAll) {
                command_.forward(come.signal);
            }
        }
    }

    const Settings& settings_;
    const LockGuard& guard_;
    const Signals& signals_;
    const milliseconds reserve_;
    Flag risk_;
    Deadline deadline_;
    Command command_; // what watches over it is there before it starts
    bool isWarned_ = false;
    bool isEnding_ = false;
    bool isKilled_ = false;
};

/// How a program ended.
struct Ending {
    int status = 0;
    int signal = 0; ///< 0: none ended it
};

Ending supervise(const Settings& settings, const Config& config, const Signals& signals, const Processes& processes,
                 LockGuard& held)
{
    const auto token = std::to_string(static_cast<std::uint64_t>(held.token().value_or(FencingToken{})));
    Watching watching(settings, config, held, signals, processes,
                      environmentWith({{"REDISLOCK_NAME", settings.name}, {"REDISLOCK_TOKEN", token}}));
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
    return wasEnded || how == Unlocked::alreadyLost ? Ending{settings.lostStatus}
                                                    : Ending{command.status(), command.endSignal()};
}

Ending runLocked(const Settings& settings)
{
    const Signals signals;
    const Processes processes; // without them no command is started that could not be ended
    const Client client(settings.url);
    const auto lock = client.getFencedLock(settings.name);
    LockGuard held;
    const int endedBy = Obtaining(lock, settings).await(signals, held);
    if (endedBy != 0) {
        return {128 + endedBy, endedBy};
    }
    if (!held) {
        say(settings, "was not to be had");
        return {settings.notObtainedStatus};
    }
    return supervise(settings, client.config(), signals, processes, held);
}

} // namespace

int run(const Settings& settings)
{
    const auto ending = runLocked(settings);
    if (ending.signal == SIGINT) {
        ::raise(SIGINT); // a shell ends its loop or script only when it sees this
    }
    return ending.status;
}

} // namespace redislock::tool
