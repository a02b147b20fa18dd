/// @file
/// The calls that acquire a lock, of whatever kind.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/retry_policy.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redislock {

/// The calls that acquire: those that throw, those that report codes, those with the standard's names, and the
/// asynchronous ones. The base class of Lock and of GroupLock, which define what acquiring means, and list the errors.
///
/// **Calling off**: calls that take a `std::stop_token` return false, without an error, soon after it was stopped
/// (within a few milliseconds, whatever the server does), and at once, without any I/O, if it was stopped before. They
/// hold nothing then: what Redis may have granted is released in the background, and Client::shutdown() waits for that
/// within its time. A call that is granted the lock at the same moment may return true. request_stop() only wakes the
/// waiting thread; it does not wait for it, and may be called anywhere, even in an Observer or a stop callback. Bad
/// arguments are still reported as errors.
/// @tparam Self the lock. @tparam Guard the guard that holds it for an asynchronous caller.
template <class Self, class Guard>
class LockCalls {
public:
    /// Acquires the lock, waiting as long as it takes; the watchdog renews it until it is released. Blocks.
    /// @throws LockError see the lock. After an exception nothing is held by this call.
    void lock() const { lock(keepRenewing); }
    /// As lock(), without exceptions: @p ec is cleared on success.
    void lock(std::error_code& ec) const { lock(keepRenewing, ec); }

    /// Acquires the lock with a fixed lease: it is not renewed and is lost when @p lease is over. Blocks.
    /// @param lease 10 ms … 30 days, or `keepRenewing`; a nested lease never shortens the outer holds.
    /// @throws LockError `invalidArgument` for any other lease, before any I/O; otherwise as lock().
    void lock(Lease lease) const { acquire("lock", waitForever, lease, nullptr); }
    /// As lock(Lease), without exceptions.
    void lock(Lease lease, std::error_code& ec) const { self().acquire(waitForever, lease, nullptr, {}, ec); }

    /// As lock(), until @p stop is stopped. @return whether the lock is now held; false: called off.
    [[nodiscard]] bool lock(std::stop_token stop) const { return lock(keepRenewing, std::move(stop)); }
    /// As lock(std::stop_token), without exceptions; false with a code on errors.
    [[nodiscard]] bool lock(std::stop_token stop, std::error_code& ec) const
    {
        return lock(keepRenewing, std::move(stop), ec);
    }
    /// As lock(Lease), until @p stop is stopped. @return whether the lock is now held; false: called off.
    [[nodiscard]] bool lock(Lease lease, std::stop_token stop) const
    {
        return acquire("lock", waitForever, lease, nullptr, stop);
    }
    /// As lock(Lease, std::stop_token), without exceptions; false with a code on errors.
    [[nodiscard]] bool lock(Lease lease, std::stop_token stop, std::error_code& ec) const
    {
        return self().acquire(waitForever, lease, nullptr, stop, ec);
    }

    /// One attempt: asks Redis once and does not wait for the holder. Blocks for the round trip.
    /// @return whether the lock is now held. @throws LockError as lock(); `unreachable` as soon as all addresses of the
    /// server have refused once (at most one attempt every 50 ms), or when a server has not answered for
    /// `Config::commandTimeout`.
    [[nodiscard]] bool tryLock() const { return tryLock(oneAttempt); }
    /// As tryLock(), without exceptions; false with a code on errors.
    [[nodiscard]] bool tryLock(std::error_code& ec) const { return tryLock(oneAttempt, ec); }

    /// Tries until @p wait is over. Blocks for at most @p wait, whatever happens. If the wait ends while a request is
    /// under way, the result is false if a reply since the beginning of the call said that another holds the lock, and
    /// `unreachable` if there was no reply yet, or none for `Config::commandTimeout`; what Redis grants after that is
    /// released in the background. So a wait shorter than a round trip (or than connecting, if there is no connection
    /// yet) is `unreachable`; tryLock() has `Config::commandTimeout` for its one attempt.
    /// @param wait zero or negative: as tryLock(); `waitForever`: as lock(lease).
    /// @param lease 10 ms … 30 days, or `keepRenewing`. Counted from the attempt that won, not from the start of the
    /// wait.
    /// @param stop calls it off when it is stopped.
    /// @return whether the lock is now held. @throws LockError as lock(Lease).
    [[nodiscard]] bool tryLock(Wait wait, Lease lease = keepRenewing, std::stop_token stop = {}) const
    {
        return acquire("tryLock", wait, lease, nullptr, stop);
    }
    /// As tryLock(Wait, Lease, std::stop_token), with `keepRenewing`.
    [[nodiscard]] bool tryLock(Wait wait, std::stop_token stop) const
    {
        return tryLock(wait, keepRenewing, std::move(stop));
    }
    /// As tryLock(Wait, Lease), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, std::error_code& ec) const { return tryLock(wait, keepRenewing, ec); }
    /// As tryLock(Wait, Lease), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, std::error_code& ec) const
    {
        return self().acquire(wait, lease, nullptr, {}, ec);
    }
    /// As tryLock(Wait, Lease, std::stop_token), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, std::stop_token stop, std::error_code& ec) const
    {
        return self().acquire(wait, lease, nullptr, stop, ec);
    }

    /// Tries until @p wait is over, with pauses of the caller's choice between the attempts, instead of waiting for a
    /// notification: for names that are held for microseconds, or servers without pub/sub. The call has no place in any
    /// queue, not even in that of a fair lock, so that a long pause delays no other waiter. Otherwise as tryLock(Wait,
    /// Lease).
    /// @param retry the pauses; when it gives up, the lock counts as not acquired. Its function is called on this
    /// thread.
    /// @param stop calls it off when it is stopped, but not before a running function of the policy has returned.
    /// @throws LockError `invalidArgument`, with the exception nested (`std::rethrow_if_nested`), when that function
    /// throws.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, RetryPolicy retry, std::stop_token stop = {}) const
    {
        return acquire("tryLock", wait, lease, shared(std::move(retry)), stop);
    }
    /// As tryLock(Wait, Lease, RetryPolicy), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, RetryPolicy retry, std::error_code& ec) const
    {
        return tryLock(wait, lease, std::move(retry), std::stop_token(), ec);
    }
    /// As tryLock(Wait, Lease, RetryPolicy, std::stop_token), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, RetryPolicy retry, std::stop_token stop,
                               std::error_code& ec) const
    {
        return self().acquire(wait, lease, shared(std::move(retry)), stop, ec);
    }

    /// tryLock() under the standard's name (*Lockable*).
    [[nodiscard]] bool try_lock() const { return tryLock(); }
    /// tryLock(wait) under the standard's name (*TimedLockable*).
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) const
    {
        return tryLock(Wait(wait));
    }
    /// tryLock() until a moment of any clock; a moment in the past means one attempt (*TimedLockable*).
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) const
    {
        return tryLock(Wait::until(until, Clock::now()));
    }

    /// Acquires the lock without blocking a thread; the watchdog renews it until the guard ends it.
    ///
    /// The hold belongs to the guard, not to a thread: it is not re-entrant, a second asyncLock() waits for the first,
    /// and the guard may be used on any thread. While it waits, the call shares one queue with the threads of the
    /// lock's client.
    /// @param token any completion token for `void(boost::system::error_code, Guard)`. The handler is called once, on
    /// its associated executor; without one on the client's own thread (of one of its members, if the lock has some),
    /// where it must not block, and never in a forked child. An exception of the handler passes through `run()` of its
    /// context; on the client's own thread it ends the process (`std::terminate`). The default is
    /// `boost::asio::deferred`: the call begins when it is awaited, `co_await lock.asyncLock()`. With `use_awaitable`,
    /// an exception also names the call, the lock and the server, and calls can be combined by Asio's `||` and `&&`;
    /// the exception that Asio throws for a deferred call has only the code. Errors as lock(), as codes: `Errc`, which
    /// compares with `std::error_code` and `boost::system::error_code`.
    /// **Cancellation** (terminal, partial and total): ends the call with `boost::asio::error::operation_aborted` and
    /// nothing held; what Redis may have granted meanwhile is released in the background. After the client's end:
    /// `Errc::shutdown`. **Lifetime**: the context of the handler's executor (an `io_context`, a `thread_pool`) counts
    /// the call as work until the handler has run. The context may be destroyed earlier, even before or while the
    /// client is destroyed: it then destroys the handler, on the thread that destroys the context, as it does the
    /// handlers of its own timers and sockets; the call is cancelled, and a guard that was on its way releases its
    /// hold. `boost::asio::any_completion_executor`, which an `any_completion_handler` has, and an executor of your own
    /// without `boost::asio::execution::context`, do not tell their context: that context must outlive the call.
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncLock(Token&& token = Token()) const
    {
        return asyncTryLock(waitForever, keepRenewing, std::forward<Token>(token));
    }
    /// asyncLock() with a fixed lease; as lock(Lease).
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncLock(Lease lease, Token&& token = Token()) const
    {
        return asyncTryLock(waitForever, lease, std::forward<Token>(token));
    }
    /// One attempt, as tryLock(): an empty guard when others hold the lock. Otherwise as asyncLock().
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncTryLock(Token&& token = Token()) const
    {
        return asyncTryLock(oneAttempt, keepRenewing, std::forward<Token>(token));
    }
    /// Tries until @p wait is over, as tryLock(Wait): an empty guard then. Otherwise as asyncLock().
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncTryLock(Wait wait, Token&& token = Token()) const
    {
        return asyncTryLock(wait, keepRenewing, std::forward<Token>(token));
    }
    /// As tryLock(Wait, Lease): an empty guard when the wait is over. Otherwise as asyncLock().
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncTryLock(Wait wait, Lease lease, Token&& token = Token()) const
    {
        return asyncAcquire(wait, lease, nullptr, std::forward<Token>(token));
    }
    /// As tryLock(Wait, Lease, RetryPolicy), but the policy's function is called on the client's own thread, where it
    /// must not block; `invalidArgument` when it throws. Otherwise as asyncLock().
    template <CompletionTokenFor<Guard> Token = boost::asio::deferred_t>
    auto asyncTryLock(Wait wait, Lease lease, RetryPolicy retry, Token&& token = Token()) const
    {
        return asyncAcquire(wait, lease, shared(std::move(retry)), std::forward<Token>(token));
    }

protected:
    /// How a call waits; null: in the lock's own way.
    using Retry = std::shared_ptr<const RetryPolicy>;

    ~LockCalls() = default;

private:
    friend Self;

    LockCalls() = default;
    LockCalls(const LockCalls&) = default;
    LockCalls& operator=(const LockCalls&) = default;

    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
    static Retry shared(RetryPolicy retry) { return std::make_shared<const RetryPolicy>(std::move(retry)); }

    bool acquire(const char* verb, Wait wait, Lease lease, const Retry& retry, const std::stop_token& stop = {}) const
    {
        std::error_code ec;
        std::exception_ptr thrown; // by the policy
        const bool acquired = self().acquire(wait, lease, retry, stop, ec, &thrown);
        if (ec) {
            self().fail(verb, lease, ec, thrown);
        }
        return acquired;
    }

    template <class Token>
    auto asyncAcquire(Wait wait, Lease lease, Retry retry, Token&& token) const
    {
        return detail::initiate<Token, Guard>(
            wait == waitForever ? "asyncLock" : "asyncTryLock", self().state_,
            [lock = self()](auto handler, Wait w, Lease l, const Retry& r) {
                lock.asyncAcquire(w, l, r, detail::Handler<Guard>(std::move(handler)));
            },
            token, wait, lease, std::move(retry));
    }
};

} // namespace redislock
