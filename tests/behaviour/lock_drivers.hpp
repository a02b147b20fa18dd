/// @file
/// The forms in which a kind of lock can be used, so that one suite tests them all.
#pragma once

#include "redislock/client.hpp"
#include "redislock/error.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/unlocked.hpp"

#include <gtest/gtest.h>

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

// --- What a call gave --------------------------------------------------------------------------------------------------

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

// --- What a driver is --------------------------------------------------------------------------------------------------

/// What a kind of lock, or a form of its use, may lack.
enum class Feature {
    reentrance,    ///< a holder may lock again
    guards,        ///< LockGuard, or something with its functions
    leases,        ///< fixed leases
    waiting,       ///< waits until the lock is free
    forceUnlock,   ///< an operator may free it
    standardNames, ///< try_lock, try_lock_for, try_lock_until
    executing,     ///< executeWithLock, locked
};

/// A driver: static functions that do one thing each with a lock. Errors are part of the result, whatever form they have in the
/// library; what the driver lacks is in `unsupported`.
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

// --- The drivers of RedisLock ------------------------------------------------------------------------------------------

/// RedisLock through the calls that throw.
struct BlockingThrowing {
    static constexpr std::string_view name = "RedisLockThrowing";
    static constexpr std::array<Feature, 0> unsupported{};
    using Lock = RedisLock;
    using Guard = LockGuard;

    static Result<std::optional<Lock>> make(const Client& client, std::string lockName)
    {
        return run([&] { return std::optional(client.getLock(std::move(lockName))); });
    }
    static Result<bool> lock(const Lock& lock)
    {
        return run([&] { return lock.lock(), true; });
    }
    static Result<bool> lock(const Lock& lock, Lease lease)
    {
        return run([&] { return lock.lock(lease), true; });
    }
    static Result<bool> tryLock(const Lock& lock)
    {
        return run([&] { return lock.tryLock(); });
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait)
    {
        return run([&] { return lock.tryLock(wait); });
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait, Lease lease)
    {
        return run([&] { return lock.tryLock(wait, lease); });
    }
    static Result<Unlocked> unlock(const Lock& lock)
    {
        return run([&] { return lock.unlock(); });
    }
    static Result<bool> forceUnlock(const Lock& lock)
    {
        return run([&] { return lock.forceUnlock(); });
    }
    static Result<bool> isLocked(const Lock& lock)
    {
        return run([&] { return lock.isLocked(); });
    }
    static Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive(const Lock& lock)
    {
        return run([&] { return lock.remainingTimeToLive(); });
    }
    static Result<Guard> guard(const Lock& lock)
    {
        return run([&] { return LockGuard(lock); });
    }
    static Result<Guard> guard(const Lock& lock, Lease lease)
    {
        return run([&] { return LockGuard(lock, lease); });
    }
    static Result<Guard> guard(const Lock& lock, Wait wait, Lease lease)
    {
        return run([&] { return LockGuard(lock, wait, lease); });
    }
    static Result<Unlocked> release(Guard& guard)
    {
        return run([&] { return guard.release(); });
    }

private:
    /// An exception of another type ends the test.
    template <class Function>
    static auto run(Function function) -> Result<decltype(function())>
    {
        try {
            return {function(), {}};
        } catch (const LockError& e) {
            EXPECT_EQ(e.code().category(), errorCategory());
            EXPECT_NE(std::string_view(e.what()), "");
            return {{}, e.code()};
        }
    }
};

/// RedisLock through the calls that report a `std::error_code`.
struct BlockingCodes {
    static constexpr std::string_view name = "RedisLockCodes";
    static constexpr std::array unsupported{Feature::standardNames, Feature::executing}; // they only throw
    using Lock = RedisLock;
    using Guard = LockGuard;

    static Result<std::optional<Lock>> make(const Client& client, std::string lockName)
    {
        return BlockingThrowing::make(client, std::move(lockName)); // getLock() has the one form
    }
    static Result<bool> lock(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.lock(ec), !ec; });
    }
    static Result<bool> lock(const Lock& lock, Lease lease)
    {
        return run([&](std::error_code& ec) { return lock.lock(lease, ec), !ec; });
    }
    static Result<bool> tryLock(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.tryLock(ec); });
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait)
    {
        return run([&](std::error_code& ec) { return lock.tryLock(wait, ec); });
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait, Lease lease)
    {
        return run([&](std::error_code& ec) { return lock.tryLock(wait, lease, ec); });
    }
    static Result<Unlocked> unlock(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.unlock(ec); });
    }
    static Result<bool> forceUnlock(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.forceUnlock(ec); });
    }
    static Result<bool> isLocked(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.isLocked(ec); });
    }
    static Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return lock.remainingTimeToLive(ec); });
    }
    static Result<Guard> guard(const Lock& lock)
    {
        return run([&](std::error_code& ec) { return LockGuard(lock, ec); });
    }
    static Result<Guard> guard(const Lock& lock, Lease lease)
    {
        return run([&](std::error_code& ec) { return LockGuard(lock, lease, ec); });
    }
    static Result<Guard> guard(const Lock& lock, Wait wait, Lease lease)
    {
        return run([&](std::error_code& ec) { return LockGuard(lock, wait, lease, ec); });
    }
    static Result<Unlocked> release(Guard& guard)
    {
        return run([&](std::error_code& ec) { return guard.release(ec); });
    }

private:
    /// The code begins as a foreign error: what succeeds must clear it.
    template <class Function>
    static auto run(Function function) -> Result<decltype(function(std::declval<std::error_code&>()))>
    {
        std::error_code ec = std::make_error_code(std::errc::io_error);
        auto value = function(ec);
        if (ec) {
            EXPECT_EQ(ec.category(), errorCategory());
        }
        return {std::move(value), ec};
    }
};

// --- Lists of drivers --------------------------------------------------------------------------------------------------

namespace detail {

template <class... Drivers>
struct DriverList {
    using Types = ::testing::Types<Drivers...>;

    template <class D>
    using With = DriverList<Drivers..., D>;
};

template <class List, class Needed, class... Drivers>
struct Filter {
    using Kept = List;
};

template <class List, class Needed, class D, class... Rest>
struct Filter<List, Needed, D, Rest...> {
    using Next = std::conditional_t<Needed::template metBy<D>, typename List::template With<D>, List>;
    using Kept = typename Filter<Next, Needed, Rest...>::Kept;
};

template <Feature... needed>
struct Needs {
    template <class D>
    static constexpr bool metBy = (supports<D>(needed) && ...);
};

} // namespace detail

/// The drivers that support all of these features. Who adds a driver adds it here.
template <Feature... needed>
using DriversWith = typename detail::Filter<detail::DriverList<>, detail::Needs<needed...>, BlockingThrowing,
                                            BlockingCodes>::Kept::Types;

/// Names of the drivers in the names of the tests.
struct DriverNames {
    template <class D>
    static std::string GetName(int /*index*/)
    {
        return std::string(D::name);
    }
};

} // namespace redislock::test

namespace redislock {

inline std::ostream& operator<<(std::ostream& out, Unlocked how)
{
    static constexpr std::array names{"released", "stillHeld", "alreadyLost", "unconfirmed"};
    return out << names.at(static_cast<std::size_t>(how));
}

inline std::ostream& operator<<(std::ostream& out, Errc error)
{
    return out << make_error_code(error).message();
}

} // namespace redislock
