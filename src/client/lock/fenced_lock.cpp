#include "redislock/fenced_lock.hpp"

#include "client/lock/lock_access.hpp"
#include "client/lock/throwing.hpp"

namespace redislock {

FencingToken FencedLock::lockAndGetToken() const
{
    return lockAndGetToken(keepRenewing);
}

FencingToken FencedLock::lockAndGetToken(std::error_code& ec) const
{
    return lockAndGetToken(keepRenewing, ec);
}

FencingToken FencedLock::lockAndGetToken(Lease lease) const
{
    return detail::throwing(detail::LockAccess::named(*this), "lockAndGetToken", lease,
                            [&](std::error_code& ec) { return lockAndGetToken(lease, ec); });
}

FencingToken FencedLock::lockAndGetToken(Lease lease, std::error_code& ec) const
{
    return tryLockAndGetToken(waitForever, lease, ec).value_or(FencingToken{});
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken() const
{
    return tryLockAndGetToken(oneAttempt);
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken(std::error_code& ec) const
{
    return tryLockAndGetToken(oneAttempt, keepRenewing, ec);
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken(Wait wait, Lease lease, std::stop_token stop) const
{
    return detail::throwing(detail::LockAccess::named(*this), "tryLockAndGetToken", lease,
                            [&](std::error_code& ec) { return tryLockAndGetToken(wait, lease, stop, ec); });
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken(Wait wait, Lease lease, std::error_code& ec) const
{
    return tryLockAndGetToken(wait, lease, {}, ec);
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken(Wait wait, Lease lease, std::stop_token stop,
                                                           std::error_code& ec) const
{
    const auto token = acquireByThread(wait, lease, nullptr, stop, ec);
    return token ? std::optional(FencingToken{*token}) : std::nullopt;
}

} // namespace redislock
