/// @file
/// Another program, run as if it had been started instead of this one.
#pragma once

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redislock::tool {

/// The signals that this program looks at one by one, and what it inherited of them.
class Signals {
public:
    /// Keeps them back, in all threads that are started later.
    Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

    /// Readable when one has come.
    [[nodiscard]] int handle() const noexcept { return handle_; }

    struct Come {
        int signal = 0;         ///< 0: none
        bool byKernel = false;  ///< the terminal's, which all processes in front got
        bool isIgnored = false; ///< see isIgnored()
    };
    [[nodiscard]] Come next() const noexcept;

    /// What a program that is started must find. Between fork and exec.
    void restore() const noexcept;

private:
    sigset_t before_{};
    sigset_t ignored_{};
    struct sigaction childAction_ {};
    int handle_ = -1;
};

/// Whether a signal does nothing to this process: who started it may have had that in mind, as nohup has. Such a signal
/// is delivered all the same where it is blocked.
bool isIgnored(int signal) noexcept;

/// Stops this process as Ctrl-Z does: not where no shell could let it go on. SIGTSTP must be blocked.
void stopByTerminal() noexcept;

/// The program and all that it starts. **Thread safety**: none.
class Command {
public:
    /// What became of it.
    enum class Event { none, stopped, ended };

    /// Starts it: in the same process group, with what this program inherited. It is killed when this thread ends
    /// without having waited for it. @throws std::system_error when there can be no process.
    Command(const std::vector<std::string>& words, const std::vector<std::string>& environment, const Signals& signals);

    /// Why it could not be run; 0 when it could.
    [[nodiscard]] int error() const noexcept { return error_; }
    /// Looks what happened, without waiting.
    Event look();
    /// As of a shell: what it returned, or 128 + its signal.
    [[nodiscard]] int status() const noexcept { return status_; }
    /// The signal that ended it; 0: none did.
    [[nodiscard]] int endSignal() const noexcept { return endSignal_; }
    /// The signal that stopped it.
    [[nodiscard]] int stopSignal() const noexcept { return stopSignal_; }

    /// Sends it, and nobody else, a signal.
    void forward(int signal) const noexcept;
    /// Sends one to it and all that it started, whatever that has become, and what did not go to another reaper.
    void signalAll(int signal) const;
    /// Ends it and all that it started.
    void killAll() const;

private:
    [[nodiscard]] std::set<pid_t> processes() const;

    std::set<pid_t> others_; ///< children of this process that it did not start
    pid_t process_ = -1;
    int error_ = 0;
    int status_ = 0;
    int endSignal_ = 0;
    int stopSignal_ = 0;
};

} // namespace redislock::tool
