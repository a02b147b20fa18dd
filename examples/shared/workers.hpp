/// @file
/// Child processes that share one piece of work.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <cerrno>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace example {

/// The signals that Workers::wait() waits for. They are blocked from holdSignals() on, so that none ends the program at
/// a wrong moment.
inline sigset_t awaitedSignals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&set, signal);
    }
    return set;
}

/// To be called once, before there are threads.
inline void holdSignals()
{
    const sigset_t set = awaitedSignals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN); // hiredis writes to connections that the server may have closed
}

/// Processes forked from this one. They end at the latest with this object, or with this program, in whatever way it
/// ends.
///
/// The program must have no second thread and no redislock::Client while processes are started: neither survives a
/// fork.
class Workers {
public:
    enum class Event { allEnded, interrupted, timeOut };

    /// Starts @p count processes; each calls @p work with its number, 0 … @p count - 1, and ends.
    template <class Work>
    Workers(int count, Work work)
    {
        std::fflush(nullptr); // otherwise every child writes the contents of the buffers again
        for (int number = 0; number < count; ++number) {
            const pid_t parent = ::getpid();
            const pid_t pid = ::fork();
            if (pid == 0) {
                runAndExit(parent, number, work);
            }
            if (pid < 0) {
                end();
                throw std::system_error(errno, std::generic_category(), "cannot start a process");
            }
            pids_.push_back(pid);
        }
    }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers() { end(); }

    /// Waits until all processes have ended, until a signal asks the program to end, or until @p time is over.
    Event wait(std::chrono::milliseconds time)
    {
        const timespec limit{static_cast<std::time_t>(time.count() / 1000),
                             static_cast<long>(time.count() % 1000) * 1'000'000};
        const sigset_t set = awaitedSignals();
        const int signal = ::sigtimedwait(&set, nullptr, &limit);
        if (signal > 0 && signal != SIGCHLD) {
            return Event::interrupted;
        }
        for (pid_t& pid : pids_) {
            reap(pid, WNOHANG);
        }
        const bool allEnded = std::ranges::all_of(pids_, [](pid_t pid) { return pid == 0; });
        return allEnded ? Event::allEnded : Event::timeOut;
    }

    /// Whether the process has stopped itself.
    [[nodiscard]] bool hasStopped(int number) const
    {
        siginfo_t info{};
        const pid_t pid = pids_.at(static_cast<std::size_t>(number));
        return pid != 0 && ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == pid;
    }
    /// Stops a process, and waits until it stands still. The process must not have ended.
    void stop(int number) const
    {
        siginfo_t info{};
        const pid_t pid = pids_.at(static_cast<std::size_t>(number));
        ::kill(pid, SIGSTOP);
        ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT);
    }
    /// Lets a stopped process go on.
    void resume(int number) const { ::kill(pids_.at(static_cast<std::size_t>(number)), SIGCONT); }
    /// Ends a process as a crash does; this does not count as a failure.
    void kill(int number)
    {
        const bool failed = anyFailed_;
        pid_t& pid = pids_.at(static_cast<std::size_t>(number));
        ::kill(pid, SIGKILL);
        reap(pid, 0);
        anyFailed_ = failed;
    }

    /// Whether a process ended in another way than by finishing its work.
    [[nodiscard]] bool anyFailed() const noexcept { return anyFailed_; }

private:
    template <class Work>
    [[noreturn]] static void runAndExit(pid_t parent, int number, Work& work)
    {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(2); // the parent had ended before the line above
        }
        const sigset_t set = awaitedSignals();
        sigprocmask(SIG_UNBLOCK, &set, nullptr);
        try {
            work(number);
        } catch (const std::exception& error) {
            fmt::print(stderr, "\nprocess {}: {}\n", number + 1, error.what());
            ::_exit(2);
        }
        ::_exit(0); // not exit(): the child must not close what the parent has open
    }

    /// @param pid is set to 0 if the process has ended.
    void reap(pid_t& pid, int options)
    {
        int status = 0;
        if (pid != 0 && ::waitpid(pid, &status, options) == pid) {
            anyFailed_ = anyFailed_ || status != 0;
            pid = 0;
        }
    }

    void end()
    {
        for (const pid_t pid : pids_) {
            if (pid != 0) {
                ::kill(pid, SIGKILL);
            }
        }
        for (pid_t& pid : pids_) {
            reap(pid, 0);
        }
    }

    std::vector<pid_t> pids_; ///< by number; 0 for a process that has ended
    bool anyFailed_ = false;
};

} // namespace example
