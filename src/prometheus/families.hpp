/// @file
/// The metrics of a PrometheusObserver, by name.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace redislock::detail {

/// All metrics of a registry, without labels. doc/metrics.md says what each one is.
struct Families {
    using Counters = prometheus::Family<prometheus::Counter>;
    using Histograms = prometheus::Family<prometheus::Histogram>;

    explicit Families(prometheus::Registry& registry);

    // of an object, with the labels `kind` and `lock`
    Counters& acquired;
    Counters& contended;
    Histograms& waits;    ///< `outcome`
    Histograms& attempts; ///< `outcome`
    Counters& renewed;
    Histograms& renewals;
    Counters& renewalFailures; ///< `cause`
    Counters& atRisk;          ///< `reason`
    Counters& lost;            ///< `reason`
    Counters& released;        ///< `result`
    Histograms& holds;
    Counters& unconfirmed;
    Counters& heldTooLong;
    Counters& keysWithoutTtl;
    Counters& pushesMissed;
    Counters& subscribesRefused;

    // of a connection
    Counters& connected;    ///< `purpose`
    Counters& disconnected; ///< `purpose`, `cause`
};

} // namespace redislock::detail
