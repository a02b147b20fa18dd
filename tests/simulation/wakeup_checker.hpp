/// @file
/// That nobody sleeps while a lock is free.
#pragma once

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
inline constexpr VirtualTime promptly = std::chrono::milliseconds(200);

/// Watches the requests that the server executes. When a lock becomes free and stays so, somebody who waits for it must try
/// in time: soon after a release (T4); after an expiry (T5), of which nobody tells, when what he was told of the holder's
/// time is over. When a writer goes on as a reader, so must one who waits for reading.
class WakeUpChecker {
public:
    enum class Who : std::uint8_t { anybody, readers };

    /// Who waits for a lock since then or longer, and has no hold of his own; empty: nobody.
    using WaiterSince = std::function<std::string(const std::string& name, VirtualTime since, Who who)>;

    WakeUpChecker(Scheduler& scheduler, const Keyspace& keyspace, WaiterSince waiterSince)
        : scheduler_(scheduler), keyspace_(keyspace), waiterSince_(std::move(waiterSince))
    {
    }

    /// From now on nothing is in the way of anybody. Before that it only remembers what waiters were told.
    void begin() noexcept { isOn_ = true; }
    /// After each request that the server executed. What it makes of it, it throws later, out of the scheduler.
    void executed(const Request& request, const Reply& reply);

private:
    enum class Freed { released, expired };

    void expectFreed(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how);
    void expectAttempt(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how, Who who);

    Scheduler& scheduler_;
    const Keyspace& keyspace_;
    const WaiterSince waiterSince_;
    bool isOn_ = false;
    std::map<std::pair<std::string, Who>, VirtualTime> lastAttempt_;
    std::map<std::string, VirtualTime> seenUntil_; ///< the latest end of a hold that a waiter was told
};

} // namespace redislock::simulation
