/// @file
/// One lock on several independent servers.
#pragma once

#include "redislock/export.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/lock.hpp"

#include <concepts>
#include <vector>

namespace redislock {

/// One lock that is held on a majority of independent servers (n/2 + 1 of n), so that it outlives the loss of the
/// others: the Redlock algorithm, with Redisson's `RedissonRedLock` as its model.
///
/// Each member is a lock of one server; all of them usually have the same name. Servers that are down, slow or cut off
/// change nothing as long as they are a minority: all are asked at the same time, each has `max(lease / 20, 50 ms)` (at
/// most `Config::commandTimeout`) to answer, and the call ends with the answer that makes the majority. Grants that
/// come later join the hold. It is valid as long as a majority is: each member from before its own request was sent,
/// for its lease less drift.
///
/// Guarantees, states, thread safety, blocking and the rest: see GroupLock; here n/2 + 1 of n members are needed.
///
/// **Does not guarantee** exclusion when servers forget: one that restarts empty, or fails over to a replica that had
/// not got the lock, may make a second majority. Have servers that lost their data stay down for the longest lease; use
/// masters without fail-over, of an odd number (four servers survive no more losses than three). Nor does it help
/// against a holder that is paused, and there is no fencing token. doc/safety.md says more.
///
/// The servers must be different ones: the same address twice is refused when it is made, one server under several
/// addresses at the first acquire (by the `run_id` of `INFO server`; where the user may not ask for that it is not
/// noticed).
///
/// **If a minority of members is lost**, nothing happens; they are not taken again until the next acquire.
///
/// @code
/// redislock::RedLock lock({a.getLock("stock:42"), b.getLock("stock:42"), c.getLock("stock:42")});
/// if (redislock::GroupGuard held(lock, 1s, 10s); held) { sell(held.stopToken()); }
/// @endcode
class REDISLOCK_EXPORT RedLock : public GroupLock {
public:
    /// Does no I/O. @param members at least one, each of another server.
    /// @throws LockError `invalidArgument` for none, or for two members on one address.
    explicit RedLock(std::vector<Lock> members);
    /// The same, for members of one kind.
    template <std::derived_from<Lock> Kind>
    explicit RedLock(const std::vector<Kind>& members) : RedLock(std::vector<Lock>(members.begin(), members.end()))
    {
    }
};

} // namespace redislock
