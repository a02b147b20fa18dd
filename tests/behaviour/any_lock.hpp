/// @file
/// A lock of any driver: a test that uses it is compiled once for all drivers.
#pragma once

#include "behaviour/lock_driver.hpp"
#include "redislock/lock.hpp"
#include "redislock/lock_guard.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redislock::test {

/// A lock with the functions of its driver.
class DrivenLock {
public:
    virtual ~DrivenLock() = default;

    [[nodiscard]] virtual std::unique_ptr<const DrivenLock> copy() const = 0;
    [[nodiscard]] virtual Lock plain() const = 0;

    [[nodiscard]] virtual const std::string& name() const = 0;
    [[nodiscard]] virtual bool isHeldByCurrentThread() const = 0;
    [[nodiscard]] virtual std::uint32_t holdCount() const = 0;
    [[nodiscard]] virtual std::chrono::milliseconds validFor() const = 0;
    [[nodiscard]] virtual std::stop_token stopToken() const = 0;

    virtual Result<bool> lock() const = 0;
    virtual Result<bool> lock(Lease lease) const = 0;
    virtual Result<bool> tryLock() const = 0;
    virtual Result<bool> tryLock(Wait wait) const = 0;
    virtual Result<bool> tryLock(Wait wait, Lease lease) const = 0;
    virtual Result<Unlocked> unlock() const = 0;
    virtual Result<bool> forceUnlock() const = 0;
    virtual Result<bool> isLocked() const = 0;
    virtual Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive() const = 0;
    virtual Result<LockGuard> guard() const = 0;
    virtual Result<LockGuard> guard(Lease lease) const = 0;
    virtual Result<LockGuard> guard(Wait wait, Lease lease) const = 0;
};

/// A lock with the functions of its driver; a copy holds a copy of the lock.
class AnyLock {
public:
    explicit AnyLock(std::unique_ptr<const DrivenLock> lock) : lock_(std::move(lock)) {}
    AnyLock(const AnyLock& other) : lock_(other.lock_->copy()) {}
    AnyLock(AnyLock&&) = default;
    ~AnyLock() = default;

    [[nodiscard]] const std::string& name() const { return lock_->name(); }
    [[nodiscard]] bool isHeldByCurrentThread() const { return lock_->isHeldByCurrentThread(); }
    [[nodiscard]] std::uint32_t holdCount() const { return lock_->holdCount(); }
    [[nodiscard]] std::chrono::milliseconds validFor() const { return lock_->validFor(); }
    [[nodiscard]] std::stop_token stopToken() const { return lock_->stopToken(); }

    Result<bool> lock() const { return lock_->lock(); }
    Result<bool> lock(Lease lease) const { return lock_->lock(lease); }
    Result<bool> tryLock() const { return lock_->tryLock(); }
    Result<bool> tryLock(Wait wait) const { return lock_->tryLock(wait); }
    Result<bool> tryLock(Wait wait, Lease lease) const { return lock_->tryLock(wait, lease); }
    Result<Unlocked> unlock() const { return lock_->unlock(); }
    Result<bool> forceUnlock() const { return lock_->forceUnlock(); }
    Result<bool> isLocked() const { return lock_->isLocked(); }
    Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive() const
    {
        return lock_->remainingTimeToLive();
    }
    Result<LockGuard> guard() const { return lock_->guard(); }
    Result<LockGuard> guard(Lease lease) const { return lock_->guard(lease); }
    Result<LockGuard> guard(Wait wait, Lease lease) const { return lock_->guard(wait, lease); }

    /// The lock itself, for calls that have only one form.
    [[nodiscard]] Lock plain() const { return lock_->plain(); }

private:
    std::unique_ptr<const DrivenLock> lock_;
};

} // namespace redislock::test
