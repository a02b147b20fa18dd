#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace redislock::bench {

double median(std::vector<double> values)
{
    return quantile(std::move(values), 0.5);
}

double quantile(std::vector<double> values, double part)
{
    const auto count = static_cast<double>(values.size());
    const auto index = std::min(static_cast<std::size_t>(part * count), values.size() - 1);
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

Range rangeOfMedian(std::vector<double> values)
{
    constexpr double outside = 0.025; // at each end
    std::ranges::sort(values);
    const auto count = values.size();
    // of `count` values, the probability that exactly k lie below the true median; summed up while it is small enough
    double exactly = std::pow(0.5, static_cast<double>(count));
    double atMost = exactly;
    std::size_t skipped = 0;
    while (2 * (skipped + 1) < count) {
        exactly *= static_cast<double>(count - skipped) / static_cast<double>(skipped + 1);
        if (atMost + exactly > outside) {
            break;
        }
        atMost += exactly;
        ++skipped;
    }
    return {values[skipped], values[count - 1 - skipped]};
}

double spread(const std::vector<double>& values)
{
    const auto [lowest, highest] = std::ranges::minmax(values);
    return (highest - lowest) / median(values);
}

} // namespace redislock::bench
