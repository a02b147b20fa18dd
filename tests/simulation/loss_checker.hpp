/// @file
/// Checks that a loss is reported in time, and that it was inevitable.
#pragma once

#include "simulation/host.hpp"

#include <chrono>
#include <string>

namespace redislock::simulation {

/// T1. For a hold that was not reported lost: its deadline must still be in the future, or its process may be late.
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

/// T3. In the last two thirds of the lease there must have been no time in which a renewal could have worked, because
/// the last trouble was too late. @throws Violation otherwise.
void expectNoChance(const RunOut& hold, const Host& host, VirtualTime lastTrouble);

} // namespace redislock::simulation
