/// @file
/// What this process uses.
#pragma once

#include "measurement.hpp"

#include <cstddef>

namespace redislock::bench {

/// Bytes that the program has from malloc now, with malloc's own words for each piece.
std::size_t heapInUse();
/// Bytes of memory that the process has in the machine.
std::size_t residentBytes();
std::size_t threadCount();
std::size_t descriptorCount();
/// Of all threads, in user and system mode.
Seconds processorTime();

} // namespace redislock::bench
