/// @file
/// How a lease goes from one caller of a client to the next without a request.
#pragma once

#include "logic/lock/hold.hpp"

#include <cstdint>

namespace redislock::detail {

class Core;

/// Passes holds on inside a client. The holder stays: in Redis nothing changes, and here its `Hold`, with the deadline
/// and the renewals, becomes that of the next caller, with a level, stop sources and a beginning of its own. Nobody
/// else has a reference to it that counts: whoever ended the last level has dropped it, and renewals mean the holder.
class Passing {
public:
    explicit Passing(Core& core) noexcept : core_(core) {}

    /// The owner of a valid hold ends a level: passes the hold on, if that was the last one and may be.
    /// @return whether it did: the hold is another's now.
    bool passOn(Hold& hold, std::uint32_t level);

private:
    void give(Hold& hold, Waiter& next);

    Core& core_;
};

} // namespace redislock::detail
