/// @file
/// Runs another program as if it had been started instead of this one.
#pragma once

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redislock::tool {

/// The handle that a system call made. @throws std::system_error when it made none
int madeHandle(int handle, const char* call);

/// The signals that this program reads one by one, and their state when this program was started.
class Signals {
public:
    /// Blocks the signals, also in all threads that are started later.
    Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

    /// Readable when a signal has come.
    [[nodiscard]] int handle() const noexcept { return handle_; }

    struct Come {
        int signal = 0;         ///< 0: none
        bool byKernel = false;  ///< sent by the terminal, to all processes in the foreground
        bool isIgnored = false; ///< see isIgnored()
    };
    [[nodiscard]] Come next() const noexcept;

    /// Restores the signals for a program that is started. Between fork and exec.
    void restore() const noexcept;

private:
    sigset_t before_{};
    sigset_t ignored_{};
    struct sigaction childAction_ {};
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
    /// What has happened to the program.
    enum class Event { none, stopped, ended };

    /// Starts the program: in the same process group, with all that this program inherited. The program is killed if
    /// this thread ends without having waited for it. @throws std::system_error when no process can be made.
    Command(const std::vector<std::string>& words, const std::vector<std::string>& environment, const Signals& signals);

    /// Why the program could not be run; 0 when it could.
    [[nodiscard]] int error() const noexcept { return error_; }
    /// Finds out what has happened, without waiting.
    Event look();
    /// The status as in a shell: what the program returned, or 128 + its signal.
    [[nodiscard]] int status() const noexcept { return status_; }
    /// The signal that ended the program; 0: none did.
    [[nodiscard]] int endSignal() const noexcept { return endSignal_; }
    /// The signal that stopped the program.
    [[nodiscard]] int stopSignal() const noexcept { return stopSignal_; }

    /// Sends a signal to the program, and to no other process.
    void forward(int signal) const noexcept;
    /// Sends a signal to the program and all processes that it started, whatever they have become, unless another
    /// process adopted them.
    void signalAll(int signal) const;
    /// Kills the program and all processes that it started.
    void killAll() const;

private:
    [[nodiscard]] std::set<pid_t> processes() const;

    std::set<pid_t> others_; ///< children of this process that the program did not start
    pid_t process_ = -1;
    int error_ = 0;
    int status_ = 0;
    int endSignal_ = 0;
    int stopSignal_ = 0;
};

} // namespace redislock::tool
