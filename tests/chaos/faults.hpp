/// @file
/// What a chaos run breaks.
#pragma once

#include "chaos/world.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace redislock::test::chaos {

/// Something that goes wrong for a while and is over when inject() returns.
struct Fault {
    const char* name;
    /// @return how often it took effect; a fault that did not proves nothing.
    std::size_t (*inject)(World& world);
};

/// By signals, commands and the proxy.
const std::vector<Fault>& faults();
/// The same at servers of groups, which are fewer than half unless none forgets.
const std::vector<Fault>& groupFaults();
/// By the kernel; they need a network of the run's own (packets.hpp).
const std::vector<Fault>& packetFaults();
/// What no run may pass with, to see it refused: only by its whole name.
const std::vector<Fault>& impossibleFaults();

/// All such frames.
inline Match every(Direction direction, const std::string& command = "EVALSHA")
{
    return {.command = command, .direction = direction, .nth = 0};
}

/// For less than most leases, or for more.
void waitAroundTheLeases(World& world);

} // namespace redislock::test::chaos
