/// @file
/// What an acquire is asked for, and what it gives.
#pragma once

#include "core/hold_levels.hpp"
#include "link/request/backoff.hpp"
#include "redislock/config.hpp"
#include "redislock/durability.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/retry_policy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>

namespace redislock::detail {

/// What an acquire is asked for.
struct AcquireOrder {
    Wait wait;
    Lease lease;
    EndedBy endedBy;
    std::shared_ptr<const RetryPolicy> retry{}; ///< says when to ask again; null: a message does
    std::exception_ptr* thrown = nullptr;       ///< receives what the policy throws; null: that is dropped
    Durability durability;
};

/// How long Redis is to keep a lock of that lease.
inline std::chrono::milliseconds leaseTime(const Config& config, Lease lease) noexcept
{
    return lease.isRenewed() ? config.watchdogTimeout : lease.fixed();
}

/// Whether the lease is in its range, and lasts as long as the durability may take.
inline bool isValid(const AcquireOrder& order, const Config& config) noexcept
{
    const bool isDurable = order.durability.level != Durability::Level::none;
    return order.lease.isValid() && !(isDurable && order.durability.within > leaseTime(config, order.lease));
}

/// Whether a call may be over before the longest pause between two attempts to connect is: then the next attempt comes
/// after the shortest, so that no call that lasts longer than that fails without one.
inline bool isHurried(const Config& config, Wait wait) noexcept
{
    return std::min(wait.span(), config.unreachableAfter) < Backoff::cap;
}

/// A level that was acquired: what a guard, or the thread, later ends.
struct Acquired {
    HoldRef hold; ///< null: not acquired
    std::uint32_t level = 0;
    std::uint64_t token = 0; ///< of a fenced lock
};

} // namespace redislock::detail
