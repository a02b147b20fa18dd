/// @file
/// An observer that counts and measures for Prometheus.
///
/// Not part of redislock.hpp: it belongs to the library `redislock::prometheus`, which is built with
/// `-DREDISLOCK_PROMETHEUS=ON` and needs prometheus-cpp. See doc/metrics.md.
#pragma once

#include "redislock/export.hpp"
#include "redislock/observer.hpp"
#include "redislock/unlocked.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace prometheus {
class Registry;
} // namespace prometheus

namespace redislock {

/// How a PrometheusObserver labels and measures.
struct PrometheusOptions {
    /// Labels that all its metrics have, such as `{{"service", "shop"}}`, to distinguish clients that share a registry.
    /// Default: none. A name has letters, digits and `_`, does not begin with a digit or with `__`, and is not one of
    /// `kind`, `lock`, `outcome`, `result`, `reason`, `purpose`, `cause` and `le`. In a value, any byte that is not
    /// printable ASCII is written as `\xHH`, and more than 80 characters are cut.
    std::map<std::string, std::string> labels{};
    /// Returns the label `lock` for an object's name, or for the names of a group's members. Default: empty, there is
    /// no such label. The number of names has no limit, and each value costs about 140 series for each kind of object,
    /// so the function should return few different values: for `stock:42`, for instance, the part before the colon. It
    /// is called for each event of an object on the client's thread (at the same time for several clients with one
    /// observer), and must not block. If it throws, the value is `other`. Values are written as those of #labels.
    std::function<std::string(std::string_view name)> lockLabel{};
    /// How many different values lockLabel may return; any further value becomes `other`. At least 1, default 100. A
    /// higher limit costs memory here and in Prometheus if names get into the label by mistake.
    std::size_t maxLockLabels = 100;
    /// The upper boundaries of the histograms of times, each of them at least 1 ns and longer than the one before; 1 to
    /// 100 of them. Default: 19 from 100 µs to 100 s, three per decade. More boundaries make quantiles more exact, and
    /// need more series. If several observers share a registry and labels, the boundaries of the first one are used.
    std::vector<std::chrono::nanoseconds> timeBuckets = defaultTimeBuckets();

    /// The default of #timeBuckets.
    [[nodiscard]] static std::vector<std::chrono::nanoseconds> defaultTimeBuckets()
    {
        using namespace std::chrono_literals;
        return {100us, 250us, 500us, 1ms,    2500us, 5ms, 10ms, 25ms, 50ms, 100ms,
                250ms, 500ms, 1s,    2500ms, 5s,     10s, 25s,  50s,  100s};
    }
};

/// Counts and measures the events of clients in a registry of prometheus-cpp, from which Prometheus reads.
///
/// **Guarantees**: every event of Observer is counted by a metric of its own; doc/metrics.md lists them. The counters
/// of a kind of object exist, as zero, from its first event on. Names, holders and messages of the server are never
/// used as labels, unless PrometheusOptions::lockLabel returns them. The metrics stay in the registry when the observer
/// is destroyed.
/// **Does not guarantee** a count when there is no memory for a new label value: that event is not counted.
///
/// **Thread safety**: safe; several clients may share one observer, and several observers one registry, in which equal
/// metrics with equal labels are added up. **Blocking**: briefly, on mutexes of its own and of prometheus-cpp.
/// **Lifetime**: keeps the registry alive. **Cost**: about 100 ns per event on the client's thread, without allocations
/// except for new labels, failures and connections, and those of lockLabel.
///
/// @code
/// auto registry = std::make_shared<prometheus::Registry>();
/// config.observer = std::make_shared<redislock::PrometheusObserver>(registry);
/// prometheus::Exposer exposer("127.0.0.1:9464"); // of prometheus-cpp-pull
/// exposer.RegisterCollectable(registry);
/// @endcode
class REDISLOCK_EXPORT PrometheusObserver final : public Observer {
public:
    /// Adds the metrics to the registry. Does not block. @param registry not null.
    /// @throws LockError `invalidArgument`: there is no registry, or an option breaks its rule; the message says which.
    /// @throws std::invalid_argument the registry already has one of the names as another type, or does not merge.
    explicit PrometheusObserver(std::shared_ptr<prometheus::Registry> registry, PrometheusOptions options = {});
    ~PrometheusObserver() override;

    void acquired(const LockEvent& event, std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override;
    void contended(const LockEvent& event, std::optional<std::chrono::milliseconds> left,
                   std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override;
    void renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept override;
    void renewalFailed(const LockEvent& event, std::error_code error) noexcept override;
    void atRisk(const LockEvent& event, std::chrono::nanoseconds validFor, LossReason reason) noexcept override;
    void lost(const LockEvent& event, LossReason reason) noexcept override;
    void released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept override;
    void unconfirmed(const LockEvent& event) noexcept override;
    void heldTooLong(const LockEvent& event, std::chrono::nanoseconds held) noexcept override;
    void keyWithoutTtl(const LockEvent& event) noexcept override;
    void pushMissed(const LockEvent& event) noexcept override;
    void subscribeRefused(const LockEvent& event) noexcept override;
    void connected(std::string_view purpose) noexcept override;
    void disconnected(std::string_view purpose, std::error_code error, std::string_view why) noexcept override;

private:
    class Metrics;

    std::unique_ptr<Metrics> metrics_;
};

} // namespace redislock
