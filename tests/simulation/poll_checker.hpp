/// @file
/// Checks that no waiter goes on sleeping although it could have its permit.
#pragma once

#include "simulation/scheduler.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace redislock::simulation {

/// A waiter that could have had its permit all the time has it after a poll at the latest, with or without a message
/// (T4, S12).
class PollChecker {
public:
    struct Waiter {
        std::string who;
        std::int64_t permits; ///< the number that the waiter needs
        VirtualTime within;   ///< the waiter's poll interval, and some time to ask
    };
    using Waiters = std::function<std::vector<Waiter>(const std::string& name)>;

    PollChecker(Scheduler& scheduler, Waiters waiters) : scheduler_(scheduler), waiters_(std::move(waiters)) {}

    /// From now on there is no fault.
    void begin() noexcept { isOn_ = true; }
    /// Called after each request that the server executed, with the number of free permits. A violation is thrown
    /// later, out of the scheduler.
    void executed(const std::string& name, std::int64_t free);

private:
    struct Chance {
        std::string who;
        std::int64_t permits;
        bool isOver;
    };

    [[nodiscard]] bool isKnown(const std::string& name, const std::string& who) const;
    void judge(const std::string& name, std::list<Chance>::iterator chance);

    Scheduler& scheduler_;
    const Waiters waiters_;
    bool isOn_ = false;
    std::map<std::string, std::list<Chance>> chances_;
};

} // namespace redislock::simulation
