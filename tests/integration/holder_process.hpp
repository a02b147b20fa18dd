/// @file
/// Another process that holds a lock and follows the commands of a test.
#pragma once

#include "integration/role_process.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A process that takes the lock and then answers questions:
///  - `state`: "count=N valid=MS stopped=S token=T", for a new stop token and for one taken at the grant
///  - `unlock`: "released", "alreadyLost" ...
///  - `hammer`: counts the key "<name>:count" up 50 times under the lock, not atomically; then "done"
///
/// and follows these commands without an answer: `exit` (std::exit with the lock held, the client never destroyed),
/// `exit-static` (the same with a client that is destroyed during exit), `return` (from main, with a hold of a guard
/// and one of the thread).
class HolderProcess : public RoleProcess {
public:
    static constexpr std::string_view role = "--holder";

    /// Starts the process. @param leaseMs a fixed lease; 0: renewed by a watchdog of @p watchdogMs.
    /// @param kind "plain" or "fair"
    HolderProcess(const std::string& url, const std::string& name, int leaseMs, int watchdogMs,
                  const std::string& kind = "plain");
};

/// The holder's main function.
int runHolder(const std::vector<std::string>& arguments);

} // namespace redislock::test
