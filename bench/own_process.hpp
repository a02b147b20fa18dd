/// @file
/// A second process, of this program or of another.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redislock::bench {

/// A second process, with pipes to its standard input and from its standard output.
///
/// The destructor sends it SIGTERM. Another end of this process closes its standard input; with endWithParent() the
/// kernel sends it SIGTERM then.
class OwnProcess {
public:
    /// Starts the process. @param program a path, or a name that is looked up in PATH; by default this program.
    /// @throws std::system_error when that fails.
    explicit OwnProcess(std::vector<std::string> arguments, const char* program = "/proc/self/exe");
    OwnProcess(const OwnProcess&) = delete;
    OwnProcess& operator=(const OwnProcess&) = delete;
    /// Ends the process and waits until it has ended.
    ~OwnProcess();

    /// @throws std::runtime_error when the process has ended.
    void write(std::span<const std::byte> bytes) const;
    /// Reads the available bytes, waiting for the first.
    /// @return the number of bytes; 0: the process has ended, or a signal came.
    [[nodiscard]] std::size_t read(std::span<std::byte> bytes) const;

    void signal(int number) const noexcept;
    /// Waits until the process has ended. @return its exit status; 128 plus the number of a signal that ended it.
    int awaitEnd() noexcept;

private:
    pid_t pid_ = 0;
    int toIt_ = -1;
    int fromIt_ = -1;
};

/// Called by the second process: it then ends when the first process does.
void endWithParent() noexcept;

} // namespace redislock::bench
