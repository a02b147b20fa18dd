/// @file
/// Checks that a fair lock is granted in the order of asking.
#pragma once

#include "simulation/keyspace.hpp"
#include "simulation/request.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace redislock::simulation {

/// Watches the requests that the server executes, and keeps a queue of its own of the waiters that ask and go on asking
/// (T6). A waiter that once did not ask again in time may lose its place, and does not hold up others in this queue.
class QueueChecker {
public:
    /// Called after each request that the server executed. @param hadIt whether its holder had the lock before.
    /// @param passedTo the waiter to which it passed the lock; empty: to nobody.
    void executed(const Request& request, const Reply& reply, bool hadIt, const std::string& passedTo,
                  std::int64_t nowMs);

    /// The server lost all its data.
    void forgetAll() noexcept { queues_.clear(); }

private:
    struct Place {
        std::string holder;
        std::int64_t keptUntilMs;
        bool isOver = false; ///< or was once late
    };
    using Queue = std::vector<Place>;

    static void note(const Request& request, const Reply& reply, bool hadIt, Queue& queue, std::int64_t nowMs);
    static void granted(const std::string& name, const std::string& holder, Queue& queue);
    static void asked(const Request& request, Queue& queue, std::int64_t nowMs);

    std::map<std::string, Queue> queues_; ///< by name
};

} // namespace redislock::simulation
