/// @file
/// What MultiLock and RedLock have in common.
#pragma once

#include "redislock/error.hpp"
#include "redislock/fwd.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/handler.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/retry_policy.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/async_result.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redislock {

/// Several locks that are held as one: the base of MultiLock and RedLock, which say how many members are enough. Not made by
/// itself.
///
/// All members are tried at the same time and none is waited for. When too few were granted, everything is given back (what was
/// granted as well as what may be granted in a moment), and after a random pause all are tried again, until the wait is over:
/// who waits holds nothing, so two that want the same locks in any order both get them in the end. Waiters are not told, they
/// ask.
///
/// **Guarantees**, as far as the members do (see Lock):
///  - held means that enough members are held at the same time, as long as validFor() says;
///  - one thread of one process at most believes to hold all of a MultiLock's, or a majority of a RedLock's members;
///  - a call that does not end with the group held leaves no member held: each is released, also one whose answer is unknown;
///  - a release goes to all members at the same time, and a failure of one stops none of the others.
///
/// **Does not guarantee** order among waiters, and offers no fencing token: the tokens of several servers have no common order.
///
/// | state of this thread's hold | lock / tryLock        | unlock         | isHeldByCurrentThread | validFor | stopToken |
/// |-----------------------------|-----------------------|----------------|-----------------------|----------|-----------|
/// | none                        | tries, becomes held   | throws `notHeld` | false               | 0        | stopped   |
/// | held                        | throws `wouldDeadlock` | free          | true                  | > 0      | running   |
/// | lost                        | a new hold, as `none` | `alreadyLost`, once | false            | 0        | stopped   |
///
/// It is not re-entrant: a thread that holds the group and locks it again is told so at once. Levels that a thread has of a
/// member itself are somebody else's: the group waits for them. There is no isLocked() and no forceUnlock(): what others see of
/// a group are its members, which have both.
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe. Copies are the same group; two that are made of the same
/// members are not, and exclude each other like two processes. Holds belong to the thread that took them.
///
/// **Blocking**: calls that ask Redis block their thread; the asking itself is done by the members' clients. None may be made on
/// the own thread of a member's client, except unlock(), which does not wait there.
///
/// **Lifetime**: cheap to copy; may outlive the Clients. The end of the last copy releases what threads still hold.
///
/// **If the group is lost**: stopToken() is stopped, validFor() is 0, unlock() returns `alreadyLost`; the members that are left
/// are released at once.
///
/// **Cost**: one request to each member to acquire, all at the same time, and one to release; while it waits, as many for each
/// pause of the RetryPolicy.
///
/// **Asynchronous** functions take any completion token of Asio and block no thread; their holds belong to guards.
class GroupLock {
public:
    /// Acquires the group, waiting as long as it takes; the members' watchdogs renew it until it is ended. Blocks.
    /// @throws LockError what too many members failed with (see Lock::lock()); `unreachable` when too few members answered for
    ///   the longest `Config::unreachableAfter` of the members' clients; `wouldDeadlock` when this thread holds it already, or
    ///   is the own thread of a member's client; `forked`. After an exception nothing is held by this call.
    void lock() const;
    /// As lock(), without exceptions: @p ec is cleared on success.
    void lock(std::error_code& ec) const;

    /// Acquires the group with a fixed lease for each member: it is not renewed and is lost when @p lease is over. Blocks.
    /// @param lease 10 ms … 30 days, or `keepRenewing`. @throws LockError `invalidArgument` for any other lease, before any
    ///   I/O; otherwise as lock().
    void lock(Lease lease) const;
    /// As lock(Lease), without exceptions.
    void lock(Lease lease, std::error_code& ec) const;

    /// One attempt at each member. Blocks until enough answers are there, at most for the time-out of a member.
    /// @return whether the group is now held. @throws LockError as lock(); `unreachable` at once when too few members can be
    ///   reached.
    [[nodiscard]] bool tryLock() const;
    /// As tryLock(), without exceptions; false with a code on errors.
    [[nodiscard]] bool tryLock(std::error_code& ec) const;

    /// Tries until @p wait is over. Blocks for at most @p wait; the first attempt is given the time-out of a member.
    /// @param wait zero or negative: as tryLock(); `waitForever`: as lock(lease).
    /// @param lease 10 ms … 30 days, or `keepRenewing`. Counted from the attempt that won, not from the start of the wait.
    /// @return whether the group is now held. @throws LockError as lock(Lease).
    [[nodiscard]] bool tryLock(Wait wait, Lease lease = keepRenewing) const;
    /// As tryLock(Wait, Lease), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, std::error_code& ec) const;
    /// As tryLock(Wait, Lease), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, std::error_code& ec) const;

    /// Tries until @p wait is over, with pauses of the caller's choice between the attempts. Otherwise as tryLock(Wait, Lease).
    /// @param retry the pauses, each at most 1 s; when it gives up, the group counts as not to be had. They should be random:
    ///   two that always try at the same moment can keep each other out for long.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, RetryPolicy retry) const;
    /// As tryLock(Wait, Lease, RetryPolicy), without exceptions.
    [[nodiscard]] bool tryLock(Wait wait, Lease lease, RetryPolicy retry, std::error_code& ec) const;

    /// tryLock() under the name that the standard looks for (*Lockable*).
    [[nodiscard]] bool try_lock() const { return tryLock(); }
    /// tryLock(wait) under the standard's name (*TimedLockable*).
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) const
    {
        return tryLock(Wait(wait));
    }
    /// tryLock() until a moment of any clock; a moment in the past means one attempt (*TimedLockable*).
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) const
    {
        const auto now = std::chrono::time_point<Clock, Duration>::clock::now();
        return tryLock(until <= now ? oneAttempt : Wait(until - now));
    }

    /// Ends this thread's hold. Blocking and results as GroupGuard::release(). Losing the group, or servers, is not an
    /// exception: the standard's guards call this in destructors.
    /// @throws LockError `notHeld` when this thread has no hold to end: a stranger, a second unlock(), a guard's hold.
    Unlocked unlock() const;
    /// As unlock(), without exceptions.
    Unlocked unlock(std::error_code& ec) const;

    /// Whether this thread holds the group now, judged by this process' clock alone. Does not block, asks nobody.
    [[nodiscard]] bool isHeldByCurrentThread() const noexcept;
    /// How long this thread's hold is certain to last without another renewal; 0 without a hold. Does not block.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// As GroupGuard::stopToken(), for this thread's hold; already stopped without one. Does not block.
    [[nodiscard]] std::stop_token stopToken(StopAt when = StopAt::lost) const noexcept;

    /// Acquires the group without blocking a thread; the members' watchdogs renew it until the guard ends it.
    /// @param token any completion token for `void(boost::system::error_code, GroupGuard)`. The handler is called once, on its
    ///   associated executor; without one on the own thread of a member's client, where it must not block.
    /// Errors as lock(), as codes. **Cancellation** (terminal, partial and total): ends the call with
    /// `boost::asio::error::operation_aborted` and nothing held.
    template <class Token>
    auto asyncLock(Token&& token) const
    {
        return asyncTryLock(waitForever, keepRenewing, std::forward<Token>(token));
    }
    /// asyncLock() with a fixed lease; as lock(Lease).
    template <class Token>
    auto asyncLock(Lease lease, Token&& token) const
    {
        return asyncTryLock(waitForever, lease, std::forward<Token>(token));
    }
    /// One attempt, as tryLock(): an empty guard when others hold too many members. Otherwise as asyncLock().
    template <class Token>
    auto asyncTryLock(Token&& token) const
    {
        return asyncTryLock(oneAttempt, keepRenewing, std::forward<Token>(token));
    }
    /// Tries until @p wait is over, as tryLock(Wait): an empty guard then. Otherwise as asyncLock().
    template <class Token>
    auto asyncTryLock(Wait wait, Token&& token) const
    {
        return asyncTryLock(wait, keepRenewing, std::forward<Token>(token));
    }
    /// As tryLock(Wait, Lease): an empty guard when the wait is over. Otherwise as asyncLock().
    template <class Token>
    auto asyncTryLock(Wait wait, Lease lease, Token&& token) const
    {
        return asyncTryLock(wait, lease, defaultRetry(), std::forward<Token>(token));
    }
    /// As tryLock(Wait, Lease, RetryPolicy). Otherwise as asyncLock().
    template <class Token>
    auto asyncTryLock(Wait wait, Lease lease, RetryPolicy retry, Token&& token) const
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code, GroupGuard)>(
            [state = state_](auto handler, Wait w, Lease l, RetryPolicy r) {
                asyncAcquire(state, w, l, std::move(r), detail::GroupHandler(std::move(handler)));
            },
            token, wait, lease, std::move(retry));
    }

protected:
    using State = std::shared_ptr<detail::GroupState>;

    explicit GroupLock(State state) noexcept : state_(std::move(state)) {}

private:
    friend class GroupGuard;

    static RetryPolicy defaultRetry();
    bool acquire(Wait wait, Lease lease, RetryPolicy retry, std::error_code& ec) const;
    static void asyncAcquire(const State& state, Wait wait, Lease lease, RetryPolicy retry,
                             detail::GroupHandler handler);

    State state_;
};

} // namespace redislock
