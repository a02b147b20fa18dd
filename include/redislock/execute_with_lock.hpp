/// @file
/// Functions that run under a lock.
#pragma once

#include "redislock/client.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace redislock {

namespace detail {

/// Runs a function with the hold's stop token where it takes one.
template <class Function>
decltype(auto) invokeUnder(const LockGuard& held, Function&& function)
{
    if constexpr (std::is_invocable_v<Function, std::stop_token>) {
        return std::invoke(std::forward<Function>(function), held.stopToken());
    } else {
        return std::invoke(std::forward<Function>(function));
    }
}

} // namespace detail

/// Runs @p function while holding @p lock, and ends the hold whatever happens. Blocks for at most @p wait, then for as
/// long as the function runs.
///
/// @param wait how long to wait for the lock; zero: one attempt.
/// @param lease 10 ms … 30 days, or `keepRenewing`.
/// @param function called with no argument, or with the hold's `std::stop_token` where it takes one.
/// @return `std::optional` of what the function returned, empty when the lock was not to be had; for a function that
/// returns
///   nothing, whether it ran.
/// @throws LockError as Lock::tryLock(); whatever the function throws.
///
/// @code
/// auto sold = redislock::executeWithLock(lock, 100ms, 10s, [&] { return sell(); });
/// @endcode
template <class Function>
[[nodiscard]] auto executeWithLock(const Lock& lock, Wait wait, Lease lease, Function&& function)
{
    using Result = decltype(detail::invokeUnder(std::declval<const LockGuard&>(), std::forward<Function>(function)));
    const LockGuard held(lock, wait, lease);
    if constexpr (std::is_void_v<Result>) {
        if (!held) {
            return false;
        }
        detail::invokeUnder(held, std::forward<Function>(function));
        return true;
    } else {
        using Value = std::optional<std::remove_cvref_t<Result>>;
        return held ? Value(detail::invokeUnder(held, std::forward<Function>(function))) : Value();
    }
}

/// Wraps a function once so that every call of it runs under a lock whose name is computed from the call's arguments.
///
/// Each call waits for the lock as long as it takes, holds it with `keepRenewing` and ends the hold when the function
/// returns or throws.
/// @param client where the locks live. @param nameOf called with the arguments; gives the lock's name.
/// @param function what runs under the lock. @return a function object with the arguments and result of @p function; it
///   keeps the client's state, not the Client, and may be called by many threads if @p nameOf and @p function may.
///
/// @code
/// auto sellLocked = redislock::locked(client, [](int id) { return fmt::format("stock:{}", id); }, sell);
/// sellLocked(42);
/// @endcode
template <class NameOf, class Function>
[[nodiscard]] auto locked(const Client& client, NameOf nameOf, Function function)
{
    return [locks = client.locks(), nameOf = std::move(nameOf),
            function = std::move(function)](auto&&... arguments) -> decltype(auto) {
        const LockGuard held(locks(std::string(std::invoke(nameOf, std::as_const(arguments)...))));
        return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
    };
}

} // namespace redislock
