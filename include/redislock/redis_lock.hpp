/// @file
/// The re-entrant lock.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

namespace redislock {

/// A re-entrant lock in Redis, shared by all processes that use its name: the `std::recursive_timed_mutex` of a fleet.
///
/// In Redis it is Redisson's `RLock`: a hash at the name with one field `<client>:<holder>` whose value is the hold
/// count, a time to live on the hash, and a message on `redisson_lock__channel:{<name>}` when it becomes free.
///
/// Guarantees, thread safety, blocking and the rest: see Lock. In addition:
///
/// | state of this thread's hold | lock / tryLock                                                            |
/// |-----------------------------|---------------------------------------------------------------------------|
/// | held                        | count + 1 at once, for one round trip; each `lock()` needs one `unlock()` |
/// | held, but gone in Redis     | throws `lost`: a nested level never acquires the lock again                   |
///
/// A level taken by a LockGuard belongs to that guard: unlock() does not end it.
///
/// **Cost**: a waiting process has one subscription for each name, and sends one request each time the lock becomes
/// free, however many of its threads wait.
///
/// @code
/// redislock::RedisLock lock = client.getLock("stock:42");
/// std::scoped_lock held(lock);
/// sell();
/// @endcode
class RedisLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

} // namespace redislock
