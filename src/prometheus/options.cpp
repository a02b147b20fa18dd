#include "options.hpp"

#include "redislock/error.hpp"
#include "values/printable.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace redislock::detail {

namespace {

constexpr std::string_view own[] = {"kind", "lock", "outcome", "result", "reason", "purpose", "cause", "le"};
constexpr std::size_t mostBuckets = 100;

[[noreturn]] void refuse(const std::string& what)
{
    throw LockError(Errc::invalidArgument, "PrometheusOptions::" + what);
}

bool isLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Prometheus' rule for names of labels; those that begin with two underscores are its own.
bool isLabelName(std::string_view name)
{
    return !name.empty() && isLetter(name[0]) && !name.starts_with("__") &&
           std::ranges::all_of(name, [](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

} // namespace

prometheus::Labels labelsOf(const PrometheusOptions& options)
{
    if (options.maxLockLabels == 0) {
        refuse("maxLockLabels is 0, and must be at least 1");
    }
    prometheus::Labels labels;
    for (const auto& [name, value] : options.labels) {
        if (!isLabelName(name)) {
            refuse("labels has the name \"" + printable(name) +
                   "\"; names have letters, digits and _, and do not begin with a digit or __");
        }
        if (std::ranges::find(own, name) != std::end(own)) {
            refuse("labels has the name \"" + name + "\", which is one of the metrics' own");
        }
        labels.emplace(name, printable(value));
    }
    return labels;
}

TimeBuckets bucketsOf(const PrometheusOptions& options)
{
    const auto& boundaries = options.timeBuckets;
    if (boundaries.empty() || boundaries.size() > mostBuckets) {
        refuse("timeBuckets has " + std::to_string(boundaries.size()) + " boundaries, and must have 1 to 100");
    }
    TimeBuckets seconds;
    std::chrono::nanoseconds last{0};
    for (const auto boundary : boundaries) {
        if (boundary <= last) {
            refuse("timeBuckets must be longer than 0 ns, each longer than the one before; " +
                   std::to_string(boundary.count()) + " ns is not");
        }
        last = boundary;
        seconds.push_back(std::chrono::duration<double>(boundary).count());
    }
    return seconds;
}

} // namespace redislock::detail
