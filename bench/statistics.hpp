/// @file
/// What many figures of one thing say.
#pragma once

#include <vector>

namespace redislock::bench {

/// The middle value; of an even number the upper one. @p values must not be empty.
double median(std::vector<double> values);

/// The value that the share @p part (0 … 1) of all values lies below. @p values must not be empty.
double quantile(std::vector<double> values, double part);

struct Range {
    double low;
    double high;

    [[nodiscard]] bool contains(double value) const noexcept { return low <= value && value <= high; }
};

/// Between which values the true median lies, with 95 % certainty and whatever the distribution: from the k-th smallest
/// to the k-th greatest, with k from the binomial distribution. Below six values not even all of them give that
/// certainty; then from the smallest to the greatest. @p values must not be empty.
Range rangeOfMedian(std::vector<double> values);

/// How far the values lie apart: greatest less smallest, as a share of the median. @p values must not be empty.
double spread(const std::vector<double>& values);

} // namespace redislock::bench
