/// @file
/// What all locks have in common.
#pragma once

#include "redislock/durability.hpp"
#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lock_calls.hpp"
#include "redislock/lock_report.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// What every kind of lock can do: the base class of the kinds, which document what differs. Client makes them.
///
/// **Guarantees**, while Redis keeps what it acknowledged and its clock runs within 1 % of this machine's:
///  - at most one thread of one process believes that it holds the lock at any time;
///  - that belief ends, by this process' clock alone, before Redis may give the lock to another;
///  - an unlock or renewal never touches another holder's lock, nor a later hold of the same thread;
///  - lost, late and duplicated replies change no hold count and leak no lock.
///
/// **Does not guarantee** exclusion when Redis loses acknowledged writes (a fail-over to a replica that did not have
/// them, a restart without persistence, eviction, `FLUSHALL`): the loss is then reported, not prevented. It guarantees
/// no order among waiters either, nor that what was sent to a third party before the loss arrives there before it.
///
/// | this thread's hold         | lock / tryLock        | unlock                   | holdCount | validFor | stopToken |
/// |----------------------------|-----------------------|--------------------------|-----------|----------|-----------|
/// | none                       | waits, becomes held   | throws `notHeld`         | 0         | 0        | stopped   |
/// | held                       | see the kind          | count − 1, or free       | ≥ 1       | > 0      | running   |
/// | lost (reported or expired) | a new hold, as `none` | `alreadyLost`, per level | 0         | 0        | stopped   |
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe; one object may be used by many threads. Objects of
/// one kind, one name and one client are the same lock. Holds belong to the thread that took them.
///
/// **Blocking**: calls that ask Redis block their thread, and do their work on it. None of them may be made on the
/// client's own thread (Observer functions, stop callbacks) except unlock(), which does not wait there.
///
/// **Lifetime**: cheap to make and to copy; may outlive its Client; then every call that would ask Redis fails with
/// `Errc::shutdown`, and unlock() returns `alreadyLost`.
///
/// **If the lock is lost** (no renewal reached Redis in time, or Redis no longer has it): stopToken() is stopped,
/// validFor() is 0, `Observer::lost` is called, unlock() returns `alreadyLost`. Nothing else happens.
///
/// **Cost**: uncontended, one round trip to acquire and one to release; one key.
///
/// **Asynchronous** functions take any completion token of Asio (in coroutines it may be left out), and block no
/// thread; their holds belong to guards.
///
/// **Errors** of lock(), tryLock() and their like: `unreachable`, `serverRefused`, `authFailed`, `permissionDenied`,
/// `noSuchDatabase`, `notRedis`, `wrongType`, `lost`, `wouldDeadlock`, `shutdown`, `forked`; with a Durability also
/// `notDurable`. lock() and tryLock(wait) then try again, for `Config::unreachableAfter` at most.
///
/// A thread that holds the name by a lock of another kind of the same client would wait for itself: every such call
/// fails with `wouldDeadlock` at once, for instance if the thread holds a RedisLock and asks for a FairLock, or holds
/// the reading half of a ReadWriteLock and asks for the writing half. A thread that holds the writing half does get the
/// reading half. A ReadWriteLock and a lock of another kind with the same name give `wrongType` for each other.
class REDISLOCK_EXPORT Lock : public LockCalls<Lock, LockGuard> {
public:
    /// Moving copies: a moved-from lock is still the same lock.
    Lock(const Lock&) noexcept = default;
    Lock& operator=(const Lock&) noexcept = default; ///< as above
    /// Ends the innermost level of this thread's hold. Blocks until Redis has confirmed it, at most until the lease is
    /// over, and at most for `Config::unreachableAfter`; the lock counts as released from the moment of the call. If
    /// another caller of this client waits, a renewed lease may be passed on to it: then Redis is not asked, and the
    /// result is `passedOn`. On the client's own thread it does not wait and returns `unconfirmed`. In a forked child
    /// it sends nothing and returns `alreadyLost`, since the lock belongs to the parent.
    /// @return how it ended; see Unlocked. Losing the lock, or the server, is not an exception: the standard's guards
    /// call this in destructors.
    /// @throws LockError `notHeld` when this thread has no level to end: another thread holds the lock, a guard does,
    /// or it was unlocked before. If more than 1024 threads have lost the lock, such a call may return `alreadyLost`
    /// instead.
    Unlocked unlock() const;
    /// As unlock(), without exceptions.
    Unlocked unlock(std::error_code& ec) const;

    /// For operators: frees the lock whoever holds it, and notifies waiters. The holder learns of it at once if it
    /// belongs to this client, otherwise at its next renewal, or when its unlock() returns `alreadyLost`. Blocks for
    /// two round trips, without a server for `Config::unreachableAfter`.
    /// @return whether there was a lock to free. @throws LockError as lock(); a key of another type, or a hash that is
    /// not a lock of this kind, is left alone (`wrongType`).
    bool forceUnlock() const;
    /// As forceUnlock(), without exceptions.
    bool forceUnlock(std::error_code& ec) const;

    /// Asks Redis whether anybody holds the lock. Blocks for one round trip, without a server for
    /// `Config::unreachableAfter`. @throws LockError as lock().
    [[nodiscard]] bool isLocked() const;
    /// As isLocked(), without exceptions.
    [[nodiscard]] bool isLocked(std::error_code& ec) const;

    /// Asks Redis how long it will keep the lock without further renewal. Blocks for one round trip, without a server
    /// for `Config::unreachableAfter`.
    /// @return empty when the lock is free; `milliseconds::max()` for a key without a time to live, which the library
    /// never makes.
    /// @throws LockError as lock().
    [[nodiscard]] std::optional<std::chrono::milliseconds> remainingTimeToLive() const;
    /// As remainingTimeToLive(), without exceptions.
    [[nodiscard]] std::optional<std::chrono::milliseconds> remainingTimeToLive(std::error_code& ec) const;

    /// Asks Redis who holds the lock, for how much longer, and how many wait: for the message after a failed tryLock().
    /// Blocks for two round trips, without a server for `Config::unreachableAfter`. The report names the holder's
    /// client, and its host and process if that is this client; LockMonitor::find() also reports those of other
    /// clients, and the queue. If there are many readers, none is named (`hasMoreHolders`). What the user has no right
    /// to ask (`+llen`, `+exists`, `+pubsub|numsub`) is left out.
    /// @return empty when the lock is free. @throws LockError as lock(); `permissionDenied` for a key that the user may
    /// not read, and without `+hscan`, `+hlen`, `+hget` or `+pttl`; `wrongType` for a key that is not a lock.
    [[nodiscard]] std::optional<LockReport> explain() const;
    /// As explain(), without exceptions.
    [[nodiscard]] std::optional<LockReport> explain(std::error_code& ec) const;

    /// Whether this thread holds the lock now, judged by this process' clock alone. Does not block, and sends nothing.
    [[nodiscard]] bool isHeldByCurrentThread() const noexcept;
    /// How often this thread holds the lock; 0 once it is lost. Does not block.
    [[nodiscard]] std::uint32_t holdCount() const noexcept;
    /// How long this thread's hold is certain to last without another renewal; 0 without a hold. Does not block.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// A token that is stopped when this thread's hold is lost, even if Redis or the network fails; already stopped
    /// without a hold; never stopped by a regular unlock(). Stop callbacks run on the client's thread and must not
    /// block. Does not block.
    /// @param when `StopAt::atRisk`: stopped earlier, when renewals are overdue; stays stopped even if one then
    /// succeeds.
    [[nodiscard]] std::stop_token stopToken(StopAt when = StopAt::lost) const noexcept;

    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept;

    /// forceUnlock() without blocking a thread. @param token for `void(boost::system::error_code, bool)`; handler,
    /// errors and cancellation as for asyncLock(); a cancelled call may have freed the lock.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncForceUnlock(Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncForceUnlock", state_,
            [state = state_](auto handler) { asyncForceUnlock(state, detail::FlagHandler(std::move(handler))); },
            token);
    }
    /// isLocked() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncIsLocked(Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncIsLocked", state_,
            [state = state_](auto handler) { asyncIsLocked(state, detail::FlagHandler(std::move(handler))); }, token);
    }
    /// remainingTimeToLive() without blocking a thread.
    /// @param token for `void(boost::system::error_code, std::optional<std::chrono::milliseconds>)`.
    template <CompletionTokenFor<std::optional<std::chrono::milliseconds>> Token = boost::asio::deferred_t>
    auto asyncRemainingTimeToLive(Token&& token = Token()) const
    {
        return detail::initiate<Token, std::optional<std::chrono::milliseconds>>(
            "asyncRemainingTimeToLive", state_,
            [state = state_](auto handler) { asyncTimeToLive(state, detail::TimeHandler(std::move(handler))); }, token);
    }

protected:
    /// What copies share.
    using State = std::shared_ptr<detail::NamedLock>;

    /// @param retry how it waits; null: until it is notified.
    Lock(State state, const Durability& durability, Retry retry = nullptr) noexcept
        : state_(std::move(state)), retry_(std::move(retry)), durability_(durability)
    {
    }

    /// tryLock(), for this thread. @return the hold's token, 0 where the kind has none; nothing when it was not
    /// acquired.
    std::optional<std::uint64_t> acquireByThread(Wait wait, Lease lease, const Retry& retry,
                                                 const std::stop_token& stop, std::error_code& ec,
                                                 std::exception_ptr* thrown = nullptr) const;

private:
    friend class LockCalls<Lock, LockGuard>;
    friend class LockGuard;
    friend struct detail::LockAccess;

    /// @param thrown receives what a policy throws; null: that is dropped.
    bool acquire(Wait wait, Lease lease, const Retry& retry, const std::stop_token& stop, std::error_code& ec,
                 std::exception_ptr* thrown = nullptr) const;
    void asyncAcquire(Wait wait, Lease lease, const Retry& retry, detail::LockHandler handler) const;
    [[noreturn]] void fail(const char* verb, Lease lease, const std::error_code& ec,
                           const std::exception_ptr& thrown) const;
    static void asyncForceUnlock(const State& state, detail::FlagHandler handler);
    static void asyncIsLocked(const State& state, detail::FlagHandler handler);
    static void asyncTimeToLive(const State& state, detail::TimeHandler handler);

    State state_;
    Retry retry_;
    Durability durability_;
};

} // namespace redislock
