/// @file
/// When a lease goes from one caller of a client to the next without a request.
#pragma once

#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>

namespace redislock::detail {

/// When Redis granted the lock to a holder longer ago than this, the next hand-over goes through Redis again. So it is
/// noticed then, and not only at the next renewal, that others came, or that Redis has lost the lock. 10 ms; more where
/// a request takes more than a tenth of that, but at most 100 ms.
constexpr std::chrono::nanoseconds longestPassing(std::chrono::nanoseconds roundTrip) noexcept
{
    using std::chrono::milliseconds;
    return std::clamp<std::chrono::nanoseconds>(10 * roundTrip, milliseconds(10), milliseconds(100));
}

/// A hold whose last level ends, as far as it matters here.
struct EndingHold {
    TimePoint ownUntil{};   ///< when the next hand-over goes through Redis
    TimePoint atRiskFrom{}; ///< when its lease is at risk
    bool isRenewed = false;
    bool isHeldTooLong = false; ///< it is not renewed any more
    bool isMember = false;      ///< of a group
    bool isConfirmed = false;   ///< Redis has it with count 1, and no request that names the holder is under way
    bool isAnswered = false;    ///< every request that named the holder was answered: no copy of one may still come
};

/// The next caller in the queue.
struct NextCaller {
    bool isRenewed = false; ///< whether it asks for a renewed lease
    bool isMember = false;
    bool sleeps = false; ///< and none of its requests is under way, or may be granted
    bool leaves = false;
};

/// Whether the hold is passed on. @param mayFollow whether it is still this client's turn
constexpr bool mayPassOn(const EndingHold& hold, const NextCaller& next, bool mayFollow, TimePoint now) noexcept
{
    const bool isSafe = hold.isRenewed && !hold.isHeldTooLong && now < hold.atRiskFrom && hold.isConfirmed &&
                        hold.isAnswered && !hold.isMember;
    const bool isReady = next.isRenewed && next.sleeps && !next.leaves && !next.isMember;
    return isSafe && isReady && mayFollow && now < hold.ownUntil;
}

} // namespace redislock::detail
