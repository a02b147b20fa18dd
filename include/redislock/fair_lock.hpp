/// @file
/// The lock that is granted in the order of asking.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

namespace redislock {

/// A re-entrant lock that is granted in the order in which the waiters first asked Redis, whatever thread or process
/// they belong to.
///
/// In Redis it is Redisson's `RFairLock`: the hash of a RedisLock, a list of the waiters, and a sorted set of the times
/// until which each keeps its place. Clients of both libraries wait in one queue.
///
/// **Guarantees**, besides those of Lock: the order among waiters that keep asking; a waiter that gives up, or is
/// cancelled, leaves the queue with a request that is sent at once, without waiting for the answer. A waiter that died,
/// or cannot reach Redis, keeps its place for five times `Config::pollInterval`, at least half a second, after it last
/// asked; several of them ahead of a waiter delay it no longer than one. A waiter that loses its connection and returns
/// within that time keeps its place.
/// **Does not guarantee** the order when Redis loses acknowledged writes, nor the order among other kinds of lock of
/// that name, which exclude it but do not join the queue; tryLock() without a wait never joins it either. Waiters of
/// Redisson that died keep their places for as long as that library allows, by default five minutes.
///
/// Thread safety, blocking and the rest: see Lock; nested levels: see RedisLock.
///
/// A release grants the lock to the next waiter directly, and notifies it; doc/safety.md says what that relies on. Such
/// a hold is valid for less than its lease at first (for at least two polls), and for its whole lease one round trip
/// later.
///
/// **Cost**: three more keys while anyone waits, and one subscription for each client. A waiter sends one request to
/// join (the first one of a client sends two, and subscribes in between), one for its lease when it has the lock, and
/// one every `Config::pollInterval`. The cost of a request in Redis does not grow with the queue.
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
