/// @file
/// This program once more, as a process of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redislock::bench {

/// A second process of this program, with pipes to its standard input and from its standard output.
///
/// It ends with this one: it is sent SIGTERM by the destructor, and by the kernel when this process ends any other way.
class OwnProcess {
public:
    /// Starts it. @throws std::system_error when that fails.
    explicit OwnProcess(std::vector<std::string> arguments);
    OwnProcess(const OwnProcess&) = delete;
    OwnProcess& operator=(const OwnProcess&) = delete;
    /// Ends it and waits until it has ended.
    ~OwnProcess();

    /// @throws std::runtime_error when it has ended.
    void write(std::span<const std::byte> bytes) const;
    /// Reads what there is, waiting for the first byte. @return the number of bytes; 0: it has ended, or a signal came.
    [[nodiscard]] std::size_t read(std::span<std::byte> bytes) const;

    void signal(int number) const noexcept;
    /// Waits until it has ended. @return its exit status; 128 and the number of a signal that ended it.
    int awaitEnd() noexcept;

private:
    pid_t pid_ = 0;
    int toIt_ = -1;
    int fromIt_ = -1;
};

/// For the second process: lets it end when the first does.
void endWithParent() noexcept;

} // namespace redislock::bench
