/// @file
/// The turns of threads inside, and whether any of them overlap wrongly.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace redislock::test {

using Micros = std::chrono::microseconds; ///< on CLOCK_MONOTONIC, which all processes share

/// From a moment after the thread came in to a moment before it left, or was killed.
struct Turn {
    std::size_t place = 0; ///< of its process
    Micros in{0};
    Micros out{0};
    Micros waited{0};
    bool reads = false;
    bool lost = false; ///< the thread learned that its lock had been lost
};

/// The pairs of turns that overlapped although one should have kept the other out; turns that ended with a reported
/// loss do not count.
/// @param most inside at a time; readers beside readers do not count
std::vector<std::pair<Turn, Turn>> overlaps(std::vector<Turn> turns, std::size_t most);

} // namespace redislock::test
