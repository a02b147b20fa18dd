/// @file
/// What is printed.
#pragma once

#include "rows.hpp"

#include <vector>

namespace redislock::bench {

/// A row's figures: medians over the pairs, the ratio's taken pair by pair.
struct Result {
    double ours;
    double reference;
    double ratio;
    double lowestRatio;
    double highestRatio;
};

Result summarize(const std::vector<Pair>& pairs);

void printHead();
void printRow(const Row& row, const Result& result);
/// row, ours, reference, ratio, goal, reached or not-reached; separated by tabs.
void printTsv(const Row& row, const Result& result);
void printList(const std::vector<Row>& rows);

} // namespace redislock::bench
