/// @file
/// The library's side of the rows about locks that nobody else wants.
#pragma once

#include "measurement.hpp"

#include <redislock/config.hpp>

namespace redislock::bench {

/// Pairs of lock() and unlock() a second, every thread with its own name, one client.
Side lockSide(const Config& config, unsigned threads);
/// Pairs of asyncLock() and asyncRelease() a second, @p underWay of them under way, each with its own name.
Side asynchronousSide(const Config& config, unsigned underWay);

} // namespace redislock::bench
