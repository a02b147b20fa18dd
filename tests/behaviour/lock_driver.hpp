/// @file
/// A driver is a form in which a kind of lock can be used, so that one suite tests all forms and kinds.
#pragma once

#include "redislock/client.hpp"
#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/unlocked.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redislock::test {

// --- The result of a call
// --------------------------------------------------------------------------------------------------

/// The result of a call, or its error; compares with a result and with an Errc.
template <class T>
struct [[nodiscard]] Result {
    T value{};
    std::error_code error;

    friend bool operator==(const Result& result, const T& expected) requires std::equality_comparable<T>
    {
        return !result.error && result.value == expected;
    }
    friend bool operator==(const Result& result, Errc expected) { return result.error == expected; }

    friend std::ostream& operator<<(std::ostream& out, const Result& result)
    {
        if (result.error) {
            return out << "error: " << result.error.message();
        }
        if constexpr (requires { out << result.value; }) {
            return out << result.value;
        } else if constexpr (std::is_enum_v<T>) {
            return out << "value " << static_cast<int>(result.value);
        } else {
            return out << "a result";
        }
    }
};

/// Moves the value of a call that must succeed out of its result. @throws std::logic_error when it failed.
template <class T>
T must(Result<T> result)
{
    if (result.error) {
        throw std::logic_error("unexpected error: " + result.error.message());
    }
    return std::move(result.value);
}

/// Whether an outermost hold ended correctly: the lock is free, or the next caller of the client has it.
inline bool isEnded(Unlocked how)
{
    return how == Unlocked::released || how == Unlocked::passedOn;
}
inline bool isEnded(const Result<Unlocked>& how)
{
    return !how.error && isEnded(how.value);
}

// --- What a driver is
// --------------------------------------------------------------------------------------------------

/// The features that a kind of lock, or a form of its use, may lack.
enum class Feature {
    reentrance,    ///< a holder may lock again
    threadHolds,   ///< holds belong to threads: the lock knows its holder, and no thread ends another thread's hold
    blocking,      ///< calls block their thread, and are refused on a thread that must not block
    guards,        ///< LockGuard, or something with its functions
    leases,        ///< fixed leases
    waiting,       ///< waits until the lock is free
    forceUnlock,   ///< an operator may free it
    standardNames, ///< try_lock, try_lock_for, try_lock_until
    executing,     ///< executeWithLock, locked
    exclusion,     ///< one holder at a time
    oneChannel,    ///< an unlock publishes on one channel, to which all waiters listen
};

/// A driver: static functions that each do one thing with a lock. Errors are part of the result, whatever form they
/// have in the library; `unsupported` has the features that the driver lacks.
template <class D>
concept LockDriver = requires(const Client& client, const typename D::Lock& lock, typename D::Guard& guard, Wait wait,
                              Lease lease)
{
    requires std::copyable<typename D::Lock>;
    {
        D::name
        } -> std::convertible_to<std::string_view>;
    D::unsupported.begin();
    {
        D::make(client, std::string())
        } -> std::same_as<Result<std::optional<typename D::Lock>>>;
    {
        D::lock(lock)
        } -> std::same_as<Result<bool>>;
    {
        D::lock(lock, lease)
        } -> std::same_as<Result<bool>>;
    {
        D::tryLock(lock)
        } -> std::same_as<Result<bool>>;
    {
        D::tryLock(lock, wait)
        } -> std::same_as<Result<bool>>;
    {
        D::tryLock(lock, wait, lease)
        } -> std::same_as<Result<bool>>;
    {
        D::unlock(lock)
        } -> std::same_as<Result<Unlocked>>;
    {
        D::forceUnlock(lock)
        } -> std::same_as<Result<bool>>;
    {
        D::isLocked(lock)
        } -> std::same_as<Result<bool>>;
    {
        D::remainingTimeToLive(lock)
        } -> std::same_as<Result<std::optional<std::chrono::milliseconds>>>;
    {
        D::guard(lock)
        } -> std::same_as<Result<typename D::Guard>>;
    {
        D::guard(lock, lease)
        } -> std::same_as<Result<typename D::Guard>>;
    {
        D::guard(lock, wait, lease)
        } -> std::same_as<Result<typename D::Guard>>;
    {
        D::release(guard)
        } -> std::same_as<Result<Unlocked>>;
};

template <LockDriver D>
constexpr bool supports(Feature feature)
{
    return std::find(D::unsupported.begin(), D::unsupported.end(), feature) == D::unsupported.end();
}

} // namespace redislock::test

namespace redislock {

inline std::ostream& operator<<(std::ostream& out, Unlocked how)
{
    static constexpr std::array names{"released", "stillHeld", "alreadyLost", "unconfirmed", "passedOn"};
    return out << names.at(static_cast<std::size_t>(how));
}

inline std::ostream& operator<<(std::ostream& out, Errc error)
{
    return out << make_error_code(error).message();
}

} // namespace redislock
