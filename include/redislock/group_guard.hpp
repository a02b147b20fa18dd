/// @file
/// A scope that holds several locks as one.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redislock {

/// Holds a MultiLock or a RedLock for the length of a scope and knows whether it still does.
///
/// **Guarantees**: releases every member that it holds, once, whatever happened to the others; its destructor neither
/// waits nor throws: the hold counts as ended at once, and the releases are sent without waiting for the answers, and
/// repeated in the background. A member whose grant is still under way is released as soon as the grant arrives.
/// **Does not guarantee** that the locks are free for others the moment the destructor returns: use release() to wait
/// for that.
///
/// | state              | operator bool | release()       | destructor             |
/// |--------------------|---------------|-----------------|------------------------|
/// | empty, or released | false         | `notHeld`       | nothing                |
/// | held               | true          | ends it, waits  | ends it, does not wait |
/// | lost               | false         | `alreadyLost`   | nothing                |
///
/// Held means: enough members (MultiLock: all; RedLock: a majority) are held and valid now.
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe. A guard may be moved to another thread, and
/// released there. **Lifetime**: may outlive the lock objects and the Clients.
/// **If the group is lost** (too few members are left): operator bool turns false, stopToken() is stopped, and the
/// remaining members are released.
/// **Cost**: one request to each member; the destructor waits for nothing.
///
/// @code
/// redislock::GroupGuard held(both, 100ms, 10s);
/// if (held) { transfer(held.stopToken()); }
/// @endcode
class [[nodiscard]] REDISLOCK_EXPORT GroupGuard {
public:
    /// An empty guard.
    GroupGuard() noexcept = default;
    /// Acquires as lock.lock(). @throws LockError as there.
    explicit GroupGuard(const GroupLock& lock);
    /// As GroupGuard(lock), without exceptions: empty with a code on errors.
    GroupGuard(const GroupLock& lock, std::error_code& ec);
    /// Acquires as lock.lock(lease). @throws LockError as there.
    /// @param lease a Lease, `GroupGuard(lock, Lease(10s))`: a plain duration, which could be a wait, does not compile.
    GroupGuard(const GroupLock& lock, std::same_as<Lease> auto lease) : GroupGuard(lock, waitForever, lease) {}
    /// As GroupGuard(lock, lease), without exceptions.
    GroupGuard(const GroupLock& lock, std::same_as<Lease> auto lease, std::error_code& ec)
        : GroupGuard(lock, waitForever, lease, ec)
    {
    }
    /// Acquires as lock.lock(stop); empty when it was called off. @throws LockError as there.
    GroupGuard(const GroupLock& lock, std::stop_token stop);
    /// As GroupGuard(lock, stop), without exceptions.
    GroupGuard(const GroupLock& lock, std::stop_token stop, std::error_code& ec);
    /// Acquires as lock.tryLock(wait, lease, stop); empty when the wait is over, or called off. @throws LockError as
    /// there.
    GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::stop_token stop = {});
    /// As GroupGuard(lock, wait, lease), without exceptions.
    GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::error_code& ec);
    /// As GroupGuard(lock, wait, lease, stop), without exceptions.
    GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::stop_token stop, std::error_code& ec);

    /// Takes over the hold; @p other becomes empty.
    GroupGuard(GroupGuard&& other) noexcept = default;
    /// Ends its own hold as the destructor does, then takes over the other's.
    GroupGuard& operator=(GroupGuard&& other) noexcept;
    /// Ends the hold at once; sends the releases and does not wait for them. Never throws.
    ~GroupGuard();

    /// Whether enough members are held and valid now, judged by this process' clock alone. Does not block.
    [[nodiscard]] explicit operator bool() const noexcept;

    /// Releases all members at once, and waits until enough releases are confirmed (MultiLock: all; RedLock: a
    /// majority, so that one hanging server does not block the caller; the others continue in the background). Blocks,
    /// each member with the bounds of Lock::unlock(). On the own thread of a member's client it does not wait and
    /// returns `unconfirmed`.
    /// @return `released`: others may have the group now; `unconfirmed`: too few answers; `alreadyLost`: the group had
    /// been lost, or too few members were left. @throws LockError `notHeld` when the guard is empty or was released
    /// before.
    Unlocked release();
    /// As release(), without exceptions.
    Unlocked release(std::error_code& ec);

    /// Ends the hold at once, and calls the handler when that is confirmed; results as for release().
    /// @param token any completion token for `void(boost::system::error_code, Unlocked)`. The handler is called once,
    /// on its associated executor; without one on the own thread of a member's client, where it must not block.
    /// `Errc::notHeld` when the guard is empty or was released before. Cannot be cancelled, since it has its own time
    /// limit.
    template <CompletionTokenFor<Unlocked> Token = boost::asio::deferred_t>
    auto asyncRelease(Token&& token = Token())
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code, Unlocked)>(
            [](auto handler, GroupGuard guard) {
                asyncRelease(std::move(guard), detail::UnlockHandler(std::move(handler)));
            },
            token, std::move(*this));
    }

    /// Stopped when the group is lost, whatever the servers and the network do; already stopped when empty; never
    /// stopped by a regular release. Stop callbacks run on the own thread of a member's client and must not block. Does
    /// not block.
    /// @param when `StopAt::atRisk`: stopped earlier, when too few members are not at risk.
    [[nodiscard]] std::stop_token stopToken(StopAt when = StopAt::lost) const noexcept;
    /// How long enough members are certain to last without another renewal; 0 when empty or lost. Does not block.
    [[nodiscard]] std::chrono::milliseconds validFor() const noexcept;
    /// How many members are held and valid now. Does not block.
    [[nodiscard]] std::size_t heldMembers() const noexcept;

private:
    friend class detail::GroupState;
    explicit GroupGuard(std::shared_ptr<detail::GroupHold> hold) noexcept;
    void end() noexcept;
    static void asyncRelease(GroupGuard guard, detail::UnlockHandler handler);

    std::shared_ptr<detail::GroupHold> hold_;
};

} // namespace redislock
