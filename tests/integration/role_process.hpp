/// @file
/// This program, started once more in another role.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// Another process of this program that does what a test tells it, a word a line, and answers by lines. The destructor
/// ends it at once. Thread safety: unsafe.
class RoleProcess {
public:
    /// Starts it. @param arguments of the program; the first one is the role, which main() knows.
    explicit RoleProcess(std::vector<std::string> arguments);
    RoleProcess(const RoleProcess&) = delete;
    RoleProcess& operator=(const RoleProcess&) = delete;
    ~RoleProcess();

    /// The next line it says; empty when none comes in time or when it has ended.
    std::string line(std::chrono::milliseconds timeout = std::chrono::seconds(8));
    /// Sends a word and gives the line it answers.
    std::string ask(std::string_view word);
    /// Sends a word that is not answered.
    void tell(std::string_view word);

    /// Whether all its threads sleep just now: then it has done with everything that came.
    [[nodiscard]] bool sleeps() const;

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

/// Says a line to the test. Of a process in a role.
void say(const std::string& line);

} // namespace redislock::test
