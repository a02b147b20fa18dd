/// @file
/// The lock whose holds have growing numbers.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/identity.hpp"
#include "redislock/lock.hpp"

#include <optional>
#include <stop_token>
#include <system_error>

namespace redislock {

/// A re-entrant lock that gives each hold a FencingToken greater than the tokens of all earlier holds.
///
/// Send the token to the resource with each change; a resource that refuses any token smaller than the greatest it has
/// seen is safe even from a holder that does not yet know that it lost the lock (Kleppmann 2016; Gray and Cheriton
/// 1989).
///
/// In Redis it is Redisson's `RFencedLock`: the hash of a RedisLock, and a counter beside it. Nested levels share the
/// token of the outermost level, which stays valid. Guards provide it as LockGuard::token().
///
/// **Guarantees**, besides those of Lock: the tokens of one name grow, even after Redis lost acknowledged writes,
/// unless its clock is then behind the last token: a token is the number of microseconds since 1970, or one more than
/// the last token.
/// **Does not guarantee** that a resource is safe if it ignores the tokens.
///
/// Thread safety, blocking and the rest: see Lock; nested levels: see RedisLock. A RedisLock of the same name excludes
/// it, but gives its holders no tokens.
///
/// **Cost**: as a RedisLock, and for each name one more key without a time to live, because it must outlast every
/// holder.
///
/// @code
/// redislock::FencedLock lock = client.getFencedLock("ledger");
/// redislock::LockGuard held(lock);
/// write(entry, *held.token());
/// @endcode
class REDISLOCK_EXPORT FencedLock : public Lock {
public:
    /// As lock(), and returns the token of this thread's hold. @throws LockError as lock().
    FencingToken lockAndGetToken() const;
    /// As lock(ec): zero with a code on errors.
    FencingToken lockAndGetToken(std::error_code& ec) const;
    /// As lock(Lease). @throws LockError as lock(Lease).
    FencingToken lockAndGetToken(Lease lease) const;
    /// As lock(Lease, ec): zero with a code on errors.
    FencingToken lockAndGetToken(Lease lease, std::error_code& ec) const;

    /// As tryLock(): empty when others hold the lock. @throws LockError as tryLock().
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken() const;
    /// As tryLock(ec).
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken(std::error_code& ec) const;
    /// As tryLock(Wait, Lease, stop): empty when the wait is over, or was called off. @throws LockError as
    /// tryLock(Wait, Lease).
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken(Wait wait, Lease lease = keepRenewing,
                                                                 std::stop_token stop = {}) const;
    /// As tryLock(Wait, Lease, ec).
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken(Wait wait, Lease lease, std::error_code& ec) const;
    /// As tryLock(Wait, Lease, stop, ec).
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken(Wait wait, Lease lease, std::stop_token stop,
                                                                 std::error_code& ec) const;

private:
    friend class Client;
    using Lock::Lock;
};

} // namespace redislock
