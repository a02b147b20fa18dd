/// @file
/// All of several locks, or none.
#pragma once

#include "redislock/export.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/lock.hpp"

#include <concepts>
#include <vector>

namespace redislock {

/// Several locks that are held together or not at all: the `std::scoped_lock(a, b, c)` of a fleet. Redisson's
/// `RMultiLock`.
///
/// The members may be of any kind and belong to different Clients and servers. In Redis there are only the members: a
/// process that takes one of them alone and a group exclude each other.
///
/// Guarantees, states, thread safety, blocking and the rest: see GroupLock; here all members are needed.
///
/// **Does not guarantee** more than the weakest member does: while a server is down the group cannot be taken, and if a
/// server loses what it acknowledged the group is lost. Members on several servers protect several resources; for one
/// lock that survives the loss of a server, see RedLock.
///
/// **If a member is lost**, the group is lost: the others are released at once.
///
/// @code
/// redislock::MultiLock both({client.getLock("account:1"), client.getLock("account:2")});
/// std::scoped_lock held(both);
/// transfer();
/// @endcode
class REDISLOCK_EXPORT MultiLock : public GroupLock {
public:
    /// Does no I/O. @param members at least one, with different names; of any kinds.
    /// @throws LockError `invalidArgument` for none, or for the same name of the same server and database twice: the
    /// group would wait for itself.
    explicit MultiLock(std::vector<Lock> members);
    /// The same, for members of one kind.
    template <std::derived_from<Lock> Kind>
    explicit MultiLock(const std::vector<Kind>& members) : MultiLock(std::vector<Lock>(members.begin(), members.end()))
    {
    }
};

} // namespace redislock
