/// @file
/// How a lease goes from one caller of a client to the next without a request.
#pragma once

#include "core/hold.hpp"

#include <cstdint>

namespace redislock::detail {

class Core;

/// Lets waiters inherit holds of their client. The holder stays the same: in Redis nothing changes. Its `Hold` keeps
/// deadline and renewals and becomes that of the next caller, with a level, stop sources and a beginning of its own. No
/// other reference to the hold matters: whoever ended the last level has dropped theirs, and renewals mean the holder.
class Inheritance {
public:
    explicit Inheritance(Core& core) noexcept : core_(core) {}

    /// The owner of a valid hold ends a level. Lets the next waiter inherit the hold if that was its last level and the
    /// rules allow it. @return whether it did: the hold is another caller's now.
    bool letInherit(Hold& hold, std::uint32_t level);

private:
    void give(Hold& hold, Waiter& next);

    Core& core_;
};

} // namespace redislock::detail
