/// @file
/// A scope that holds a lock.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/identity.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/lock.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>

namespace redislock {

/// Holds a lock for the length of a scope and knows whether it still does.
///
/// **Guarantees**: ends exactly the level that it took, once, on whatever thread it is destroyed; its destructor
/// neither waits nor throws: the hold counts as ended at once, and the release is sent without waiting for the answer,
/// and repeated in the background while the lease lasts. So it is faster than unlock() by a round trip.
/// **Does not guarantee** that the lock is free for others the moment the destructor returns: use release() to wait for
/// that. If the process ends by `_exit`, `quick_exit` or `exec`, the operating system usually has the request by then;
/// but not if there is no connection, if the socket's buffer is full, or for a guard from asyncLock(). Call release()
/// in such programs.
///
/// | state               | operator bool | release()      | destructor          |
/// |---------------------|---------------|----------------|---------------------|
/// | empty, or released  | false         | `notHeld`      | nothing             |
/// | held                | true          | ends it, waits | ends it, does not wait |
/// | lost                | false         | `alreadyLost`  | nothing             |
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe. A guard may be moved to another thread, and
/// released there; until then the thread that made it counts as the holder (re-entrance, holdCount()).
/// **Lifetime**: may outlive the lock object and the Client; after the Client's shutdown it does nothing.
/// **If the lock is lost**: operator bool turns false, stopToken() is stopped.
/// **Cost**: to acquire, as Lock::lock(); the destructor writes one request and does not wait.
///
/// @code
/// if (redislock::LockGuard held(lock, 100ms, 10s); held) { sell(held.stopToken()); }
/// @endcode
class [[nodiscard]] REDISLOCK_EXPORT LockGuard {
public:
    /// An empty guard.
    LockGuard() noexcept = default;
    /// Acquires as lock.lock(). @throws LockError as there.
    explicit LockGuard(const Lock& lock);
    /// As LockGuard(lock), without exceptions: empty with a code on errors.
    LockGuard(const Lock& lock, std::error_code& ec);
    /// Acquires as lock.lock(lease). @throws LockError as there.
    /// @param lease a Lease, `LockGuard(lock, Lease(10s))`: a plain duration, which could be a wait, does not compile.
    LockGuard(const Lock& lock, std::same_as<Lease> auto lease) : LockGuard(lock, waitForever, lease) {}
    /// As LockGuard(lock, lease), without exceptions.
    LockGuard(const Lock& lock, std::same_as<Lease> auto lease, std::error_code& ec)
        : LockGuard(lock, waitForever, lease, ec)
    {
    }
    /// Acquires as lock.lock(stop); empty when it was called off. @throws LockError as there.
    LockGuard(const Lock& lock, std::stop_token stop);
    /// As LockGuard(lock, stop), without exceptions.
    LockGuard(const Lock& lock, std::stop_token stop, std::error_code& ec);
    /// Acquires as lock.tryLock(wait, lease, stop); empty when the wait is over, or called off. @throws LockError as
    /// there.
    LockGuard(const Lock& lock, Wait wait, Lease lease, std::stop_token stop = {});
    /// As LockGuard(lock, wait, lease), without exceptions.
    LockGuard(const Lock& lock, Wait wait, Lease lease, std::error_code& ec);
    /// As LockGuard(lock, wait, lease, stop), without exceptions.
    LockGuard(const Lock& lock, Wait wait, Lease lease, std::stop_token stop, std::error_code& ec);

    /// Takes over the hold; @p other becomes empty.
    LockGuard(LockGuard&& other) noexcept;
    /// Ends its own hold as the destructor does, then takes over the other's.
    LockGuard& operator=(LockGuard&& other) noexcept;
    /// Ends the hold at once; sends the release and does not wait for it. Never throws.
    ~LockGuard();

    /// Whether the lock is held and valid now, judged by this process' clock alone. Does not block.
    [[nodiscard]] explicit operator bool() const noexcept;

    /// Ends the hold and waits for the answer, bounds and results as Lock::unlock().
    /// @throws LockError `notHeld` when the guard is empty or was released before.
    Unlocked release();
    /// As release(), without exceptions.
    Unlocked release(std::error_code& ec);

    /// Ends the hold at once, as the destructor does, and calls the handler when Redis has confirmed that; bounds and
    /// results as for release().
    /// @param token any completion token for `void(boost::system::error_code, Unlocked)`. The handler is called once,
    /// on its associated executor; without one on the client's own thread, where it must not block. `Errc::notHeld`
    /// when the guard is empty or was released before. Cannot be cancelled, since it has its own time limit; it
    /// continues if the executor's context ends first. For a nested level the result is `stillHeld`, at once.
    template <CompletionTokenFor<Unlocked> Token = boost::asio::deferred_t>
    auto asyncRelease(Token&& token = Token())
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code, Unlocked)>(
            [](auto handler, LockGuard guard) {
                asyncRelease(std::move(guard), detail::UnlockHandler(std::move(handler)));
            },
            token, std::move(*this));
    }

    /// As Lock::stopToken(), for this guard's hold; already stopped when empty.
    [[nodiscard]] std::stop_token stopToken(StopAt when = StopAt::lost) const noexcept;
    /// As Lock::validFor(), for this guard's hold; 0 when empty.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// The token of a FencedLock's hold, for the resource that the lock protects; empty for an empty guard and for
    /// other kinds.
    [[nodiscard]] std::optional<FencingToken> token() const noexcept
    {
        return token_ == 0 ? std::nullopt : std::optional(FencingToken{token_});
    }

private:
    void acquire(const Lock& lock, Wait wait, Lease lease, const std::stop_token& stop, std::error_code& ec,
                 std::exception_ptr* thrown = nullptr);
    void end() noexcept;

    friend struct detail::LockAccess;
    explicit LockGuard(detail::Acquired&& acquired) noexcept;
    static void asyncRelease(LockGuard guard, detail::UnlockHandler handler);

    detail::HoldRef hold_;
    std::uint32_t level_ = 0;
    std::uint64_t token_ = 0; ///< 0: none
};

} // namespace redislock
