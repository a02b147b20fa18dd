/// @file
/// Checks that no waiter sleeps while a lock is free.
#pragma once

#include "core/share/gaps.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/request.hpp"
#include "simulation/scheduler.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace redislock::simulation {

inline constexpr VirtualTime longestPoll = std::chrono::seconds(60);
/// After a hold of its own, a waiter's client may leave a gap.
inline constexpr VirtualTime longestGap = detail::Gaps::longest;
inline constexpr VirtualTime promptly = std::chrono::milliseconds(200) + longestGap;

/// Watches the requests that the server executes. When a lock becomes free and stays free, a waiter must try in time:
/// soon after a release (T4); after an expiry (T5), which is not published, when the holder's time is over that the
/// waiter knows of. When a writer goes on as a reader, a waiting reader must try in time.
///
/// A waiter that is passed a fair lock must know this in time, unless it died.
///
/// A fair lock must be granted in time to the first in the queue if that one still waits; otherwise to some waiter when
/// the time of the dead waiters ahead is over (T6).
class WakeUpChecker {
public:
    enum class Who : std::uint8_t { anybody, readers };

    /// A waiter that has waited for a lock since then or longer, and has no hold of it; empty: none.
    using WaiterSince = std::function<std::string(const std::string& name, VirtualTime since, Who who)>;

    /// Whether a thread waits under the name of that holder.
    using IsWaiting = std::function<bool(const std::string& name, const std::string& holder)>;

    WakeUpChecker(Scheduler& scheduler, const Keyspace& keyspace, WaiterSince waiterSince, IsWaiting isWaiting)
        : scheduler_(scheduler),
          keyspace_(keyspace),
          waiterSince_(std::move(waiterSince)),
          isWaiting_(std::move(isWaiting))
    {
    }

    /// From now on there is no fault. Before that the checker only remembers the answers to waiters.
    /// @param deadKeep how long all dead waiters of a fair lock together may keep others waiting.
    void begin(VirtualTime deadKeep) noexcept
    {
        isOn_ = true;
        deadKeep_ = deadKeep;
    }
    /// Called after each request that the server executed. A violation is thrown later, out of the scheduler.
    /// @param passedTo the waiter to which the request passed the lock; empty: to nobody.
    void executed(const Request& request, const Reply& reply, const std::string& passedTo = {});

private:
    enum class Freed { released, expired };

    void expectFree(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how, bool isQueue);
    void expectAttempt(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how, Who who);

    void expectTaken(const std::string& name, const std::string& holder, VirtualTime passedAt);
    void expectGrant(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how);
    [[nodiscard]] std::string headOf(const std::string& name, VirtualTime now) const;
    [[noreturn]] static void fail(const std::string& rule, const std::string& name, VirtualTime freedAt,
                                  const std::string& who);

    Scheduler& scheduler_;
    const Keyspace& keyspace_;
    const WaiterSince waiterSince_;
    const IsWaiting isWaiting_;
    bool isOn_ = false;
    VirtualTime deadKeep_{0};
    std::map<std::string, VirtualTime> lastGrant_; ///< of fair locks
    std::map<std::pair<std::string, Who>, VirtualTime> lastAttempt_;
    std::map<std::string, VirtualTime> seenUntil_; ///< the latest end of a hold that a waiter knows of
};

} // namespace redislock::simulation
