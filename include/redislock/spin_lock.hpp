/// @file
/// The lock whose waiters poll instead of being notified.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

namespace redislock {

/// A re-entrant lock whose waiters poll instead of being notified, and whose release notifies nobody: for names that
/// are held so briefly that messages would cost more than the lock.
///
/// In Redis it is Redisson's `RSpinLock`: the hash of a RedisLock, without the message. A RedisLock and a SpinLock of
/// one name exclude each other, but a waiter for the RedisLock is not notified when a SpinLock frees it, and polls
/// (`Config::pollInterval`).
///
/// Guarantees, thread safety, blocking and the rest: see Lock; nested levels: see RedisLock.
///
/// Among the waiters of one client only the first asks; after a release by the same client, the next one asks without a
/// pause.
///
/// **Cost**: no subscription. While it waits, a client sends a request for each pause of its RetryPolicy: with the
/// default, about eight per second for each name.
///
/// @code
/// redislock::SpinLock lock = client.getSpinLock("counter:7");
/// std::scoped_lock held(lock);
/// @endcode
class SpinLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

} // namespace redislock
