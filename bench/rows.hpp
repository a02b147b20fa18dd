/// @file
/// The rows of the table.
#pragma once

#include "measurement.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::bench {

/// The server that both sides use.
struct Target {
    std::string host;
    std::uint16_t port;
    std::string url;
};

/// Which ratios are good ones.
enum class Aim { atLeast, atMost };

struct Row {
    std::string_view name;
    std::string_view unit;
    Aim aim;
    double goal;    ///< for the median of ours / reference
    double stretch; ///< where to go after that; 0: not said
    std::string_view what;
    std::function<Measure(const Target&)> prepare;
};

const std::vector<Row>& allRows();

/// Whether @p ratio reaches the row's goal.
inline bool reaches(const Row& row, double ratio)
{
    return row.aim == Aim::atLeast ? ratio >= row.goal : ratio <= row.goal;
}

// What the rows are made of. Each prepares both sides: connections are made before anything is measured.

/// Pairs of lock() and unlock(), every thread with its own name.
Measure lockAndUnlock(const Target& target, unsigned threads);
/// Pairs of making and destroying a LockGuard, every thread with its own name.
Measure lockGuard(const Target& target, unsigned threads);

/// unlock() called on one thread until lock() returns on the other, against PING.
Measure handOverBetweenThreads(const Target& target);
/// unlock() called in one process until lock() returns in the other, against PING.
Measure handOverBetweenProcesses(const Target& target);
/// The other process of the row above: takes and gives back the lock each time a byte arrives on standard input.
void runPartner(const std::string& url, const std::string& lockName);

/// How often one lock that all threads want changes its holder, against SET NX PX and a sleep of 20 ms.
Measure changesOfHolder(const Target& target, unsigned threads);
/// Requests to the server while all threads want one lock, against acquisitions.
Measure commandsPerAcquisition(const Target& target, unsigned threads);
/// The longest wait for one lock that all threads want, against the mean wait.
Measure longestWait(const Target& target, unsigned threads);

} // namespace redislock::bench
