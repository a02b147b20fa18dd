/// @file
/// The metrics of one kind of object under one label.
#pragma once

#include "families.hpp"
#include "redislock/observer.hpp"
#include "redislock/unlocked.hpp"

#include <prometheus/labels.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail {

/// Boundaries of the histograms of times, in seconds.
using TimeBuckets = prometheus::Histogram::BucketBoundaries;

inline prometheus::Labels with(prometheus::Labels labels, const char* name, std::string_view value)
{
    labels.emplace(name, value);
    return labels;
}

/// A counter for each enumerator, with the enumerator as a label.
template <class Enumeration, std::size_t count>
class CountersBy {
public:
    CountersBy(Families::Counters& family, const prometheus::Labels& labels, const char* label)
        : family_(family), labels_(labels), label_(label)
    {
        for (std::size_t i = 0; i < count; ++i) {
            each_[i] = &add(static_cast<Enumeration>(i));
        }
    }

    prometheus::Counter& operator[](Enumeration value)
    {
        const auto index = static_cast<std::size_t>(value);
        return index < count ? *each_[index] : add(value);
    }

private:
    prometheus::Counter& add(Enumeration value) { return family_.Add(with(labels_, label_, toString(value))); }

    Families::Counters& family_;
    prometheus::Labels labels_;
    const char* label_;
    std::array<prometheus::Counter*, count> each_{};
};

/// All that is counted and measured for objects with the same labels: looked up once.
struct Series {
    static constexpr auto reasons = static_cast<std::size_t>(LossReason::unconfirmed) + 1;
    static constexpr auto results = static_cast<std::size_t>(Unlocked::unconfirmed) + 1;

    Series(Families& families, const prometheus::Labels& of, const TimeBuckets& times);

    prometheus::Labels labels;
    prometheus::Counter& acquired;
    prometheus::Counter& contended;
    prometheus::Histogram& waitedForGrant;
    prometheus::Histogram& waitedInVain;
    prometheus::Histogram& attemptsForGrant;
    prometheus::Histogram& attemptsInVain;
    prometheus::Counter& renewed;
    prometheus::Histogram& renewal;
    CountersBy<LossReason, reasons> atRisk;
    CountersBy<LossReason, reasons> lost;
    CountersBy<Unlocked, results> released;
    prometheus::Histogram& hold;
    prometheus::Counter& unconfirmed;
    prometheus::Counter& heldTooLong;
    prometheus::Counter& keysWithoutTtl;
    prometheus::Counter& pushesMissed;
    prometheus::Counter& subscribesRefused;
};

} // namespace redislock::detail
