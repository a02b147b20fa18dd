/// @file
/// That a loss is told in time, and that there was no way around it.
#pragma once

#include "simulation/host.hpp"

#include <chrono>
#include <string>

namespace redislock::simulation {

/// T1. Of a hold that was not told lost: its deadline is still to come, by more than its process can be late.
/// @throws Violation otherwise.
void expectLossTold(const std::string& holder, TimePoint deadline, const Host& host, VirtualTime now);

/// A renewed hold that its process gave up by the clock.
struct RunOut {
    std::string holder;
    std::chrono::nanoseconds lease;
    std::chrono::nanoseconds commandTimeout;
    TimePoint renewedAt; ///< when the grant or renewal that counts was sent
    TimePoint deadline;
};

/// T3. There was no time, two thirds of the lease through, in which a renewal could have worked: the last trouble was
/// too late. @throws Violation otherwise.
void expectNoChance(const RunOut& hold, const Host& host, VirtualTime lastTrouble);

} // namespace redislock::simulation
