/// @file
/// Runs another program as if it had been started instead of this one.
#pragma once

#include "processes.hpp"

#include <array>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redislock::tool {

/// The handle that a system call made. @throws std::system_error when it made none
int madeHandle(int handle, const char* call);

/// The signals that this program reads one by one: all that end a program or stop it from its terminal, but for those
/// that tell of its own faults; and their state when this program was started.
class Signals {
public:
    /// Blocks the signals, also in all threads that are started later. From then on a pipe that nobody reads and a file
    /// at its limit are errors of the call that writes.
    Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

    /// Readable when a signal has come.
    [[nodiscard]] int handle() const noexcept { return handle_; }

    struct Come {
        int signal = 0;         ///< 0: none
        bool byKernel = false;  ///< INT and QUIT: sent by the terminal, to all processes in the foreground
        bool isIgnored = false; ///< see isIgnored()
    };
    [[nodiscard]] Come next() const noexcept;

    /// Restores the signals for a program that is started. Between fork and exec.
    void restore() const noexcept;

private:
    sigset_t before_{};
    sigset_t ignored_{};
    std::array<struct sigaction, 3> actions_{};
    int handle_ = -1;
};

/// Whether this process ignores a signal: the program that started it may have wanted that, as nohup does. An ignored
/// signal is still delivered to a process that blocks it.
bool isIgnored(int signal) noexcept;

/// Stops this process as Ctrl-Z does, unless there is no shell that could make it go on. SIGTSTP must be blocked.
void stopByTerminal() noexcept;

/// The program and all processes that it starts. **Thread safety**: none.
class Command {
public:
    /// Starts the program: in the same process group, with all that this program inherited. The program is killed if
    /// this thread ends without having waited for it. Does not wait until the program runs.
    /// @throws std::system_error when no process can be made, or none be adopted.
    Command(const std::vector<std::string>& words, const std::vector<std::string>& environment, const Signals& signals,
            const Processes& all);
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;
    /// Kills what has not ended, if the program has not.
    ~Command();

    /// Finds out what has happened, without waiting. @return the signal that stopped the program; 0: none did
    int look();
    [[nodiscard]] bool hasEnded() const noexcept { return process_ == -1; }
    /// Why the program, which has ended, could not be run; 0 when it could.
    [[nodiscard]] int error() const noexcept { return error_; }
    /// What the program returned.
    [[nodiscard]] int status() const noexcept { return status_; }
    /// The signal that ended the program; 0: none did.
    [[nodiscard]] int endSignal() const noexcept { return endSignal_; }

    /// Sends a signal to the program, and to no other process.
    void forward(int signal) const noexcept;
    /// Sends a signal to the program and all processes that it started, whatever they have become, unless another
    /// process adopted them. @return those for which that is not permitted
    std::set<pid_t> signalAll(int signal) const;
    /// Kills the program and all processes that it started. Waits a second at most until they have ended.
    void killAll();
    /// Whether the program or anything that it started is there still, even if /proc does not show it.
    bool isAnyLeft();
    /// The program and all processes that it started, as /proc shows them.
    [[nodiscard]] std::set<pid_t> processes() const;

private:
    const Processes& all_;
    std::set<pid_t> others_; ///< children of this process that the program did not start
    pid_t process_ = -1;
    int failure_ = -1; ///< where the program's error can be read
    int error_ = 0;
    int status_ = 0;
    int endSignal_ = 0;
};

} // namespace redislock::tool
