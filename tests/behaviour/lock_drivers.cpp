#include "behaviour/lock_drivers.hpp"

#include "behaviour/asynchronous_driver.hpp"
#include "behaviour/blocking_drivers.hpp"
#include "redislock/read_write_lock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace redislock::test {
namespace {

template <LockDriver D>
class LockOf final : public DrivenLock {
public:
    explicit LockOf(typename D::Lock lock) : lock_(std::move(lock)) {}

    std::unique_ptr<const DrivenLock> copy() const override { return std::make_unique<LockOf>(*this); }
    Lock plain() const override
    {
        if constexpr (std::is_base_of_v<Lock, typename D::Lock>) {
            return lock_;
        } else {
            return lock_.lock();
        }
    }

    const std::string& name() const override { return lock_.name(); }
    bool isHeldByCurrentThread() const override { return lock_.isHeldByCurrentThread(); }
    std::uint32_t holdCount() const override { return lock_.holdCount(); }
    std::chrono::milliseconds validFor() const override { return lock_.validFor(); }
    std::stop_token stopToken() const override { return lock_.stopToken(); }

    Result<bool> lock() const override { return D::lock(lock_); }
    Result<bool> lock(Lease lease) const override { return D::lock(lock_, lease); }
    Result<bool> tryLock() const override { return D::tryLock(lock_); }
    Result<bool> tryLock(Wait wait) const override { return D::tryLock(lock_, wait); }
    Result<bool> tryLock(Wait wait, Lease lease) const override { return D::tryLock(lock_, wait, lease); }
    Result<Unlocked> unlock() const override { return D::unlock(lock_); }
    Result<bool> forceUnlock() const override { return D::forceUnlock(lock_); }
    Result<bool> isLocked() const override { return D::isLocked(lock_); }
    Result<std::optional<std::chrono::milliseconds>> remainingTimeToLive() const override
    {
        return D::remainingTimeToLive(lock_);
    }
    Result<LockGuard> guard() const override { return D::guard(lock_); }
    Result<LockGuard> guard(Lease lease) const override { return D::guard(lock_, lease); }
    Result<LockGuard> guard(Wait wait, Lease lease) const override { return D::guard(lock_, wait, lease); }

private:
    typename D::Lock lock_;
};

template <LockDriver D>
Result<std::optional<AnyLock>> makeAny(const Client& client, std::string lockName)
{
    auto made = D::make(client, std::move(lockName));
    if (made.error) {
        return {{}, made.error};
    }
    return {AnyLock(std::make_unique<LockOf<D>>(std::move(*made.value))), {}};
}

template <LockDriver D>
constexpr Driver driver{.name = D::name,
                        .supports = supports<D>,
                        .make = makeAny<D>,
                        .release = D::release,
                        .hasModes =
                            std::is_same_v<typename D::Lock, ReadLock> || std::is_same_v<typename D::Lock, WriteLock>,
                        .freed = std::is_same_v<typename D::Lock, WriteLock> ? "1" : "0"};

} // namespace

/// The forms of RedisLock, and the kinds that have scripts of their own. A new form or kind must be added here.
std::vector<Driver> allWith(std::initializer_list<Feature> needed)
{
    std::vector<Driver> drivers{driver<BlockingThrowing>,    driver<BlockingCodes>,        driver<Asynchronous>,
                                driver<Throwing<FairLocks>>, driver<Throwing<WriteLocks>>, driver<Throwing<ReadLocks>>};
    std::erase_if(drivers,
                  [&](const Driver& each) { return !std::all_of(needed.begin(), needed.end(), each.supports); });
    return drivers;
}

} // namespace redislock::test
