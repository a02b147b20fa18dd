/// @file
/// A permit of an expirable semaphore, held for a scope.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// One permit of a PermitExpirableSemaphore, held until this object, or the one that it is moved to, is destroyed.
///
/// **Guarantees**: the destructor releases the permit, and neither throws nor waits: the request is sent in the
/// background and repeated until it is answered, for up to a minute. validFor() reaches 0 before Redis may give the
/// permit to another. **Does not guarantee** that the permit is free for others the moment the destructor returns: use
/// release() to wait for that. A permit is not renewed automatically: see PermitExpirableSemaphore::updateLeaseTime().
///
/// | state             | operator bool | release()      | destructor             |
/// |-------------------|---------------|----------------|------------------------|
/// | empty, or released| false         | `notHeld`      | nothing                |
/// | held              | true          | ends it, waits | ends it, does not wait |
/// | lease over        | false         | `alreadyLost`  | nothing in effect      |
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe. A permit may be moved to another thread, and
/// released there. **Lifetime**: may outlive the semaphore object and the Client; after the Client's shutdown it does
/// nothing.
/// **If the permit is lost** (lease over): operator bool turns false; no function is called.
///
/// @code
/// if (redislock::Permit permit = printers.tryAcquire(100ms, 10s)) { print(permit.validFor()); }
/// @endcode
class [[nodiscard]] REDISLOCK_EXPORT Permit {
public:
    /// An empty permit.
    Permit() noexcept = default;
    /// Takes over the permit; @p other becomes empty.
    Permit(Permit&& other) noexcept = default;
    /// Ends its own permit as the destructor does, then takes over the other's.
    Permit& operator=(Permit&& other) noexcept;
    /// Ends the permit at once; sends the release and does not wait for it. Never throws.
    ~Permit();

    /// Whether the permit is held and valid now, judged by this process' clock alone. Does not block.
    [[nodiscard]] explicit operator bool() const noexcept;
    /// How long the permit is certain to last; `milliseconds::max()` for a non-expiring one, 0 when empty. Does not
    /// block.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// Its id in Redis, 32 hex digits, by which any process may release it; empty for an empty permit.
    [[nodiscard]] const std::string& id() const noexcept;

    /// Releases the permit and waits for the answer, for at most `Config::unreachableAfter`; then it returns
    /// `unconfirmed`, and continues in the background. If the server denies the request (`authFailed`,
    /// `permissionDenied`), it returns `unconfirmed` at once.
    /// @return `released`; `alreadyLost` when its lease was over, or Redis no longer had it; `unconfirmed`.
    /// @throws LockError `notHeld` when the permit is empty or was released before.
    Unlocked release();
    /// As release(), without exceptions.
    Unlocked release(std::error_code& ec);

    /// release() without blocking a thread; the permit is empty at once.
    /// @param token any completion token for `void(boost::system::error_code, Unlocked)`. The handler is called once,
    /// on its associated executor; without one on the client's own thread, where it must not block.
    template <CompletionTokenFor<Unlocked> Token = boost::asio::deferred_t>
    auto asyncRelease(Token&& token = Token())
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code, Unlocked)>(
            [](auto handler, Permit permit) {
                startRelease(std::move(permit), detail::UnlockHandler(std::move(handler)));
            },
            token, std::move(*this));
    }

private:
    friend struct detail::CounterCalls;
    explicit Permit(std::shared_ptr<detail::PermitHold> hold) noexcept : hold_(std::move(hold)) {}
    static void startRelease(Permit permit, detail::UnlockHandler handler);
    void end() noexcept;

    std::shared_ptr<detail::PermitHold> hold_;
};

} // namespace redislock
