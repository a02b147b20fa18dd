/// @file
/// The lock that is granted in the order of asking.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

namespace redislock {

/// A re-entrant lock that is granted in the order in which Redis first heard of the waiters, threads and processes
/// alike.
///
/// In Redis it is Redisson's `RFairLock`: the hash of a RedisLock, a list of the waiters, and a sorted set of the
/// moments until which each keeps its place. Processes with both libraries wait in one queue.
///
/// **Guarantees**, besides those of Lock: the order among waiters that go on asking; a waiter that gives up, or is
/// cancelled, leaves the queue by a request that is sent at once and not waited for. A waiter that died, or cannot
/// reach Redis, keeps its place for five times `Config::pollInterval`, at least half a second, after it last asked:
/// however many of them are ahead, together they cost no more than that. A waiter that loses its connection and
/// comes back in that time has its old place.
/// **Does not guarantee** the order when Redis loses acknowledged writes, nor towards other kinds of lock of that name,
/// which exclude it but do not stand in the queue; tryLock() without wait never stands in it either. Waiters of
/// Redisson that died keep their places for as long as that library gives them, by default five minutes.
///
/// Thread safety, blocking and the rest: see Lock; nested levels: see RedisLock.
///
/// A release grants the lock to the next waiter by itself, and notifies it; doc/safety.md says what that relies on.
/// Such a hold is valid for less than its lease at first (for two polls at least), and for all of it one round trip
/// later.
///
/// **Cost**: three more keys while somebody waits, and one subscription a client. A request when it joins (two for the
/// first of a client, which subscribes in between), one for its lease when it has the lock, and one each
/// `Config::pollInterval`. What a request costs Redis does not grow with the queue.
///
/// @code
/// redislock::FairLock lock = client.getFairLock("printer");
/// std::scoped_lock held(lock);
/// @endcode
class FairLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

} // namespace redislock
