/// @file
/// What an acquire is asked for, and gives.
#pragma once

#include "redislock/config.hpp"
#include "redislock/detail/logic/hold_levels.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/retry_policy.hpp"

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
    std::shared_ptr<const RetryPolicy> retry{}; ///< when it asks again; null: when it is told
    std::exception_ptr* thrown = nullptr;       ///< where what the policy throws is kept; null: it is not
};

/// How long Redis is to keep a lock of that lease.
inline std::chrono::milliseconds leaseTime(const Config& config, Lease lease) noexcept
{
    return lease.isRenewed() ? config.watchdogTimeout : lease.fixed();
}

/// A level that was acquired: what a guard, or the thread, later ends.
struct Acquired {
    HoldRef hold; ///< null: not acquired
    std::uint32_t level = 0;
    std::uint64_t token = 0; ///< of a fenced lock
};

} // namespace redislock::detail
