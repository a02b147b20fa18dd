/// @file
/// Who was inside, from when to when; and whether that was right.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace redislock::test {

using Micros = std::chrono::microseconds; ///< on CLOCK_MONOTONIC, of all processes

/// From a moment after it had come in to one before it went, or was killed.
struct Turn {
    std::size_t place = 0; ///< of its process
    Micros in{0};
    Micros out{0};
    Micros waited{0};
    bool reads = false;
    bool lost = false; ///< it was told that its lock had been lost
};

/// Those that came in while others were inside that should have kept them out, whoever was told of a loss left aside.
/// @param most inside at a time; a reader counts for nothing beside readers
std::vector<std::pair<Turn, Turn>> overlaps(std::vector<Turn> turns, std::size_t most);

} // namespace redislock::test
