/// @file
/// RedisLock through the asynchronous functions.
#pragma once

#include "behaviour/lock_driver.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {

/// A lock whose guards a thread keeps, as a program keeps them in the scopes of its coroutines: questions to the
/// holding thread go to its last guard.
class AsynchronousLock {
public:
    AsynchronousLock(RedisLock lock, std::string client) : lock_(std::move(lock)), client_(std::move(client)) {}

    [[nodiscard]] const RedisLock& lock() const noexcept { return lock_; }
    [[nodiscard]] const std::string& name() const noexcept { return lock_.name(); }
    [[nodiscard]] bool isHeldByCurrentThread() const { return !guards().empty() && guards().back(); }
    [[nodiscard]] std::uint32_t holdCount() const { return isHeldByCurrentThread() ? 1 : 0; }
    [[nodiscard]] std::chrono::milliseconds validFor() const { return last().validFor(); }
    [[nodiscard]] std::stop_token stopToken() const { return last().stopToken(); }

    void keep(LockGuard held) const { guards().push_back(std::move(held)); }
    /// The last guard; an empty guard if there is none.
    [[nodiscard]] LockGuard take() const
    {
        if (guards().empty()) {
            return {};
        }
        auto held = std::move(guards().back());
        guards().pop_back();
        return held;
    }

private:
    using Guards = std::vector<LockGuard>;

    [[nodiscard]] Guards& guards() const
    {
        thread_local std::map<std::pair<std::string, std::string>, Guards> kept; // by client and name
        return kept[{client_, name()}];
    }
    [[nodiscard]] const LockGuard& last() const
    {
        static const LockGuard none;
        return guards().empty() ? none : guards().back();
    }

    RedisLock lock_;
    std::string client_;
};

/// RedisLock through the asynchronous functions, each run to its end. A second lock() by the same thread waits for the
/// first.
struct Asynchronous {
    static constexpr std::string_view name = "RedisLockAsynchronous";
    static constexpr std::array unsupported{Feature::reentrance, Feature::threadHolds, Feature::blocking,
                                            Feature::standardNames, Feature::executing};
    using Lock = AsynchronousLock;
    using Guard = LockGuard;

    static Result<std::optional<Lock>> make(const Client& client, std::string lockName)
    {
        try {
            return {Lock(client.getLock(std::move(lockName)), client.id()), {}};
        } catch (const LockError& e) {
            return {{}, e.code()};
        }
    }
    static Result<bool> lock(const Lock& lock) { return keep(lock, guard(lock)); }
    static Result<bool> lock(const Lock& lock, Lease lease) { return keep(lock, guard(lock, lease)); }
    static Result<bool> tryLock(const Lock& lock)
    {
        return keep(lock, run<Guard>([&](auto token) { lock.lock().asyncTryLock(std::move(token)); }));
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait)
    {
        return keep(lock, run<Guard>([&](auto token) { lock.lock().asyncTryLock(wait, std::move(token)); }));
    }
    static Result<bool> tryLock(const Lock& lock, Wait wait, Lease lease)
    {
        return keep(lock, guard(lock, wait, lease));
    }
    static Result<Unlocked> unlock(const Lock& lock)
    {
        auto held = lock.take();
        return release(held);
    }
    static Result<bool> forceUnlock(const Lock& lock)
    {
        return run<bool>([&](auto token) { lock.lock().asyncForceUnlock(std::move(token)); });
    }
    static Result<bool> isLocked(const Lock& lock)
    {
        return run<bool>([&](auto token) { lock.lock().asyncIsLocked(std::move(token)); });
    }
    static Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive(const Lock& lock)
    {
        return run<std::optional<std::chrono::milliseconds>>(
            [&](auto token) { lock.lock().asyncRemainingTimeToLive(std::move(token)); });
    }
    static Result<Guard> guard(const Lock& lock)
    {
        return run<Guard>([&](auto token) { lock.lock().asyncLock(std::move(token)); });
    }
    static Result<Guard> guard(const Lock& lock, Lease lease)
    {
        return run<Guard>([&](auto token) { lock.lock().asyncLock(lease, std::move(token)); });
    }
    static Result<Guard> guard(const Lock& lock, Wait wait, Lease lease)
    {
        return run<Guard>([&](auto token) { lock.lock().asyncTryLock(wait, lease, std::move(token)); });
    }
    static Result<Unlocked> release(Guard& guard)
    {
        return run<Unlocked>([&](auto token) { guard.asyncRelease(std::move(token)); });
    }

private:
    /// Starts an operation and waits for its handler; a dropped handler breaks its promise, which ends the test.
    template <class T, class Start>
    static Result<T> run(Start start)
    {
        std::promise<Result<T>> ended;
        auto result = ended.get_future();
        start([ended = std::move(ended)](boost::system::error_code ec, T value) mutable {
            ended.set_value({std::move(value), ec});
        });
        auto got = result.get();
        if (got.error) {
            EXPECT_TRUE(errcOf(got.error)) << got.error.message();
        }
        return got;
    }

    static Result<bool> keep(const Lock& lock, Result<Guard> got)
    {
        const bool granted = static_cast<bool>(got.value);
        if (granted) {
            lock.keep(std::move(got.value));
        }
        return {granted, got.error};
    }
};

} // namespace redislock::test
