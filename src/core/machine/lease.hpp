/// @file
/// How long leases may be believed.
#pragma once

#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>

namespace redislock::detail {

/// What to take off a lease for clocks that run at different rates, and for Redis' whole milliseconds.
constexpr std::chrono::milliseconds driftOf(std::chrono::milliseconds lease) noexcept
{
    return (lease + std::chrono::milliseconds(99)) / 100 + std::chrono::milliseconds(2);
}

/// Until when a grant may be believed: counted from before its request was sent, whenever the reply came.
constexpr TimePoint deadlineOf(TimePoint sentAt, std::chrono::milliseconds lease) noexcept
{
    return saturatingAdd(sentAt, lease - driftOf(lease));
}

/// How long before the deadline a hold counts as at risk.
constexpr std::chrono::nanoseconds riskMarginOf(std::chrono::nanoseconds lease,
                                                std::chrono::nanoseconds commandTimeout) noexcept
{
    return std::max(lease / 10, std::min(2 * commandTimeout, lease / 4));
}

} // namespace redislock::detail
