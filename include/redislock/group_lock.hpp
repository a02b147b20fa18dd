/// @file
/// What MultiLock and RedLock have in common.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/handler.hpp"
#include "redislock/lock_calls.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/async_result.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// Several locks that are held as one: the base of MultiLock and RedLock, which define how many members are enough.
///
/// All members are tried at the same time. If too few are granted, all are released again, including grants that are
/// still under way. Then the group waits for the first member that another held, as any waiter for that lock does, and
/// tries the others once it has that one; if it does not get them, all are released, and the next wait begins after a
/// random pause of 1 to 16 ms. From the fifth round on, it waits for the others for up to 5 ms before it releases all
/// of them. Except for that time, a waiting caller holds nothing, so two callers that want the same locks in any order
/// both get them in the end. With a RetryPolicy, all members are tried at each of its attempts.
///
/// **Guarantees**, as far as the members do (see Lock):
///  - a held group has enough members held at the same time, for as long as validFor() says;
///  - at most one thread of one process believes that it holds all members of a MultiLock, or a majority of a RedLock;
///  - a call that does not acquire the group leaves no member held: each is released, even one whose answer is unknown;
///  - a release is sent to all members at the same time, and the failure of one does not stop the others.
///
/// **Does not guarantee** order among waiters, and offers no fencing token: the tokens of several servers have no
/// common order.
///
/// | this thread's hold | lock / tryLock         | unlock              | isHeldByCurrentThread | validFor | stopToken |
/// |--------------------|------------------------|---------------------|-----------------------|----------|-----------|
/// | none               | tries, becomes held    | throws `notHeld`    | false                 | 0        | stopped   |
/// | held               | throws `wouldDeadlock` | free                | true                  | > 0      | running   |
/// | lost               | a new hold, as `none`  | `alreadyLost`, once | false                 | 0        | stopped   |
///
/// It is not re-entrant: a thread that holds the group and locks it again gets `wouldDeadlock` at once. If the thread
/// holds a member by itself, that hold counts as another's: the group waits for it. There is no isLocked() and no
/// forceUnlock(): others see only the members, which have both.
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe. Copies are the same group; two groups that are made
/// from the same members are not, and exclude each other like two processes. Holds belong to the thread that took them.
///
/// **Blocking**: calls that ask Redis block their thread; the members' clients send the requests. None of these calls
/// may be made on the own thread of a member's client, except unlock(), which does not wait there.
///
/// **Lifetime**: cheap to copy; may outlive the Clients. When the last copy is destroyed, what threads still hold is
/// released.
///
/// **If the group is lost**: stopToken() is stopped, validFor() is 0, unlock() returns `alreadyLost`; the remaining
/// members are released at once.
///
/// **Cost**: one request to each member to acquire, all at the same time, and one to release; while it waits, the cost
/// of a waiter for one member (see Lock), and a request to each of the others once it has that one.
///
/// **Asynchronous** functions take any completion token of Asio and block no thread; their holds belong to guards.
///
/// **Errors** of lock(), tryLock() and their like: the errors with which too many members failed (see Lock);
/// `unreachable` when too few members answered within the longest `Config::unreachableAfter` of the members' clients,
/// for tryLock() at once; `wouldDeadlock` when this thread holds it already, or is the own thread of a member's client;
/// `badConfig` (`sameServer`) for a RedLock with two members on one server; `forked`. The pauses of a RetryPolicy are
/// cut to 1 s, and should be random: two callers that always try at the same moment can keep each other out for a long
/// time.
class REDISLOCK_EXPORT GroupLock : public LockCalls<GroupLock, GroupGuard> {
public:
    /// Moving copies: a moved-from group is still the same group.
    GroupLock(const GroupLock&) noexcept = default;
    GroupLock& operator=(const GroupLock&) noexcept = default; ///< as above
    /// Ends this thread's hold. Blocking and results as GroupGuard::release(). Losing the group, or servers, is not an
    /// exception: the standard's guards call this in destructors.
    /// @throws LockError `notHeld` when this thread does not hold the group: another thread does, a guard does, or it
    /// was unlocked before.
    Unlocked unlock() const;
    /// As unlock(), without exceptions.
    Unlocked unlock(std::error_code& ec) const;

    /// As Client::describe(), for a code that this group reported: with the words of the member that last met it.
    /// @param call what was attempted, `lock` for instance; the members' names follow.
    [[nodiscard]] std::string describe(const std::error_code& ec, const char* call = "lock") const;

    /// Whether this thread holds the group now, judged by this process' clock alone. Does not block, and sends nothing.
    [[nodiscard]] bool isHeldByCurrentThread() const noexcept;
    /// How long this thread's hold is certain to last without another renewal; 0 without a hold. Does not block.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// As GroupGuard::stopToken(), for this thread's hold; already stopped without one. Does not block.
    [[nodiscard]] std::stop_token stopToken(StopAt when = StopAt::lost) const noexcept;

protected:
    /// What copies share.
    using State = std::shared_ptr<detail::GroupState>;

    /// @param state of the members.
    explicit GroupLock(State state) noexcept : state_(std::move(state)) {}

private:
    friend class LockCalls<GroupLock, GroupGuard>;
    friend class GroupGuard;
    friend struct detail::LockAccess;

    /// @param thrown receives what a policy throws; null: that is dropped.
    bool acquire(Wait wait, Lease lease, const Retry& retry, const std::stop_token& stop, std::error_code& ec,
                 std::exception_ptr* thrown = nullptr) const;
    void asyncAcquire(Wait wait, Lease lease, const Retry& retry, detail::GroupHandler handler) const;
    [[noreturn]] void fail(const char* verb, Lease lease, const std::error_code& ec,
                           const std::exception_ptr& thrown) const;

    State state_;
};

} // namespace redislock
