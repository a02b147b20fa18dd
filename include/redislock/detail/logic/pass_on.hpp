/// @file
/// When a lease goes from one caller of a client to the next without a request.
#pragma once

#include "redislock/clock.hpp"

#include <chrono>

namespace redislock::detail {

/// So long after Redis granted the lock to a holder its hand-overs go through Redis again: a lock that Redis has lost
/// is found then, and not only by the next renewal.
inline constexpr std::chrono::milliseconds longestPassing{100};

/// A hold whose last level ends, as far as passing matters.
struct EndingHold {
    TimePoint grantedAt{};  ///< to the holder, by Redis
    TimePoint atRiskFrom{}; ///< its lease
    bool isRenewed = false;
    bool isHeldTooLong = false; ///< it is renewed no more
    bool isMember = false;      ///< of a group
    bool isConfirmed = false;   ///< Redis has it with the count 1, and no request that names the holder is under way
    bool isAnswered = false;    ///< every request that named the holder was answered: no copy of one may still come
};

/// The next caller in the queue.
struct NextCaller {
    bool isRenewed = false; ///< what it asks for
    bool isMember = false;
    bool sleeps = false; ///< and nothing of it is under way, or may be granted
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
