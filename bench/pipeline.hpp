/// @file
/// The most that one connection and the server can do.
#pragma once

#include "measurement.hpp"
#include "rows.hpp"

namespace redislock::bench {

/// Pairs of acquiring and releasing a second, over one raw connection with @p underWay requests under way.
Side pipelineSide(const Target& target, unsigned underWay);

} // namespace redislock::bench
