/// @file
/// Leased permits, and the requests of their semaphores.
#pragma once

#include "core/counter/counter.hpp"
#include "redislock/clock.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/unlocked.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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

/// Waits for a permit. Refused for an impossible lease. @param id of the permit, never used for another: 32 hex digits
CounterOrder permitOrder(NamedCounter& counter, const std::string& id, Wait wait, Lease lease);
/// A granted permit, as this client keeps it.
std::shared_ptr<PermitHold> grantedPermit(NamedCounter& counter, const std::string& id, Lease lease,
                                          const CounterOutcome& outcome);
CounterRequest<bool> updateRequest(NamedCounter& counter, const std::string& id, Lease lease);
CounterRequest<std::optional<std::chrono::milliseconds>> leaseTimeRequest(NamedCounter& counter, const std::string& id);
/// A number of permits: @p free times those that are free, plus @p taken times those that are taken.
CounterRequest<std::int64_t> countRequest(NamedCounter& counter, std::int64_t free, std::int64_t taken);
CounterRequest<bool> setPermitsRequest(NamedCounter& counter, std::int64_t permits);

/// Gives a permit back by its id. @param keepMs how long copies of requests for it may still arrive; "0": none can.
CounterRequest<Unlocked> permitRelease(NamedCounter& counter, const std::string& id, const std::string& keepMs,
                                       std::chrono::nanoseconds held = {});
/// Gives back a permit of this client.
CounterRequest<Unlocked> permitRelease(PermitHold& hold);
CounterRequest<Unlocked> releaseById(NamedCounter& counter, const std::string& id);

} // namespace redislock::detail
