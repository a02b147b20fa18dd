/// @file
/// Functions that run under a lock.
#pragma once

#include "redislock/client.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redislock {

namespace detail {

// not defined: only says which guard belongs to which lock
LockGuard guardOf(const Lock& lock);
GroupGuard guardOf(const GroupLock& lock);

/// A Lock of any kind, a MultiLock or a RedLock.
template <class T>
concept AnyLock = requires(const T& lock)
{
    guardOf(lock);
};
/// The guard that holds such a lock for a scope.
template <AnyLock T>
using GuardOf = decltype(guardOf(std::declval<const T&>()));

/// Runs a function with the hold's stop token where it takes one.
template <class Guard, class Function>
decltype(auto) invokeUnder(const Guard& held, Function&& function)
{
    if constexpr (std::is_invocable_v<Function, std::stop_token>) {
        return std::invoke(std::forward<Function>(function), held.stopToken());
    } else {
        return std::invoke(std::forward<Function>(function));
    }
}

/// The result for a function that did not run: empty, or false.
template <class T>
using IfRun = std::conditional_t<std::is_void_v<T>, bool, std::optional<T>>;

/// Runs a function if its lock is held.
template <class Guard, class Function>
auto runIfHeld(const Guard& held, Function&& function)
{
    using Result = decltype(invokeUnder(held, std::forward<Function>(function)));
    if constexpr (std::is_void_v<Result>) {
        if (!held) {
            return false;
        }
        invokeUnder(held, std::forward<Function>(function));
        return true;
    } else {
        using Value = IfRun<std::remove_cvref_t<Result>>;
        return held ? Value(invokeUnder(held, std::forward<Function>(function))) : Value();
    }
}

/// The lock of a call: one for all calls, or the one that a function returns for the call's arguments.
template <class Locks, class... Arguments>
decltype(auto) lockFor(const Locks& locks, const Arguments&... arguments)
{
    if constexpr (AnyLock<Locks>) {
        return (locks);
    } else {
        return std::invoke(locks, arguments...);
    }
}

/// Returns the RedisLock whose name a function computes. Keeps the client's state alive, not the Client.
template <class NameOf>
auto locksNamedBy(const Client& client, NameOf nameOf)
{
    return [locks = client.locks(), nameOf = std::move(nameOf)](const auto&... arguments) {
        return locks(std::string(std::invoke(nameOf, arguments...)));
    };
}

} // namespace detail

/// Runs @p function while holding @p lock, and releases the lock whatever happens. Blocks for at most @p wait, then for
/// as long as the function runs.
///
/// @param lock of any kind, also a MultiLock or RedLock.
/// @param wait how long to wait for the lock; zero: one attempt.
/// @param lease 10 ms … 30 days, or `keepRenewing`.
/// @param function called with no argument, or with the hold's `std::stop_token` where it takes one.
/// @return `std::optional` of what the function returned, empty when the lock was not acquired; for a function that
/// returns nothing, whether it ran.
/// @throws LockError as Lock::tryLock(); whatever the function throws.
///
/// @code
/// auto sold = redislock::executeWithLock(lock, 100ms, 10s, [&] { return sell(); });
/// @endcode
template <detail::AnyLock SomeLock, class Function>
[[nodiscard]] auto executeWithLock(const SomeLock& lock, Wait wait, Lease lease, Function&& function)
{
    return detail::runIfHeld(detail::GuardOf<SomeLock>(lock, wait, lease), std::forward<Function>(function));
}
/// As executeWithLock(lock, wait, lease, function), but errors of the lock are reported as codes; the function has not
/// run then. Exceptions of the function still pass through. @p ec is cleared otherwise.
template <detail::AnyLock SomeLock, class Function>
[[nodiscard]] auto executeWithLock(const SomeLock& lock, Wait wait, Lease lease, Function&& function,
                                   std::error_code& ec)
{
    return detail::runIfHeld(detail::GuardOf<SomeLock>(lock, wait, lease, ec), std::forward<Function>(function));
}
/// As executeWithLock(lock, wait, lease, function), until @p stop is stopped: a call that waits for the lock then ends
/// soon, like the calls of a Lock that are called off (see LockCalls), and the function has not run. A function that
/// already runs continues.
template <detail::AnyLock SomeLock, class Function>
[[nodiscard]] auto executeWithLock(const SomeLock& lock, Wait wait, Lease lease, std::stop_token stop,
                                   Function&& function)
{
    return detail::runIfHeld(detail::GuardOf<SomeLock>(lock, wait, lease, std::move(stop)),
                             std::forward<Function>(function));
}
/// As executeWithLock(lock, wait, lease, stop, function), with errors of the lock as codes.
template <detail::AnyLock SomeLock, class Function>
[[nodiscard]] auto executeWithLock(const SomeLock& lock, Wait wait, Lease lease, std::stop_token stop,
                                   Function&& function, std::error_code& ec)
{
    return detail::runIfHeld(detail::GuardOf<SomeLock>(lock, wait, lease, std::move(stop), ec),
                             std::forward<Function>(function));
}

/// Wraps a function once so that every call of it runs under a lock.
///
/// Each call waits for the lock as long as it takes, holds it with `keepRenewing`, and releases it when the function
/// returns or throws.
/// @param locks the lock, of any kind, also a MultiLock or RedLock; or a function that returns it, called with the
/// arguments of each call. @param function what runs under the lock.
/// @return a function object with the arguments and result of @p function, that may be called by many threads if
///   @p locks and @p function may. A call throws LockError as Lock::lock(), and whatever the two throw.
///
/// @code
/// auto sellLocked = redislock::locked([client](int id) { return client->getFairLock(nameOf(id)); }, sell);
/// sellLocked(42);
/// @endcode
template <class Locks, class Function>
[[nodiscard]] auto locked(Locks locks, Function function)
{
    return [locks = std::move(locks), function = std::move(function)](auto&&... arguments) -> decltype(auto) {
        decltype(auto) lock = detail::lockFor(locks, arguments...);
        const detail::GuardOf<std::remove_cvref_t<decltype(lock)>> held(lock);
        return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
    };
}
/// As locked(locks, function), but each call waits for the lock for at most @p wait, and holds it with @p lease; it
/// returns what executeWithLock() returns: an empty `std::optional`, or false, when the lock was not acquired.
template <class Locks, class Function>
[[nodiscard]] auto locked(Locks locks, Wait wait, Lease lease, Function function)
{
    return [locks = std::move(locks), wait, lease, function = std::move(function)](auto&&... arguments) {
        return executeWithLock(detail::lockFor(locks, arguments...), wait, lease, [&]() -> decltype(auto) {
            return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
        });
    };
}
/// As locked(locks, function), with a RedisLock whose name is computed from the call's arguments.
/// @param client where the locks live: the function object keeps its state, not the Client.
/// @param nameOf called with the arguments; returns the lock's name.
///
/// @code
/// auto sellLocked = redislock::locked(client, [](int id) { return fmt::format("stock:{}", id); }, sell);
/// sellLocked(42);
/// @endcode
template <class NameOf, class Function>
[[nodiscard]] auto locked(const Client& client, NameOf nameOf, Function function)
{
    return locked(detail::locksNamedBy(client, std::move(nameOf)), std::move(function));
}
/// As locked(locks, wait, lease, function), with a RedisLock whose name is computed from the call's arguments.
template <class NameOf, class Function>
[[nodiscard]] auto locked(const Client& client, NameOf nameOf, Wait wait, Lease lease, Function function)
{
    return locked(detail::locksNamedBy(client, std::move(nameOf)), wait, lease, std::move(function));
}

} // namespace redislock
