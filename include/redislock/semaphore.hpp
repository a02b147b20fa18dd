/// @file
/// The counting semaphore whose permits have no owner.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lease_time.hpp"

#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// A counting semaphore in Redis, shared by all processes that use its name: the `std::counting_semaphore` of a fleet.
///
/// In Redis it is Redisson's `RSemaphore`: the number of free permits as a string at the name, and messages on
/// `redisson_sc:{<name>}` when permits become free. For about a minute, further keys (`redislock_request:{<name>}:…`)
/// keep the answers to requests that may be sent again; Java does not see them.
///
/// **Guarantees**, while Redis keeps what it acknowledged: a call that succeeds takes, or adds, its permits exactly
/// once, and one that fails to take them leaves none taken, however often its requests and replies are lost, duplicated
/// or late (up to a minute). acquire(n) takes all n or none.
///
/// **Does not guarantee** that permits come back: they have no owner and no lease, so **the permits of a process that
/// crashes are lost** until somebody releases or adds them. PermitExpirableSemaphore frees them. It does not check that
/// the caller of release() has acquired, and has no order among waiters: one that wants many permits may wait long
/// while others take single ones.
///
/// | free permits      | tryAcquire(n) | acquire(n)   | release(n)         | drainPermits | addPermits(d) |
/// |-------------------|---------------|--------------|--------------------|--------------|---------------|
/// | no such semaphore | false         | waits        | makes it, with n   | 0            | makes it      |
/// | fewer than n      | false         | waits        | + n, tells waiters | takes all    | + d           |
/// | n or more         | true, − n     | at once, − n | + n, tells waiters | takes all    | + d           |
///
/// A number of permits is 1 … 2 147 483 647; calls for zero permits succeed without asking Redis; any other number is
/// `invalidArgument` before any I/O.
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe; one object may be used by many threads. Objects of
/// one name and one client are the same semaphore.
/// **Blocking**: calls that ask Redis block their thread; none may be made on the client's own thread
/// (`wouldDeadlock`). **Lifetime**: cheap to make and to copy; may outlive its Client, whose end turns every call into
/// `Errc::shutdown`. **If the key is lost**, nothing reports it: neither the semaphore nor its permits exist any more.
/// **Cost**: a round trip for each call that need not wait; a waiting process has one subscription for each name, and
/// sends one request for each waiter that may succeed, at a message or a poll (`Config::pollInterval`).
///
/// @code
/// redislock::Semaphore printers = client.getSemaphore("printers");
/// printers.trySetPermits(3); // once for the whole fleet: later calls change nothing
/// printers.acquire();
/// print();
/// printers.release();
/// @endcode
class REDISLOCK_EXPORT Semaphore {
public:
    /// Moving copies: a moved-from semaphore is still the same semaphore.
    Semaphore(const Semaphore&) noexcept = default;
    Semaphore& operator=(const Semaphore&) noexcept = default; ///< as above
    /// Makes the semaphore, unless it exists: then its number is left alone. Blocks for one round trip, without a
    /// server for `Config::unreachableAfter`.
    /// @param permits 0 … 2 147 483 647. @return whether it was made.
    /// @throws LockError `invalidArgument`, `unreachable`, `serverRefused`, `authFailed`, `permissionDenied`,
    /// `wrongType`, `wouldDeadlock`, `shutdown`, `forked`. After `unreachable` it is not known whether it was made.
    bool trySetPermits(std::int64_t permits) const;
    /// As trySetPermits(), without exceptions: @p ec is cleared on success.
    bool trySetPermits(std::int64_t permits, std::error_code& ec) const;
    /// As trySetPermits(), for a limited time, after which the semaphore is deleted even if permits are taken.
    /// @param timeToLive 1 ms … 30 days.
    bool trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive) const;
    /// As trySetPermits(permits, timeToLive), without exceptions.
    bool trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive, std::error_code& ec) const;

    /// Takes permits, waiting as long as it takes. Blocks.
    /// @throws LockError as trySetPermits(). After an exception this call has taken nothing: what Redis may have
    /// granted is released in the background.
    void acquire(std::int64_t permits = 1) const;
    /// As acquire(), without exceptions.
    void acquire(std::int64_t permits, std::error_code& ec) const;
    /// As acquire(), until @p stop is stopped: the call then ends soon and leaves nothing taken, like the calls of a
    /// Lock that are called off (see LockCalls). @return whether the permits were taken; false: called off.
    [[nodiscard]] bool acquire(std::int64_t permits, std::stop_token stop) const;
    /// As acquire(permits, stop), without exceptions.
    [[nodiscard]] bool acquire(std::int64_t permits, std::stop_token stop, std::error_code& ec) const;

    /// Takes permits if they are free now. Blocks for the round trip. @return whether they were taken.
    /// @throws LockError as acquire(); a server that cannot be reached at the first try is `unreachable` at once.
    [[nodiscard]] bool tryAcquire(std::int64_t permits = 1) const;
    /// As tryAcquire(), without exceptions.
    [[nodiscard]] bool tryAcquire(std::int64_t permits, std::error_code& ec) const;
    /// Takes permits, waiting until @p wait is over. Blocks for at most @p wait, whatever happens; `unreachable` if
    /// there was no answer by then; what is granted later is released. @param wait zero or negative: as
    /// tryAcquire(permits); `waitForever`: as acquire(permits). @param stop calls it off when it is stopped.
    [[nodiscard]] bool tryAcquire(std::int64_t permits, Wait wait, std::stop_token stop = {}) const;
    /// As tryAcquire(permits, wait), without exceptions.
    [[nodiscard]] bool tryAcquire(std::int64_t permits, Wait wait, std::error_code& ec) const;
    /// As tryAcquire(permits, wait, stop), without exceptions.
    [[nodiscard]] bool tryAcquire(std::int64_t permits, Wait wait, std::stop_token stop, std::error_code& ec) const;

    /// Releases permits, or adds new ones: Redis does not record who took them. Blocks for one round trip, without a
    /// server for `Config::unreachableAfter`.
    /// @throws LockError as trySetPermits(). After `unreachable`, `serverRefused` and `badReply` the same release is
    /// repeated in the background for up to a minute, and counts once: do not repeat it yourself.
    void release(std::int64_t permits = 1) const;
    /// As release(), without exceptions.
    void release(std::int64_t permits, std::error_code& ec) const;
    /// As release(), but a semaphore that does not exist is not made. @return whether it existed.
    bool releaseIfExists(std::int64_t permits = 1) const;
    /// As releaseIfExists(), without exceptions.
    bool releaseIfExists(std::int64_t permits, std::error_code& ec) const;

    /// How many permits are free; 0 for a semaphore that does not exist, negative after addPermits() took away more
    /// than were free. Blocks for one round trip. @throws LockError as trySetPermits().
    [[nodiscard]] std::int64_t availablePermits() const;
    /// As availablePermits(), without exceptions.
    [[nodiscard]] std::int64_t availablePermits(std::error_code& ec) const;

    /// Takes all free permits. Blocks for one round trip. @return how many. A negative number of permits stays as it
    /// is.
    /// @throws LockError as acquire().
    std::int64_t drainPermits() const;
    /// As drainPermits(), without exceptions.
    std::int64_t drainPermits(std::error_code& ec) const;

    /// Changes how many permits there are. Blocks for one round trip.
    /// @param difference −2 147 483 647 … 2 147 483 647; negative: takes permits away, which may make the number of
    /// free ones negative.
    /// @throws LockError as trySetPermits(). After `unreachable` it is not known whether they were added.
    void addPermits(std::int64_t difference) const;
    /// As addPermits(), without exceptions.
    void addPermits(std::int64_t difference, std::error_code& ec) const;

    /// Deletes the semaphore. Waiters continue to wait for one of that name. Blocks for one round trip.
    /// @return whether it existed. @throws LockError as trySetPermits().
    bool forceDelete() const;
    /// As forceDelete(), without exceptions.
    bool forceDelete(std::error_code& ec) const;

    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept;

    /// trySetPermits() without blocking a thread. @param token any completion token for
    /// `void(boost::system::error_code, bool)`. The handler is called once, on its associated executor; without one on
    /// the client's own thread, where it must not block. Errors as codes. **Cancellation** (terminal, partial and
    /// total) ends the call with `boost::asio::error::operation_aborted`; whether the semaphore was made is then not
    /// known. **Lifetime** as for Lock::asyncLock(): the executor's context may end first.
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
                startSet(state, n, live, detail::FlagHandler(std::move(handler)));
            },
            token, permits, timeToLive);
    }
    /// acquire() without blocking a thread. @param token for `void(boost::system::error_code)`; handler and errors as
    /// for asyncTrySetPermits(). **Cancellation** ends it with nothing taken; so does the end of the executor's
    /// context: permits that the handler did not get are released.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncAcquire(std::int64_t permits, Token&& token = Token()) const
    {
        return detail::initiate<Token, void>(
            "asyncAcquire", state_,
            [state = state_](auto handler, std::int64_t n) {
                startAcquire(state, n, waitForever, detail::withoutResult(std::move(handler)));
            },
            token, permits);
    }
    /// tryAcquire() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncTryAcquire(std::int64_t permits, Token&& token = Token()) const
    {
        return asyncTryAcquire(permits, oneAttempt, std::forward<Token>(token));
    }
    /// tryAcquire(permits, wait) without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncTryAcquire(std::int64_t permits, Wait wait, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncTryAcquire", state_,
            [state = state_](auto handler, std::int64_t n, Wait w) {
                startAcquire(state, n, w, detail::FlagHandler(std::move(handler)));
            },
            token, permits, wait);
    }
    /// release() without blocking a thread. @param token for `void(boost::system::error_code)`. A cancelled release is
    /// repeated in the background as well.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncRelease(std::int64_t permits, Token&& token = Token()) const
    {
        return detail::initiate<Token, void>(
            "asyncRelease", state_,
            [state = state_](auto handler, std::int64_t n) {
                startRelease(state, n, false, detail::withoutResult(std::move(handler)));
            },
            token, permits);
    }
    /// releaseIfExists() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncReleaseIfExists(std::int64_t permits, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncReleaseIfExists", state_,
            [state = state_](auto handler, std::int64_t n) {
                startRelease(state, n, true, detail::FlagHandler(std::move(handler)));
            },
            token, permits);
    }
    /// availablePermits() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncAvailablePermits(Token&& token = Token()) const
    {
        return detail::initiate<Token, std::int64_t>(
            "asyncAvailablePermits", state_,
            [state = state_](auto handler) { startGet(state, detail::NumberHandler(std::move(handler))); }, token);
    }
    /// drainPermits() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncDrainPermits(Token&& token = Token()) const
    {
        return detail::initiate<Token, std::int64_t>(
            "asyncDrainPermits", state_,
            [state = state_](auto handler) { startDrain(state, detail::NumberHandler(std::move(handler))); }, token);
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

    explicit Semaphore(State state) noexcept : state_(std::move(state)) {}

    static void startSet(const State& state, std::int64_t permits, std::chrono::milliseconds timeToLive,
                         detail::FlagHandler handler);
    static void startAcquire(const State& state, std::int64_t permits, Wait wait, detail::FlagHandler handler);
    static void startRelease(const State& state, std::int64_t permits, bool ifExists, detail::FlagHandler handler);
    static void startGet(const State& state, detail::NumberHandler handler);
    static void startDrain(const State& state, detail::NumberHandler handler);
    static void startAdd(const State& state, std::int64_t difference, detail::FlagHandler handler);
    static void startDelete(const State& state, detail::FlagHandler handler);

    State state_;
};

} // namespace redislock
