/// @file
/// A permit of an expirable semaphore, as its guard and its semaphore know it.
#pragma once

#include "core/counter/counter.hpp"
#include "redislock/clock.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace redislock::detail {

/// Shared by the guard and the callers that change the lease by the id.
struct PermitHold {
    [[nodiscard]] TimePoint validUntil() const noexcept
    {
        return TimePoint(TimePoint::duration(deadline.load(std::memory_order_acquire)));
    }
    void setValidUntil(TimePoint until) noexcept
    {
        deadline.store(until.time_since_epoch().count(), std::memory_order_release);
    }

    std::shared_ptr<NamedCounter> counter;
    std::string id; ///< 32 hex digits
    TimePoint grantedAt{};
    std::atomic<TimePoint::rep> deadline{0};
    std::atomic<std::uint64_t> changes{0}; ///< how often its lease was changed
    /// Its requests (the acquire, changes of the lease) of which a copy may still arrive.
    std::atomic<std::uint32_t> open{0};
};

} // namespace redislock::detail
