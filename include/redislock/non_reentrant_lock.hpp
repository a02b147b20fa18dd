/// @file
/// The lock that its holder cannot take twice.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

namespace redislock {

/// A lock that its holder cannot take twice: the `std::timed_mutex` of a fleet, for code that even one thread must not
/// enter twice.
///
/// In Redis it is a RedisLock, and Redisson's non-re-entrant `RLock`: both exclude and wake each other.
///
/// Guarantees, thread safety, blocking and the rest: see Lock. In addition:
///
/// | state of this thread's hold | lock / tryLock                                         |
/// |-----------------------------|--------------------------------------------------------|
/// | held                        | `wouldDeadlock` at once, in every form; nothing is sent |
///
/// A call that is called off before it begins still returns false.
///
/// **Does not guarantee** that an asynchronous operation notices that its own program holds the lock: a guard belongs
/// to no thread, so the operation waits.
///
/// @code
/// redislock::NonReentrantLock lock = client.getNonReentrantLock("report:daily");
/// std::scoped_lock held(lock);
/// @endcode
class NonReentrantLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

} // namespace redislock
