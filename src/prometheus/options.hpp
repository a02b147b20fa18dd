/// @file
/// The options of a PrometheusObserver, checked, as prometheus-cpp takes them.
#pragma once

#include "redislock/prometheus_observer.hpp"
#include "series.hpp"

#include <prometheus/labels.h>

namespace redislock::detail {

/// The labels that all metrics have. @throws LockError `invalidArgument`: a rule of a label or of their number.
prometheus::Labels labelsOf(const PrometheusOptions& options);

/// The boundaries in seconds. @throws LockError `invalidArgument`: they are none, too many, or do not rise.
TimeBuckets bucketsOf(const PrometheusOptions& options);

} // namespace redislock::detail
