/// @file
/// Chaos runs whose faults are fail-overs.
#pragma once

#include "chaos/world.hpp"

#include <chrono>
#include <string>

namespace redislock::test::chaos {

// Each starts servers and worker processes, injects faults for that time, and ends the processes when all of them have
// recovered. What the servers do is written down for history::judge().
//
// only: faults whose name contains this. Throws Broken when a process does not recover, and history::Refused when a fault
// had no effect.

/// A master with two replicas and three Sentinels.
void failOverSentinels(const Plan& plan, std::chrono::seconds time, const std::string& only, Injected& injected);
/// A cluster of three masters with a replica each.
/// @param withPackets whether packets can be dropped
void failOverCluster(const Plan& plan, std::chrono::seconds time, const std::string& only, bool withPackets,
                     Injected& injected);

} // namespace redislock::test::chaos
