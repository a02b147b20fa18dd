/// @file
/// A second process of this program, in another role.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// Another process of this program that follows the commands of a test, one word on each line, and answers by lines.
/// The destructor ends it at once. Thread safety: unsafe.
class RoleProcess {
public:
    /// Starts the process. @param arguments of the program; the first one is the role, which main() knows.
    explicit RoleProcess(std::vector<std::string> arguments);
    RoleProcess(const RoleProcess&) = delete;
    RoleProcess& operator=(const RoleProcess&) = delete;
    ~RoleProcess();

    /// The next line that the process says; empty if none comes in time or if the process has ended.
    std::string line(std::chrono::milliseconds timeout = std::chrono::seconds(8));
    /// Sends a word and returns the answer.
    std::string ask(std::string_view word);
    /// Sends a word that is not answered.
    void tell(std::string_view word);

    /// Whether all threads of the process sleep just now: then it has handled all commands.
    [[nodiscard]] bool sleeps() const;

    /// Sends SIGSTOP; returns when the process has stopped.
    void freeze();
    /// Sends SIGCONT.
    void thaw();
    /// Sends SIGKILL; returns when the process is gone.
    void kill();
    /// Waits for the end of the process. @return its exit status; -1 if a signal ended it, -2 if it goes on.
    int exitStatus(std::chrono::milliseconds timeout = std::chrono::seconds(8));

private:
    pid_t pid_ = 0;
    int input_ = -1;  // we write
    int output_ = -1; // we read
    std::string buffer_;
};

/// Says a line to the test; called in a process with a role.
void say(const std::string& line);

} // namespace redislock::test
