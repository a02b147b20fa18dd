/// @file
/// Another process that ends, in one way or another, while many of its calls wait.
#pragma once

#include "integration/role_process.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A process with one client that has something, which many of its own calls wait for. It says `taken` and then
/// `waiting`; told `end`, it lets go of what it has and ends at once in its way; where that leaves the process alive,
/// it then says how often it could not give back what it had got.
class EndingProcess : public RoleProcess {
public:
    static constexpr std::string_view role = "--ending";

    /// What is taken and waited for, and how.
    enum class Form : std::uint8_t {
        thread,
        guard,
        asynchronous,
        group,
        asynchronousGroup,
        semaphore,
        asynchronousSemaphore,
        permits,
        asynchronousPermits,
        latch,
        asynchronousLatch,
    };
    enum class Way : std::uint8_t { shutdown, destructor, context, exit, kill };

    EndingProcess(const std::string& url, const std::string& name, Form form, Way way)
        : RoleProcess({std::string(role), url, name, std::to_string(static_cast<int>(form)),
                       std::to_string(static_cast<int>(way))})
    {
    }

    /// The members of its group.
    static std::string member(const std::string& name, int number) { return name + ":" + std::to_string(number); }
    static bool hasContext(Form form);
};

/// The main function of such a process.
int runEnding(const std::vector<std::string>& arguments);

} // namespace redislock::test
