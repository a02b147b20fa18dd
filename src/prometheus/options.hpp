/// @file
/// The options of a PrometheusObserver, checked, as prometheus-cpp takes them.
#pragma once

#include "redislock/prometheus_observer.hpp"
#include "series.hpp"

#include <prometheus/labels.h>

namespace redislock::detail {

/// The labels that all metrics have. @throws LockError `invalidArgument`: a name or value, or their number, is not
/// allowed.
prometheus::Labels labelsOf(const PrometheusOptions& options);

/// The boundaries in seconds. @throws LockError `invalidArgument`: there are none or too many, or they do not rise.
TimeBuckets bucketsOf(const PrometheusOptions& options);

} // namespace redislock::detail
