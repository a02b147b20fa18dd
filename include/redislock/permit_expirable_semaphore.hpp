/// @file
/// The counting semaphore whose permits are leased.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/permit.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// A counting semaphore in Redis, shared by all processes that use its name, whose permits are leased: the permits of a
/// process that crashes are free again when their leases are over.
///
/// In Redis it is Redisson's `RPermitExpirableSemaphore`: the number of free permits as a string at the name, a zset
/// `{<name>}:timeout` of the permits taken (16 random bytes → end of the lease, ms since 1970 by the server's clock),
/// and messages on `redisson_sc:{<name>}`.
///
/// **Guarantees**, while Redis keeps what it acknowledged and its clock runs within 1 % of this machine's:
///  - at any time, at most as many Permits believe that they are held as there are permits: a Permit stops believing
///    it, by this process' clock alone, before Redis may give it to another;
///  - an acquire has one id, and an id one permit, however often requests and replies are lost, duplicated or late; a
///    permit for which nobody waits any more is released;
///  - a release never frees more than its own permit.
///
/// **Does not guarantee** any order among waiters, nor that the holder of an expired permit stops working. Redis counts
/// leases with its wall clock: if that is set forward, permits become free early. Expired permits become free when
/// anyone next acquires or counts; a waiter asks at that moment.
///
/// | permits             | tryAcquire()            | acquire()  | release(id)       | availablePermits |
/// |---------------------|-------------------------|------------|-------------------|------------------|
/// | no such semaphore   | empty                   | waits      | `alreadyLost`     | 0                |
/// | none free           | waits, then empty       | waits      | frees it          | 0 or negative    |
/// | some free           | a permit                | a permit   | frees it          | > 0              |
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe; one object may be used by many threads. Objects of
/// one name and one client are the same semaphore. A name must not be used by a Semaphore too.
/// **Blocking**: calls that ask Redis block their thread; none may be made on the client's own thread
/// (`wouldDeadlock`). **Lifetime**: cheap to make and to copy; may outlive its Client, whose end turns every call into
/// `Errc::shutdown`. **Cost**: a round trip for each call that need not wait; a waiting process holds one subscription
/// for each name. Two keys, which stay until they are deleted.
///
/// Neither this class nor Semaphore has a form on several servers (as Redlock is for locks): a majority that has
/// granted one permit does not know how many permits other majorities have granted, so their number could be exceeded.
///
/// @code
/// redislock::PermitExpirableSemaphore printers = client.getPermitExpirableSemaphore("printers");
/// printers.trySetPermits(3);
/// redislock::Permit permit = printers.acquire(30s);
/// print(permit.validFor());
/// @endcode
class REDISLOCK_EXPORT PermitExpirableSemaphore {
public:
    /// Moving copies: a moved-from semaphore is still the same semaphore.
    PermitExpirableSemaphore(const PermitExpirableSemaphore&) noexcept = default;
    PermitExpirableSemaphore& operator=(const PermitExpirableSemaphore&) noexcept = default; ///< as above
    /// Takes a permit, waiting as long as it takes. Blocks.
    /// @param lease 10 ms … 30 days, or `nonExpiring`; not `keepRenewing`.
    /// @throws LockError `invalidArgument` for any other lease, before any I/O; `unreachable`, `serverRefused`,
    /// `authFailed`, `permissionDenied`, `wrongType`, `wouldDeadlock`, `shutdown`, `forked`. After an exception this
    /// call has taken nothing: what Redis may have granted is released in the background.
    /// @param stop when it is stopped, the call ends soon and leaves nothing taken, like the calls of a Lock that are
    /// called off (see LockCalls); the permit is then empty.
    Permit acquire(Lease lease, std::stop_token stop = {}) const;
    /// As acquire(), without exceptions: empty with a code on errors; @p ec is cleared on success.
    Permit acquire(Lease lease, std::error_code& ec) const;
    /// As acquire(lease, stop), without exceptions.
    Permit acquire(Lease lease, std::stop_token stop, std::error_code& ec) const;

    /// Takes a permit, waiting until @p wait is over. Blocks for at most @p wait, whatever happens; `unreachable` if
    /// there was no answer by then; what is granted later is released. @param wait zero or negative: one attempt;
    /// `waitForever`: as acquire(). @param lease as there. @param stop as there.
    /// @return the permit; empty when the wait is over. @throws LockError as acquire().
    Permit tryAcquire(Wait wait, Lease lease, std::stop_token stop = {}) const;
    /// As tryAcquire(), without exceptions.
    Permit tryAcquire(Wait wait, Lease lease, std::error_code& ec) const;
    /// As tryAcquire(wait, lease, stop), without exceptions.
    Permit tryAcquire(Wait wait, Lease lease, std::stop_token stop, std::error_code& ec) const;

    /// Releases a permit by its id, whoever took it. Blocks for one round trip, without a server for
    /// `Config::unreachableAfter`; then it returns `unconfirmed`, and continues in the background.
    /// @param id 32 hex digits. @return as Permit::release().
    /// @throws LockError `invalidArgument` for any other id, `wouldDeadlock`, `shutdown`, `forked`, `wrongType`,
    /// `permissionDenied`, `authFailed`; after the last two, the release continues in the background as well.
    Unlocked release(const std::string& id) const;
    /// As release(), without exceptions.
    Unlocked release(const std::string& id, std::error_code& ec) const;

    /// Sets a new lease for a permit, counted from now; a Permit of this client then uses it. It may be shorter than
    /// before. Blocks for one round trip. @param id 32 hex digits. @param lease as for acquire().
    /// @return whether there is such a permit whose lease is not over. @throws LockError as acquire(). After
    /// `unreachable` either lease may be valid; a Permit then uses the shorter one.
    bool updateLeaseTime(const std::string& id, Lease lease) const;
    /// As updateLeaseTime(), without exceptions.
    bool updateLeaseTime(const std::string& id, Lease lease, std::error_code& ec) const;

    /// How much of a permit's lease is left in Redis. Blocks for one round trip. @param id 32 hex digits.
    /// @return empty for an unknown id, or one whose lease is over; `milliseconds::max()` for a non-expiring permit.
    /// @throws LockError as acquire().
    [[nodiscard]] std::optional<std::chrono::milliseconds> getLeaseTime(const std::string& id) const;
    /// As getLeaseTime(), without exceptions.
    [[nodiscard]] std::optional<std::chrono::milliseconds> getLeaseTime(const std::string& id,
                                                                        std::error_code& ec) const;

    /// How many permits are free, including those whose leases are over; negative after setPermits() to fewer than are
    /// taken. Blocks for one round trip. @throws LockError as acquire().
    [[nodiscard]] std::int64_t availablePermits() const;
    /// As availablePermits(), without exceptions.
    [[nodiscard]] std::int64_t availablePermits(std::error_code& ec) const;
    /// How many permits are taken; otherwise as availablePermits().
    [[nodiscard]] std::int64_t acquiredPermits() const;
    /// As acquiredPermits(), without exceptions.
    [[nodiscard]] std::int64_t acquiredPermits(std::error_code& ec) const;
    /// How many permits there are, free and taken; otherwise as availablePermits().
    [[nodiscard]] std::int64_t getPermits() const;
    /// As getPermits(), without exceptions.
    [[nodiscard]] std::int64_t getPermits(std::error_code& ec) const;

    /// Makes the semaphore, unless it exists. Blocks for one round trip, without a server for
    /// `Config::unreachableAfter`.
    /// @param permits 0 … 2 147 483 647. @return whether it was made. @throws LockError as acquire(); after
    /// `unreachable` it is not known whether it was made.
    bool trySetPermits(std::int64_t permits) const;
    /// As trySetPermits(), without exceptions.
    bool trySetPermits(std::int64_t permits, std::error_code& ec) const;
    /// As trySetPermits(), for a limited time, after which the semaphore is deleted even if permits are taken. @param
    /// timeToLive 1 ms … 30 days.
    bool trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive) const;
    /// As trySetPermits(permits, timeToLive), without exceptions.
    bool trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive, std::error_code& ec) const;

    /// Sets how many permits there are, free and taken together; taken permits stay valid. Blocks for one round trip.
    /// @param permits 0 … 2 147 483 647. @throws LockError as trySetPermits().
    void setPermits(std::int64_t permits) const;
    /// As setPermits(), without exceptions.
    void setPermits(std::int64_t permits, std::error_code& ec) const;
    /// Changes how many permits there are. Blocks for one round trip. @param difference −2 147 483 647 … 2 147 483 647.
    /// @throws LockError as trySetPermits().
    void addPermits(std::int64_t difference) const;
    /// As addPermits(), without exceptions.
    void addPermits(std::int64_t difference, std::error_code& ec) const;

    /// Deletes the semaphore; its permits are lost, and their holders are not notified. Blocks for one round trip.
    /// @return whether it existed. @throws LockError as trySetPermits().
    bool forceDelete() const;
    /// As forceDelete(), without exceptions.
    bool forceDelete(std::error_code& ec) const;

    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept;

    /// acquire() without blocking a thread. @param token any completion token for
    /// `void(boost::system::error_code, Permit)`. The handler is called once, on its associated executor; without one
    /// on the client's own thread, where it must not block. Errors as codes. **Cancellation** (terminal, partial and
    /// total) ends the call with `boost::asio::error::operation_aborted` and nothing taken. **Lifetime** as for
    /// Lock::asyncLock(): the executor's context may end first.
    template <CompletionTokenFor<Permit> Token = boost::asio::deferred_t>
    auto asyncAcquire(Lease lease, Token&& token = Token()) const
    {
        return asyncTryAcquire(waitForever, lease, std::forward<Token>(token));
    }
    /// tryAcquire() without blocking a thread; otherwise as asyncAcquire().
    template <CompletionTokenFor<Permit> Token = boost::asio::deferred_t>
    auto asyncTryAcquire(Wait wait, Lease lease, Token&& token = Token()) const
    {
        return detail::initiate<Token, Permit>(
            "asyncTryAcquire", state_,
            [state = state_](auto handler, Wait w, Lease l) {
                startAcquire(state, w, l, detail::PermitHandler(std::move(handler)));
            },
            token, wait, lease);
    }
    /// release() without blocking a thread. @param token for `void(boost::system::error_code, Unlocked)`.
    template <CompletionTokenFor<Unlocked> Token = boost::asio::deferred_t>
    auto asyncRelease(const std::string& id, Token&& token = Token()) const
    {
        return detail::initiate<Token, Unlocked>(
            "asyncRelease", state_,
            [state = state_](auto handler, const std::string& which) {
                startRelease(state, which, detail::UnlockHandler(std::move(handler)));
            },
            token, id);
    }
    /// updateLeaseTime() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncUpdateLeaseTime(const std::string& id, Lease lease, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncUpdateLeaseTime", state_,
            [state = state_](auto handler, const std::string& which, Lease l) {
                startUpdate(state, which, l, detail::FlagHandler(std::move(handler)));
            },
            token, id, lease);
    }
    /// getLeaseTime() without blocking a thread.
    /// @param token for `void(boost::system::error_code, std::optional<std::chrono::milliseconds>)`.
    template <CompletionTokenFor<std::optional<std::chrono::milliseconds>> Token = boost::asio::deferred_t>
    auto asyncGetLeaseTime(const std::string& id, Token&& token = Token()) const
    {
        return detail::initiate<Token, std::optional<std::chrono::milliseconds>>(
            "asyncGetLeaseTime", state_,
            [state = state_](auto handler, const std::string& which) {
                startLeaseTime(state, which, detail::TimeHandler(std::move(handler)));
            },
            token, id);
    }
    /// availablePermits() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncAvailablePermits(Token&& token = Token()) const
    {
        return asyncCount("asyncAvailablePermits", Count::available, std::forward<Token>(token));
    }
    /// acquiredPermits() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncAcquiredPermits(Token&& token = Token()) const
    {
        return asyncCount("asyncAcquiredPermits", Count::acquired, std::forward<Token>(token));
    }
    /// getPermits() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncGetPermits(Token&& token = Token()) const
    {
        return asyncCount("asyncGetPermits", Count::all, std::forward<Token>(token));
    }
    /// trySetPermits() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncTrySetPermits(std::int64_t permits, Token&& token = Token()) const
    {
        return asyncTrySetPermits(permits, std::chrono::milliseconds::zero(), std::forward<Token>(token));
    }
    /// trySetPermits(permits, timeToLive) without blocking a thread; zero: without a time to live.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncTrySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncTrySetPermits", state_,
            [state = state_](auto handler, std::int64_t n, std::chrono::milliseconds live) {
                startTrySet(state, n, live, detail::FlagHandler(std::move(handler)));
            },
            token, permits, timeToLive);
    }
    /// setPermits() without blocking a thread. @param token for `void(boost::system::error_code)`.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncSetPermits(std::int64_t permits, Token&& token = Token()) const
    {
        return detail::initiate<Token, void>(
            "asyncSetPermits", state_,
            [state = state_](auto handler, std::int64_t n) {
                startSet(state, n, detail::withoutResult(std::move(handler)));
            },
            token, permits);
    }
    /// addPermits() without blocking a thread. @param token for `void(boost::system::error_code)`.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncAddPermits(std::int64_t difference, Token&& token = Token()) const
    {
        return detail::initiate<Token, void>(
            "asyncAddPermits", state_,
            [state = state_](auto handler, std::int64_t n) {
                startAdd(state, n, detail::withoutResult(std::move(handler)));
            },
            token, difference);
    }
    /// forceDelete() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncForceDelete(Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncForceDelete", state_,
            [state = state_](auto handler) { startDelete(state, detail::FlagHandler(std::move(handler))); }, token);
    }

private:
    friend class Client;
    using State = std::shared_ptr<detail::NamedCounter>;
    enum class Count { available, acquired, all };

    explicit PermitExpirableSemaphore(State state) noexcept : state_(std::move(state)) {}

    template <class Token>
    auto asyncCount(const char* verb, Count which, Token&& token) const
    {
        return detail::initiate<Token, std::int64_t>(
            verb, state_,
            [state = state_](auto handler, Count w) {
                startCount(state, w, detail::NumberHandler(std::move(handler)));
            },
            token, which);
    }
    std::int64_t count(Count which, std::error_code& ec) const;

    static void startAcquire(const State& state, Wait wait, Lease lease, detail::PermitHandler handler);
    static void startRelease(const State& state, const std::string& id, detail::UnlockHandler handler);
    static void startUpdate(const State& state, const std::string& id, Lease lease, detail::FlagHandler handler);
    static void startLeaseTime(const State& state, const std::string& id, detail::TimeHandler handler);
    static void startCount(const State& state, Count which, detail::NumberHandler handler);
    static void startTrySet(const State& state, std::int64_t permits, std::chrono::milliseconds timeToLive,
                            detail::FlagHandler handler);
    static void startSet(const State& state, std::int64_t permits, detail::FlagHandler handler);
    static void startAdd(const State& state, std::int64_t difference, detail::FlagHandler handler);
    static void startDelete(const State& state, detail::FlagHandler handler);

    State state_;
};

} // namespace redislock
