/// @file
/// Calls that have ended.
#pragma once

#include "logic/call/call.hpp"

#include <memory>
#include <vector>

namespace redislock::detail {

/// Ends of calls, collected under a connection's mutex and told after it.
struct FinishedCalls {
    std::vector<std::shared_ptr<Call>> detached;
    std::vector<std::shared_ptr<Call>> others; ///< destroyed outside the mutex: the last reference may end much
    std::vector<const void*> sleepers;

    [[nodiscard]] bool empty() const noexcept { return detached.empty() && others.empty(); }
    void makeRoom(); ///< for one more: the next end allocates nothing
    void tell() noexcept;
};

} // namespace redislock::detail
