/// @file
/// The kinds of lock through the calls that block.
#pragma once

#include "behaviour/lock_driver.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redislock::test {

// --- The kinds
// ---------------------------------------------------------------------------------------------------------

struct RedisLocks {
    static constexpr std::string_view name = "RedisLockThrowing";
    static constexpr std::array<Feature, 0> unsupported{};
    static RedisLock make(const Client& client, std::string lockName) { return client.getLock(std::move(lockName)); }
};

struct FairLocks {
    static constexpr std::string_view name = "FairLock";
    static constexpr std::array unsupported{
        Feature::executing,   // a FairLock has no form of its own
        Feature::oneChannel}; // a release wakes the first waiter, on that waiter's own channel
    static FairLock make(const Client& client, std::string lockName) { return client.getFairLock(std::move(lockName)); }
};

struct WriteLocks {
    static constexpr std::string_view name = "WriteLock";
    static constexpr std::array unsupported{Feature::executing};
    static WriteLock make(const Client& client, std::string lockName)
    {
        return client.getReadWriteLock(std::move(lockName)).writeLock();
    }
};

struct ReadLocks {
    static constexpr std::string_view name = "ReadLock";
    static constexpr std::array unsupported{Feature::executing, Feature::exclusion};
    static ReadLock make(const Client& client, std::string lockName)
    {
        return client.getReadWriteLock(std::move(lockName)).readLock();
    }
};

// --- The forms
// ---------------------------------------------------------------------------------------------------------

/// A kind of lock through the calls that throw.
template <class Kind>
struct Throwing {
    static constexpr std::string_view name = Kind::name;
    static constexpr auto unsupported = Kind::unsupported;
    using Lock = decltype(Kind::make(std::declval<const Client&>(), std::string()));
    using Guard = LockGuard;

    static Result<std::optional<Lock>> make(const Client& client, std::string lockName)
    {
        return run([&] { return std::optional(Kind::make(client, std::move(lockName))); });
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
            EXPECT_TRUE(errcOf(e.code())) << e.what();
            EXPECT_NE(std::string_view(e.what()), "");
            return {{}, e.code()};
        }
    }
};

using BlockingThrowing = Throwing<RedisLocks>;

/// RedisLock through the calls that report a `std::error_code`.
struct BlockingCodes {
    static constexpr std::string_view name = "RedisLockCodes";
    static constexpr std::array unsupported{Feature::standardNames, Feature::executing}; // these functions only throw
    using Lock = RedisLock;
    using Guard = LockGuard;

    static Result<std::optional<Lock>> make(const Client& client, std::string lockName)
    {
        return BlockingThrowing::make(client, std::move(lockName)); // getLock() has only one form
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
    /// The code begins as a foreign error: a call that succeeds must clear it.
    template <class Function>
    static auto run(Function function) -> Result<decltype(function(std::declval<std::error_code&>()))>
    {
        std::error_code ec = std::make_error_code(std::errc::io_error);
        auto value = function(ec);
        if (ec) {
            EXPECT_TRUE(errcOf(ec)) << ec.message();
        }
        return {std::move(value), ec};
    }
};

} // namespace redislock::test
