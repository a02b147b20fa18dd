/// @file
/// Another process whose threads make different calls at the same time.
#pragma once

#include "integration/role_process.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A process with one client and a thread for each kind of blocking call. It says `ready` when the server has the
/// scripts of all calls; after `ask`, when all calls have returned, it answers with their results.
class AskerProcess : public RoleProcess {
public:
    static constexpr std::string_view role = "--asker";
    static constexpr std::size_t askers = 8;
    /// The answer if nothing goes wrong.
    static constexpr std::string_view allWell =
        "tryLock=true lock=true nested=ok unlock=released isLocked=false acquire=true "
        "release=ok countDown=1";

    AskerProcess(const std::string& url, const std::string& name) : RoleProcess({std::string(role), url, name}) {}

    static std::string semaphore(const std::string& name) { return name + ":semaphore"; } ///< must have 5 permits
    static std::string latch(const std::string& name) { return name + ":latch"; }         ///< must be at 2
};

/// The asker's main function.
int runAsker(const std::vector<std::string>& arguments);

} // namespace redislock::test
