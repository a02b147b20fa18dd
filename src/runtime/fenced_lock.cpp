#include "redislock/fenced_lock.hpp"

#include "redislock/detail/protocol/printable.hpp"
#include "redislock/error.hpp"
#include "runtime/engine.hpp"

#include <string>

namespace redislock {

namespace {

void throwOn(const std::error_code& ec, const char* verb, const std::string& name)
{
    if (ec) {
        throw LockError(ec, std::string(verb) + " \"" + detail::printable(name) + "\"");
    }
}

} // namespace

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
    std::error_code ec;
    const auto token = lockAndGetToken(lease, ec);
    throwOn(ec, "lockAndGetToken", name());
    return token;
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

std::optional<FencingToken> FencedLock::tryLockAndGetToken(Wait wait, Lease lease) const
{
    std::error_code ec;
    const auto token = tryLockAndGetToken(wait, lease, ec);
    throwOn(ec, "tryLockAndGetToken", name());
    return token;
}

std::optional<FencingToken> FencedLock::tryLockAndGetToken(Wait wait, Lease lease, std::error_code& ec) const
{
    const auto token = acquireByThread(wait, lease, ec);
    return token ? std::optional(FencingToken{*token}) : std::nullopt;
}

} // namespace redislock
