/// @file
/// Another process that holds a lock, and does what a test tells it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// This program, started once more as a holder. It takes the lock and then answers questions, a line each. The destructor
/// ends it at once. Thread safety: unsafe.
class HolderProcess {
public:
    static constexpr std::string_view role = "--holder";

    /// Starts it. @param leaseMs a fixed lease; 0: renewed by a watchdog of @p watchdogMs.
    HolderProcess(const std::string& url, const std::string& name, int leaseMs, int watchdogMs);
    HolderProcess(const HolderProcess&) = delete;
    HolderProcess& operator=(const HolderProcess&) = delete;
    ~HolderProcess();

    /// The next line it says; empty when none comes in time or when it has ended.
    std::string line(std::chrono::milliseconds timeout = std::chrono::seconds(8));
    /// Sends a word and gives the line it answers:
    ///  - `state`: "count=N valid=MS stopped=S token=T", of a fresh token and of one taken at the grant
    ///  - `unlock`: "released", "alreadyLost" ...
    ///  - `hammer`: counts the key "<name>:count" up 50 times under the lock, not atomically; then "done"
    std::string ask(std::string_view word);
    /// Sends a word that is not answered: `exit` (std::exit with the lock held, the client never destroyed), `exit-static`
    /// (the same with a client that is destroyed then), `return` (from main, with a guard's and the thread's hold).
    void tell(std::string_view word);

    /// SIGSTOP; returns when it has stopped.
    void freeze();
    /// SIGCONT.
    void thaw();
    /// SIGKILL; returns when it is gone.
    void kill();
    /// Waits for its end. @return its exit status; -1 when a signal ended it, -2 when it goes on.
    int exitStatus(std::chrono::milliseconds timeout = std::chrono::seconds(8));

private:
    pid_t pid_ = 0;
    int input_ = -1;  // we write
    int output_ = -1; // we read
    std::string buffer_;
};

/// The holder's main function.
int runHolder(const std::vector<std::string>& arguments);

} // namespace redislock::test
