/// @file
/// Samples a fair queue with waiters of both languages, and judges what must not happen there.
#pragma once

#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redislock::test {

/// The result of one look.
struct QueueLook {
    struct Waiter {
        std::string holder;
        std::chrono::milliseconds ahead; ///< its time in Redisson's sorted set, ahead of the server's clock
        bool isOurs;
        /// How long it may be the first while the lock is free, if it died, by what our scripts noted of it.
        std::optional<std::chrono::milliseconds> allowance;
    };

    std::string holder; ///< of the lock; empty: free
    std::vector<Waiter> waiters;
    std::chrono::milliseconds timeToLive; ///< of the queue; -1 ms: none; -2 ms: no queue
};

/// @param name of the lock, without `{`
QueueLook lookAtQueue(RawRedis& redis, const std::string& name);

/// Follows a queue by several looks each second. If a look comes late, the machine stood still or was busy, and waiters
/// may have asked too late for their places: then nothing is judged for a minute. Thread safety: unsafe.
class QueueWatch {
public:
    /// Whether a waiter's process lives, by the UUID of its client.
    using Lives = std::function<bool(const std::string& id)>;

    void look(RawRedis& redis, const std::string& name, const Lives& lives);

    /// The greatest distance of a time from the present.
    [[nodiscard]] std::chrono::milliseconds furthest() const noexcept { return furthest_; }
    /// The live waiters of ours that another waiter passed, or that were queued anew. Redisson's waiters end each
    /// other's places, and do not count.
    [[nodiscard]] const std::vector<std::string>& passed() const noexcept { return passed_; }
    /// The dead that were the first for longer than their allowance and 5 s while the lock was free.
    [[nodiscard]] const std::vector<std::string>& outstayed() const noexcept { return outstayed_; }
    /// How often a look came late.
    [[nodiscard]] std::size_t standstills() const noexcept { return standstills_; }

private:
    void lookAtDead(const QueueLook& now, const Lives& lives);

    QueueLook last_;
    std::optional<Stopwatch> sinceLast_;
    std::chrono::nanoseconds judgesFrom_{0}; // bootTime()
    std::size_t standstills_ = 0;
    std::set<std::string> gone_; // of ours; each hold has a name of its own
    std::chrono::milliseconds furthest_{0};
    std::vector<std::string> passed_;
    std::string deadFirst_; // while the lock is free
    std::optional<Stopwatch> deadSince_;
    std::vector<std::string> outstayed_;
};

} // namespace redislock::test
