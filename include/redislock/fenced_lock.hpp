/// @file
/// The lock whose holds have ever greater numbers.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/identity.hpp"
#include "redislock/lock.hpp"

#include <optional>
#include <stop_token>
#include <system_error>

namespace redislock {

/// A re-entrant lock that gives each hold a FencingToken, greater than those of all holds before it.
///
/// Hand the token to the resource with each change; a resource that refuses tokens smaller than the greatest it has
/// seen is safe even from a holder that does not know yet that it lost the lock (Kleppmann 2016; Gray and Cheriton
/// 1989).
///
/// In Redis it is Redisson's `RFencedLock`: the hash of a RedisLock, and a counter beside it. Nested levels have the
/// token of the outermost: the holder's own token stays valid. Guards have it as LockGuard::token().
///
/// **Guarantees**, besides those of Lock: tokens of one name grow, also after Redis lost acknowledged writes, as long
/// as its clock is then not behind the last token: they are the microseconds since 1970, or one more than the last.
/// **Does not guarantee** that a resource is safe if it ignores the tokens.
///
/// Thread safety, blocking and the rest: see Lock; nested levels: see RedisLock. A RedisLock of the same name excludes
/// it, but its holders have no tokens.
///
/// **Cost**: as a RedisLock, and one key for each name without a time to live: it must outlast every holder.
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

    /// As tryLock(): nothing when others hold the lock. @throws LockError as tryLock().
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken() const;
    /// As tryLock(ec).
    [[nodiscard]] std::optional<FencingToken> tryLockAndGetToken(std::error_code& ec) const;
    /// As tryLock(Wait, Lease, stop): nothing when the wait is over, or called off. @throws LockError as
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
