/// @file
/// The faults of a chaos run.
#pragma once

#include "chaos/world.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace redislock::test::chaos {

/// Something that goes wrong for a while and is over when inject() returns.
struct Fault {
    const char* name;
    /// @return how often the fault took effect; a fault without an effect proves nothing.
    std::size_t (*inject)(World& world);
};

/// Faults by signals, commands and the proxy.
const std::vector<Fault>& faults();
/// The same on servers of groups: on fewer than half of them, unless no server forgets.
const std::vector<Fault>& groupFaults();
/// Faults by the kernel; they need a network of the run's own (packets.hpp).
const std::vector<Fault>& packetFaults();
/// Faults with which no run may pass, to test that the run is refused: selected only by their whole names.
const std::vector<Fault>& impossibleFaults();

/// Matches all such frames.
inline Match every(Direction direction, const std::string& command = "EVALSHA")
{
    return {.command = command, .direction = direction, .nth = 0};
}

/// Waits for less than most leases, or for more.
void waitAroundTheLeases(World& world);

} // namespace redislock::test::chaos
