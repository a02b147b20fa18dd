/// @file
/// Other processes with many waiters for one lock.
#pragma once

#include "integration/role_process.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// For things that take long on a slow machine.
inline constexpr std::chrono::seconds patience{60};

/// A process with one client and as many waiters as the test asks for; every second waiter is a thread, the others are
/// asynchronous calls. Its first line is the client's id. It answers
///  - `cancel`: how many of its asynchronous calls it has cancelled, one in five of them
///  - `reading`: how many of its readers have been let in
class CrowdProcess : public RoleProcess {
public:
    static constexpr std::string_view role = "--crowd";

    /// What the waiters of the process want.
    enum class Wants {
        fairLock, ///< each adds "<holder> <us since 1970>" to the list servedKey(), by what Redis says, and leaves
        readLock, ///< each stays until `leave`
    };

    CrowdProcess(const std::string& url, const std::string& name, Wants wants, std::chrono::milliseconds pollInterval);

    /// Starts @p count more waiters at once.
    void join(std::size_t count) { tell("join " + std::to_string(count)); }

    static std::string servedKey(const std::string& name) { return name + ":served"; }
};

/// The crowd's main function.
int runCrowd(const std::vector<std::string>& arguments);

} // namespace redislock::test
