/// @file
/// The output of the program.
#pragma once

#include "apart.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace redislock::bench {

/// A row's figures: medians over the pairs; the ratio is taken pair by pair.
struct Result {
    double ours;
    double reference;
    double ratio;
    Range ratioBetween;     ///< the range of the true median of the ratios: see rangeOfMedian()
    double referenceSpread; ///< the spread of the reference's figures, as a share of their median
    double machineSpread;   ///< the same for fixedWork()
    std::size_t pairs;
    std::string note; ///< the note of the pair with the median ratio
};

Result summarize(const Measured& measured);

/// Whether chance may have decided if the goal is reached.
bool isUncertain(const Row& row, const Result& result);

void printHead();
void printRow(const Row& row, const Result& result);
/// One line of words separated by tabs: see tsvColumns.
void printTsv(std::FILE* file, const Row& row, const Result& result);
void printList(const std::vector<Row>& rows);

inline constexpr char tsvColumns[] = "row, ours, reference, ratio, goal, reached|not-reached, stretch, "
                                     "reached|not-reached, ratio from, ratio to, spread of the reference, spread of "
                                     "the machine, group, at-least|at-most; bounds that nobody set are 0 and none";

} // namespace redislock::bench
