/// @file
/// The metrics that an observer has put into a registry of prometheus-cpp.
#pragma once

#include "redislock/error.hpp"
#include "redislock/observer.hpp"
#include "redislock/prometheus_observer.hpp"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;

using Labels = std::map<std::string, std::string>;

/// Calls an observer once for each event of an object and of a connection.
inline void tellEverything(Observer& observer, const LockEvent& event)
{
    const std::error_code error = Cause::outOfMemory;
    observer.acquired(event, 30ms, 2);
    observer.contended(event, 5s, 40ms, 3);
    observer.renewed(event, 2ms);
    observer.renewalFailed(event, error);
    observer.atRisk(event, 1s, LossReason::unrenewed);
    observer.lost(event, LossReason::gone);
    observer.released(event, Unlocked::released, 60ms);
    observer.unconfirmed(event);
    observer.heldTooLong(event, 90s);
    observer.keyWithoutTtl(event);
    observer.pushMissed(event);
    observer.subscribeRefused(event);
    observer.connected("commands");
    observer.disconnected("renewals", error, "10.0.0.7:6379: the server is out of memory");
}

/// A registry with functions to look into it.
class Registered {
public:
    [[nodiscard]] std::shared_ptr<PrometheusObserver> observer(PrometheusOptions options = {}) const
    {
        return std::make_shared<PrometheusObserver>(registry_, std::move(options));
    }

    [[nodiscard]] std::vector<prometheus::MetricFamily> families() const { return registry_->Collect(); }

    /// The text that Prometheus reads, without the comments.
    [[nodiscard]] std::vector<std::string> lines() const
    {
        const auto text = prometheus::TextSerializer().Serialize(families());
        std::vector<std::string> lines;
        for (std::size_t begin = 0; begin < text.size();) {
            const auto end = text.find('\n', begin);
            lines.push_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
        std::erase_if(lines, [](const std::string& line) { return line.empty() || line[0] == '#'; });
        return lines;
    }
    [[nodiscard]] bool has(std::string_view line) const
    {
        const auto all = lines();
        return std::find(all.begin(), all.end(), line) != all.end();
    }

    /// The count of a counter, or of a histogram's observations; nothing: there is no such series.
    [[nodiscard]] std::optional<double> count(std::string_view name, const Labels& labels) const
    {
        for (const auto& family : families()) {
            for (const auto& metric : family.metric) {
                if (family.name == name && labelsOf(metric) == labels) {
                    return family.type == prometheus::MetricType::Histogram
                               ? static_cast<double>(metric.histogram.sample_count)
                               : metric.counter.value;
                }
            }
        }
        return std::nullopt;
    }

    /// The counts of all series of a counter.
    [[nodiscard]] double sum(std::string_view name) const
    {
        double sum = 0;
        for (const auto& family : families()) {
            for (const auto& metric : family.metric) {
                sum += family.name == name ? metric.counter.value : 0;
            }
        }
        return sum;
    }

    static Labels labelsOf(const prometheus::ClientMetric& metric)
    {
        Labels labels;
        for (const auto& label : metric.label) {
            labels.emplace(label.name, label.value);
        }
        return labels;
    }

private:
    std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
};

} // namespace redislock::test
