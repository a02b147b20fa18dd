/// @file
/// Calls that have ended.
#pragma once

#include "logic/call/call.hpp"

#include <memory>
#include <vector>

namespace redislock::detail {

/// Ended calls, collected under a connection's mutex and reported after it is unlocked.
struct FinishedCalls {
    std::vector<std::shared_ptr<Call>> detached;
    std::vector<std::shared_ptr<Call>> others; ///< destroyed outside the mutex: the last reference may end much
    std::vector<const void*> sleepers;

    [[nodiscard]] bool empty() const noexcept { return detached.empty() && others.empty(); }
    void makeRoom(); ///< for one more call: its end then allocates nothing
    void tell() noexcept;
};

} // namespace redislock::detail
