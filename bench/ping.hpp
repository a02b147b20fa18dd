/// @file
/// The round trip that hand-overs are compared with.
#pragma once

#include "measurement.hpp"
#include "rows.hpp"

namespace redislock::bench {

/// The median time of a raw PING in µs.
/// @param pause before each PING, as before each hand-over: a machine that was idle for a moment answers later, and
/// this has to affect both sides.
Side pingSide(const Target& target, std::chrono::microseconds pause);

} // namespace redislock::bench
