/// @file
/// How a release ended.
#pragma once

#include "redislock/requirements.hpp"

#include <string_view>

namespace redislock {

/// The result of `unlock()` and `LockGuard::release()`. None of these results is an error of the caller.
enum class Unlocked {
    /// The lock is free: Redis confirmed the release, or no longer had the hold when a release was repeated because its
    /// answer was lost.
    released,
    /// A nested hold was ended; the outer one is still held.
    stillHeld,
    /// The hold had been lost before: its lease was over, or Redis no longer had it. The work under it may have
    /// overlapped with another holder's.
    alreadyLost,
    /// The release was sent or attempted, but no answer came, or the server denied it (because the user was disabled,
    /// for instance). The library keeps trying in the background while the lease lasts; the lock is free when the lease
    /// is over at the latest.
    unconfirmed,
    /// Another caller of the same client was waiting and has the lock now: the lease was passed on to it without a
    /// request. For the hold that ended, this is as final as `released`.
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
