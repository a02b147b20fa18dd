/// @file
/// The inside of locks and guards.
#pragma once

#include "client/async_calls.hpp"
#include "client/engine.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/lock.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/retry_policy.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace redislock::detail {

struct LockAccess {
    static LockGuard guard(Acquired acquired) { return LockGuard(std::move(acquired)); }
    static const HoldRef& hold(const LockGuard& guard) noexcept { return guard.hold_; }
    static NamedLock& named(const Lock& lock) noexcept { return *lock.state_; }
    static const GroupState& group(const GroupLock& lock) noexcept { return *lock.state_; }
    static Engine& engine(const Lock& lock) noexcept { return engineOf(*lock.state_); }
    /// What an acquire of the lock is asked for. @param retry null: as the lock itself waits
    static AcquireOrder order(const Lock& lock, Wait wait, Lease lease, EndedBy endedBy,
                              const std::shared_ptr<const RetryPolicy>& retry = nullptr,
                              std::exception_ptr* thrown = nullptr)
    {
        return {wait, lease, endedBy, retry ? retry : lock.retry_, thrown, lock.durability_};
    }
    /// Acquires a member, as the lock itself would.
    static void acquireForGroup(const Lock& lock, Wait wait, Lease lease, LockHandler handler)
    {
        AsyncCalls::acquire(lock.state_, order(lock, wait, lease, EndedBy::group), std::move(handler));
    }
};

} // namespace redislock::detail
