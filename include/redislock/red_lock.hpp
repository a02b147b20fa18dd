/// @file
/// One lock on several independent servers.
#pragma once

#include "redislock/export.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/lock.hpp"

#include <concepts>
#include <vector>

namespace redislock {

/// One lock that is held on a majority of independent servers (n/2 + 1 of n), so that it survives the loss of the
/// others: the Redlock algorithm, modelled on Redisson's `RedissonRedLock`.
///
/// Each member is a lock on one server; all of them usually have the same name. Servers that are down, slow or cut off
/// do no harm as long as they are a minority: all are asked at the same time, each has `max(lease / 20, 50 ms)` (at
/// most `Config::commandTimeout`) to answer, and the call ends with the answer that completes the majority. Grants that
/// come later join the hold. The hold is valid as long as a majority of its members is: each of them from before its
/// own request was sent, for its lease minus clock drift.
///
/// Guarantees, states, thread safety, blocking and the rest: see GroupLock; here n/2 + 1 of n members are needed.
///
/// **Does not guarantee** exclusion when servers lose data: a server that restarts empty, or fails over to a replica
/// that did not have the lock, may allow a second majority. Keep servers that lost their data down for the longest
/// lease; use an odd number of masters without fail-over (four servers survive no more losses than three). Nor does it
/// protect against a holder that was paused: there is no fencing token. doc/safety.md says more.
///
/// The servers must be different. The constructor refuses the same address twice; the first acquire refuses one server
/// under several addresses (by the `run_id` of `INFO server`; not noticed if the user has no right to ask for that).
///
/// **If a minority of members is lost**, nothing happens; these members are not taken again until the next acquire.
///
/// @code
/// redislock::RedLock lock({a.getLock("stock:42"), b.getLock("stock:42"), c.getLock("stock:42")});
/// if (redislock::GroupGuard held(lock, 1s, 10s); held) { sell(held.stopToken()); }
/// @endcode
class REDISLOCK_EXPORT RedLock : public GroupLock {
public:
    /// Does no I/O. @param members at least one, on different servers.
    /// @throws LockError `invalidArgument` for none, or for two members on one address.
    explicit RedLock(std::vector<Lock> members);
    /// The same, for members of one kind.
    template <std::derived_from<Lock> Kind>
    explicit RedLock(const std::vector<Kind>& members) : RedLock(std::vector<Lock>(members.begin(), members.end()))
    {
    }
};

} // namespace redislock
