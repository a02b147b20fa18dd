/// @file
/// The resources that this process uses.
#pragma once

#include "measurement.hpp"

#include <cstddef>

namespace redislock::bench {

/// Bytes that the program now has from malloc, including malloc's own header of each piece.
std::size_t heapInUse();
/// Bytes of resident memory of the process.
std::size_t residentBytes();
std::size_t threadCount();
std::size_t descriptorCount();
/// The processor time of all threads, in user and system mode.
Seconds processorTime();

} // namespace redislock::bench
