/// @file
/// What the library does, told to the program.
#pragma once

#include "redislock/export.hpp"
#include "redislock/unlocked.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace redislock {

/// What an event is about. The views are valid during the call only.
struct LockEvent {
    /// The lock's name, as given.
    std::string_view name;
    /// The holder in Redis, `<client id>:<holder id>`; empty where no hold is meant.
    std::string_view holder;
};

/// Receives what happens to the locks of one client: for logs, metrics, alarms. Derive and override what is needed; the
/// default does nothing. Install with `Config::observer`.
///
/// **Thread safety**: all functions are called on the client's background thread, one at a time, in the order in which
/// things happened, never under a lock of the library. **Blocking**: they must not block: renewals wait behind them.
/// A library call in them that would have to wait fails with `Errc::wouldDeadlock`; `unlock()` and a guard's end are
/// allowed and do not wait. They must not throw (`noexcept`). **Lifetime**: the client keeps the observer alive.
class REDISLOCK_EXPORT Observer {
public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer() = default;

    /// A lock was acquired. @param waited from the call to the grant. @param attempts requests sent to Redis for it.
    virtual void acquired(const LockEvent&, std::chrono::nanoseconds /*waited*/, std::uint32_t /*attempts*/) noexcept {}
    /// A call ended without the lock because others held it.
    virtual void contended(const LockEvent&, std::chrono::nanoseconds /*waited*/, std::uint32_t /*attempts*/) noexcept
    {
    }
    /// The watchdog renewed the lease. @param took from sending the renewal to its answer.
    virtual void renewed(const LockEvent&, std::chrono::nanoseconds /*took*/) noexcept {}
    /// A renewal failed and is tried again while the lease lasts.
    virtual void renewalFailed(const LockEvent&, std::error_code) noexcept {}
    /// The hold ends soon unless a renewal succeeds. @param validFor the time left.
    virtual void atRisk(const LockEvent&, std::chrono::nanoseconds /*validFor*/) noexcept {}
    /// The hold is lost; its stop token is stopped.
    virtual void lost(const LockEvent&) noexcept {}
    /// An outermost hold was ended. @param held from the grant to its end.
    virtual void released(const LockEvent&, Unlocked, std::chrono::nanoseconds /*held*/) noexcept {}
    /// A release got no answer while its lease lasted.
    virtual void unconfirmed(const LockEvent&) noexcept {}
    /// A hold reached `Config::maxHold`: it is no longer renewed and ends at most one lease later.
    virtual void heldTooLong(const LockEvent&, std::chrono::nanoseconds /*held*/) noexcept {}
    /// A waiter met a key without time to live: nothing but its owner or an operator can free that lock.
    virtual void keyWithoutTtl(const LockEvent&) noexcept {}
    /// A waiter got the lock by its periodic check; the notification was missed.
    virtual void pushMissed(const LockEvent&) noexcept {}
    /// The subscription for wake-ups was refused; waiters of this name poll instead.
    virtual void subscribeRefused(const LockEvent&) noexcept {}
    /// A connection to the server is usable. @param purpose "commands", "renewals" or "notifications".
    virtual void connected(std::string_view /*purpose*/) noexcept {}
    /// A connection ended or could not be made.
    virtual void disconnected(std::string_view /*purpose*/, std::error_code) noexcept {}
};

} // namespace redislock
