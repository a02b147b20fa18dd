/// @file
/// Looks at a fair queue in which waiters of both languages stand, and what must not be seen there.
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

/// What one look shows.
struct QueueLook {
    struct Waiter {
        std::string holder;
        std::chrono::milliseconds ahead; ///< of the server's clock: its time in Redisson's sorted set
        bool isOurs;
    };

    std::string holder; ///< of the lock; empty: free
    std::vector<Waiter> waiters;
    std::chrono::milliseconds timeToLive; ///< of the queue; -1 ms: none; -2 ms: no queue
};

/// @param name of the lock, without `{`
QueueLook lookAtQueue(RawRedis& redis, const std::string& name);

/// Follows a queue by looks at it, several a second. When one comes late the machine stood still, or had no time, and
/// who waited may have asked too late for its place: then nothing is judged for a minute. Thread safety: unsafe.
class QueueWatch {
public:
    /// Whether a waiter's process lives, by the UUID of its client.
    using Lives = std::function<bool(const std::string& id)>;

    void look(RawRedis& redis, const std::string& name, const Lives& lives);

    /// How far ahead a time was at most.
    [[nodiscard]] std::chrono::milliseconds furthest() const noexcept { return furthest_; }
    /// Those of ours that lived and were passed by another, or were queued anew. Redisson's end each other's places.
    [[nodiscard]] const std::vector<std::string>& passed() const noexcept { return passed_; }
    /// How often a look came late.
    [[nodiscard]] std::size_t standstills() const noexcept { return standstills_; }

private:
    QueueLook last_;
    std::optional<Stopwatch> sinceLast_;
    std::chrono::nanoseconds judgesFrom_{0}; // bootTime()
    std::size_t standstills_ = 0;
    std::set<std::string> gone_; // of ours; each hold has a name of its own
    std::chrono::milliseconds furthest_{0};
    std::vector<std::string> passed_;
};

} // namespace redislock::test
