/// @file
/// When a lease goes from one caller of a client to the next without a request.
#pragma once

#include "redislock/clock.hpp"

#include <chrono>

namespace redislock::detail {

/// When Redis granted the lock to a holder longer ago than this, the next hand-over goes through Redis again. So a lock
/// that Redis has lost is noticed then, and not only at the next renewal.
inline constexpr std::chrono::milliseconds longestPassing{100};

/// A hold whose last level ends, as far as it matters here.
struct EndingHold {
    TimePoint grantedAt{};  ///< when Redis granted it to the holder
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
    return isSafe && isReady && mayFollow && now - hold.grantedAt < longestPassing;
}

} // namespace redislock::detail
