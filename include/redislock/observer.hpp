/// @file
/// Notifies the program of what the library does.
#pragma once

#include "redislock/export.hpp"
#include "redislock/unlocked.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

namespace redislock {

/// What kind of object an event is about.
enum class ObjectKind : std::uint8_t {
    redisLock,
    nonReentrantLock,
    spinLock,
    fencedLock,
    fairLock,
    readLock,
    writeLock,
    semaphore,
    permitExpirableSemaphore,
    countDownLatch,
    multiLock,
    redLock,
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(ObjectKind kind) noexcept
{
    constexpr std::string_view names[] = {
        "redisLock", "nonReentrantLock",         "spinLock",       "fencedLock", "fairLock", "readLock", "writeLock",
        "semaphore", "permitExpirableSemaphore", "countDownLatch", "multiLock",  "redLock"};
    const auto index = static_cast<std::size_t>(kind);
    return index < std::size(names) ? names[index] : "unknown";
}

/// Why a hold is lost, or will be.
enum class LossReason : std::uint8_t {
    leaseEnded,  ///< its fixed lease is over; nothing failed
    unrenewed,   ///< no renewal was answered before the lease was over
    refused,     ///< the server refused the renewals until the lease was over
    heldTooLong, ///< it had reached `Config::maxHold`, and was not renewed any more
    paused,      ///< this process, its machine or the client's thread was paused until the lease was over
    gone,        ///< Redis no longer has it: deleted, evicted, ended by force from elsewhere, lost in a fail-over
    forced,      ///< forceUnlock() by this client
    shutDown,    ///< the client was shut down
    unconfirmed, ///< for Observer::atRisk() only: the client reconnected, perhaps to another server, or to one that
                 /// < has lost its data, and the server has not yet confirmed that it has the lock
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(LossReason reason) noexcept
{
    constexpr std::string_view names[] = {"leaseEnded", "unrenewed", "refused",  "heldTooLong", "paused",
                                          "gone",       "forced",    "shutDown", "unconfirmed"};
    const auto index = static_cast<std::size_t>(reason);
    return index < std::size(names) ? names[index] : "unknown";
}

/// What an event is about. The views are valid during the call only.
struct LockEvent {
    /// The object's name, as given; for a group the names of its members, with ", " between them.
    std::string_view name;
    /// The hold's name in Redis: `<client id>:<holder id>`, for a permit its id; empty if the event is not about a
    /// hold, and for semaphores, latches and groups, which have none. For `contended` and `keyWithoutTtl`: the current
    /// holder, printable; empty if it is not known, or not a single one.
    std::string_view holder;
    ObjectKind kind{}; ///< what the object is
};

/// Receives the events of the locks, semaphores and latches of one client: for logs, metrics and alarms. Derive from it
/// and override what you need; the default does nothing. Install it with `Config::observer`.
///
/// A group (MultiLock, RedLock) is reported as one, once to each different observer of its members' clients: its
/// members are not reported as acquired, contended, released, at risk or lost by themselves. Events in between
/// (renewals, missed messages) are reported for the member.
///
/// A permit of a PermitExpirableSemaphore is not watched: the end of its lease is reported when it is released.
///
/// **Thread safety**: all functions are called on the client's background thread, one at a time, in the order in which
/// things happened, never under a lock of the library. **Blocking**: they must not block, because renewals wait for
/// them. A library call in them that would have to wait fails with `Errc::wouldDeadlock`; `unlock()` and destructors of
/// guards are allowed, and do not wait. They must not throw (`noexcept`). **Lifetime**: the client keeps the observer
/// alive.
class REDISLOCK_EXPORT Observer {
public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer() = default;

// The functions here do nothing; their parameters have names for those who read them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

    /// A lock or permits were acquired, or a latch was found open. @param waited from the call to the grant.
    /// @param attempts requests sent to Redis for it, perhaps none if it was passed on inside the client; for a group:
    /// rounds of requests to its members.
    virtual void acquired(const LockEvent& event, std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept {}
    /// A call ended without the lock or permits because others held them, or with the latch closed.
    /// @param left how long others keep it at least, according to the last reply (for a fair lock that is free while it
    /// is another's turn: when to ask again); empty if the reply did not say.
    virtual void contended(const LockEvent& event, std::optional<std::chrono::milliseconds> left,
                           std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept
    {
    }
    /// The watchdog renewed the lease. @param took from sending the renewal to its answer.
    virtual void renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept {}
    /// A renewal failed and is tried again while the lease lasts.
    virtual void renewalFailed(const LockEvent& event, std::error_code error) noexcept {}
    /// The hold ends soon unless a renewal succeeds. @param validFor the time left. @param reason why it would be lost;
    /// `leaseEnded` is the regular end of a fixed lease.
    virtual void atRisk(const LockEvent& event, std::chrono::nanoseconds validFor, LossReason reason) noexcept {}
    /// The hold is lost; its stop token is stopped.
    virtual void lost(const LockEvent& event, LossReason reason) noexcept {}
    /// An outermost hold was released, or permits were. `passedOn` is followed by `acquired` for the next hold, which
    /// has the same holder in Redis; if its caller left at that moment, also by the release of that hold. @param held
    /// from the grant to the release; zero if that is not known: for a semaphore, and for a permit that is released by
    /// its id.
    virtual void released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept {}
    /// A release got no answer while its lease lasted.
    virtual void unconfirmed(const LockEvent& event) noexcept {}
    /// A hold reached `Config::maxHold`: it is no longer renewed and ends at most one lease later.
    virtual void heldTooLong(const LockEvent& event, std::chrono::nanoseconds held) noexcept {}
    /// A waiter met a key without a time to live: only its owner or an operator can free that lock.
    virtual void keyWithoutTtl(const LockEvent& event) noexcept {}
    /// A waiter got the lock by its periodic check, having missed the notification.
    virtual void pushMissed(const LockEvent& event) noexcept {}
    /// The server refused the subscription for notifications; waiters for this name poll instead.
    virtual void subscribeRefused(const LockEvent& event) noexcept {}
    /// A connection to the server is usable. @param purpose "commands", "renewals", "notifications" or
    /// "confirmations".
    virtual void connected(std::string_view purpose) noexcept {}
    /// A connection ended or could not be made; as long as it is needed, this is called again for each failed attempt.
    /// @param why one line for a log: the address, what happened, and what the system or the server said. Never a
    /// password. Valid during the call only.
    virtual void disconnected(std::string_view purpose, std::error_code error, std::string_view why) noexcept {}
    /// Everything works, but an operator should know of something: new certificate files do not fit, and the last good
    /// ones stay in use; a node of a cluster is used as if it were alone. Called once for each such condition. @param
    /// what one line for a log. Never a password. Valid during the call only.
    virtual void warned(std::string_view what) noexcept {}

#pragma GCC diagnostic pop
};

} // namespace redislock
