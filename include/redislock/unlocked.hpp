/// @file
/// How a hold ended.
#pragma once

#include "redislock/requirements.hpp"

#include <string_view>

namespace redislock {

/// The result of `unlock()` and `LockGuard::release()`. None of them is an error of the caller.
enum class Unlocked {
    /// The lock is free: Redis confirmed it, or no longer had the hold when a release whose answer was lost was
    /// repeated.
    released,
    /// A nested hold was ended; the outer one is still held.
    stillHeld,
    /// The hold had been lost before: its lease was over, or Redis no longer had it. What was done under it may have
    /// overlapped with another holder.
    alreadyLost,
    /// The release was sent or tried, and no answer came, or the server denied it (the user was switched off, for
    /// instance). The library goes on trying in the background while the lease lasts; at the latest the lock is free
    /// when the lease is over.
    unconfirmed,
    /// Another caller of the same client has the lock now: the lease was passed on to it, without a request, since it
    /// waited. For the hold that ended, this is as final as `released`.
    passedOn,
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(Unlocked how) noexcept
{
    switch (how) {
    case Unlocked::released:
        return "released";
    case Unlocked::stillHeld:
        return "stillHeld";
    case Unlocked::alreadyLost:
        return "alreadyLost";
    case Unlocked::unconfirmed:
        return "unconfirmed";
    case Unlocked::passedOn:
        return "passedOn";
    }
    return "unknown";
}

} // namespace redislock
