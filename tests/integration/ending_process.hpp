/// @file
/// Another process that ends, in one of many ways, while many of its calls wait.
#pragma once

#include "integration/role_process.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A process with one client that has an object for which many of its own calls wait. It says `taken` and then
/// `waiting`. After `end` it releases the object and ends at once in its way. If the process is still alive then, it
/// says how often it could not give back what its calls had got.
class EndingProcess : public RoleProcess {
public:
    static constexpr std::string_view role = "--ending";

    /// Which object is taken and waited for, and how.
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

    /// The name of a member of the process' group.
    static std::string member(const std::string& name, int number) { return name + ":" + std::to_string(number); }
    static bool hasContext(Form form);
};

/// The main function of such a process.
int runEnding(const std::vector<std::string>& arguments);

} // namespace redislock::test
