/// @file
/// Statistics of many figures of one thing.
#pragma once

#include <vector>

namespace redislock::bench {

/// The middle value; the upper of two middle values. @p values must not be empty.
double median(std::vector<double> values);

/// The value below which the share @p part (0 … 1) of all values lies. @p values must not be empty.
double quantile(std::vector<double> values, double part);

struct Range {
    double low;
    double high;

    [[nodiscard]] bool contains(double value) const noexcept { return low <= value && value <= high; }
};

/// Between which values the true median lies, with 95 % certainty and whatever the distribution: from the k-th smallest
/// to the k-th greatest, with k from the binomial distribution. With fewer than six values not even the whole range
/// gives that certainty; the result is then the whole range. @p values must not be empty.
Range rangeOfMedian(std::vector<double> values);

/// The spread of the values: greatest less smallest, as a share of the median. @p values must not be empty.
double spread(const std::vector<double>& values);

} // namespace redislock::bench
