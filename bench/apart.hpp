/// @file
/// Each row in a process of its own, with a server of its own.
#pragma once

#include "measurement.hpp"
#include "rows.hpp"

#include <functional>
#include <string_view>
#include <vector>

namespace redislock::bench {

struct Effort {
    int repetitions;
    double seconds; ///< each side in each pair
    bool tryOut =
        false; ///< only to check that the rows can be measured: one short pair, without a warm-up, with few objects
};

/// The results of a row's process.
struct Measured {
    std::vector<Pair> pairs{};
    std::vector<double> fixedWork{}; ///< before, between and after the pairs: see fixedWork()
};

/// A signal has asked for the end.
struct Interrupted {};

/// Measures a row in a second process of this program, with a fresh server: so rows do not disturb each other by their
/// connections, threads, heap or keys. @param progress is called with the number of pairs so far.
/// @throws Interrupted; std::runtime_error when the process fails; the process has then said why on standard error.
Measured measureApart(const Row& row, const Effort& effort, const std::function<void(std::size_t)>& progress);

/// The second process: measures the row and writes the results to standard output.
void measureForParent(std::string_view row, const Effort& effort);

/// Lets SIGINT and SIGTERM end the measurement in an orderly way, a second SIGINT at once.
void handleSignals();

} // namespace redislock::bench
