/// @file
/// What one connection and the server can do at most.
#pragma once

#include "measurement.hpp"
#include "rows.hpp"

namespace redislock::bench {

/// Pairs of acquiring and releasing a second, over one raw connection with so many requests under way.
Side pipelineSide(const Target& target, unsigned underWay);

} // namespace redislock::bench
