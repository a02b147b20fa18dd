/// @file
/// A chaos run whose faults are fail-overs.
#pragma once

#include "chaos/world.hpp"

#include <chrono>
#include <string>

namespace redislock::test::chaos {

/// Starts a master with two replicas, three Sentinels and worker processes, injects faults for that time, and ends the
/// processes when all of them have recovered. What the servers do is written down for history::judge().
/// @param only faults whose name contains this.
/// @throws Broken when a process does not recover. @throws history::Refused when a fault had no effect.
void failOver(const Plan& plan, std::chrono::seconds time, const std::string& only, Injected& injected);

} // namespace redislock::test::chaos
