#include "redislock/redis_lock.hpp"

#include "redislock/detail/protocol/printable.hpp"
#include "redislock/lock_guard.hpp"
#include "runtime/engine.hpp"

namespace redislock {

namespace {

/// Runs the form that reports codes, and throws what it reports.
template <class Operation>
auto throwing(const std::string& name, const char* verb, Operation operation)
{
    std::error_code ec;
    auto result = operation(ec);
    if (ec) {
        throw LockError(ec, std::string(verb) + " \"" + detail::printable(name) + "\"");
    }
    return result;
}

bool acquire(detail::NamedLock& named, Wait wait, Lease lease, std::error_code& ec)
{
    detail::Acquired acquired;
    ec = named.engine->acquire(named, wait, lease, detail::EndedBy::thread, acquired);
    return acquired.hold != nullptr;
}

constexpr Wait oneAttempt{std::chrono::milliseconds::zero()};

} // namespace

void RedisLock::lock() const
{
    lock(keepRenewing);
}

void RedisLock::lock(std::error_code& ec) const
{
    lock(keepRenewing, ec);
}

void RedisLock::lock(Lease lease) const
{
    throwing(name(), "lock", [&](std::error_code& ec) { return acquire(*state_, waitForever, lease, ec); });
}

void RedisLock::lock(Lease lease, std::error_code& ec) const
{
    acquire(*state_, waitForever, lease, ec);
}

bool RedisLock::tryLock() const
{
    return tryLock(oneAttempt, keepRenewing);
}

bool RedisLock::tryLock(std::error_code& ec) const
{
    return tryLock(oneAttempt, keepRenewing, ec);
}

bool RedisLock::tryLock(Wait wait, Lease lease) const
{
    return throwing(name(), "tryLock", [&](std::error_code& ec) { return acquire(*state_, wait, lease, ec); });
}

bool RedisLock::tryLock(Wait wait, std::error_code& ec) const
{
    return tryLock(wait, keepRenewing, ec);
}

bool RedisLock::tryLock(Wait wait, Lease lease, std::error_code& ec) const
{
    return acquire(*state_, wait, lease, ec);
}

Unlocked RedisLock::unlock() const
{
    return throwing(name(), "unlock", [&](std::error_code& ec) { return unlock(ec); });
}

Unlocked RedisLock::unlock(std::error_code& ec) const
{
    return state_->engine->unlock(*state_, ec);
}

bool RedisLock::forceUnlock() const
{
    return throwing(name(), "forceUnlock", [&](std::error_code& ec) { return forceUnlock(ec); });
}

bool RedisLock::forceUnlock(std::error_code& ec) const
{
    return state_->engine->forceUnlock(*state_, ec);
}

bool RedisLock::isLocked() const
{
    return throwing(name(), "isLocked", [&](std::error_code& ec) { return isLocked(ec); });
}

bool RedisLock::isLocked(std::error_code& ec) const
{
    return remainingTimeToLive(ec).has_value();
}

std::optional<std::chrono::milliseconds> RedisLock::remainingTimeToLive() const
{
    return throwing(name(), "remainingTimeToLive", [&](std::error_code& ec) { return remainingTimeToLive(ec); });
}

std::optional<std::chrono::milliseconds> RedisLock::remainingTimeToLive(std::error_code& ec) const
{
    return state_->engine->timeToLive(*state_, ec);
}

bool RedisLock::isHeldByCurrentThread() const noexcept
{
    return holdCount() > 0;
}

std::uint32_t RedisLock::holdCount() const noexcept
{
    return state_->engine->holdCount(*state_);
}

std::chrono::milliseconds RedisLock::validFor() const noexcept
{
    return state_->engine->validFor(*state_);
}

std::stop_token RedisLock::stopToken(StopAt when) const noexcept
{
    return state_->engine->stopToken(*state_, when);
}

const std::string& RedisLock::name() const noexcept
{
    return state_->name;
}

void RedisLock::asyncAcquire(const State& state, Wait wait, Lease lease, detail::LockHandler handler)
{
    state->engine->asyncAcquire(state, wait, lease, std::move(handler));
}

void RedisLock::asyncForceUnlock(const State& state, detail::FlagHandler handler)
{
    state->engine->asyncForceUnlock(state, std::move(handler));
}

void RedisLock::asyncIsLocked(const State& state, detail::FlagHandler handler)
{
    state->engine->asyncIsLocked(state, std::move(handler));
}

void RedisLock::asyncTimeToLive(const State& state, detail::TimeHandler handler)
{
    state->engine->asyncTimeToLive(state, std::move(handler));
}

} // namespace redislock
