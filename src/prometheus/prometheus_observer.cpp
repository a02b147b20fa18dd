#include "redislock/prometheus_observer.hpp"

#include "families.hpp"
#include "options.hpp"
#include "redislock/error.hpp"
#include "series.hpp"
#include "values/printable.hpp"

#include <array>
#include <mutex>
#include <utility>

namespace redislock {

namespace {

constexpr auto other = "other";
constexpr auto kinds = static_cast<std::size_t>(ObjectKind::redLock) + 1;

double seconds(std::chrono::nanoseconds time)
{
    return std::chrono::duration<double>(time).count();
}

/// The value of the label `cause`: one of few, whatever codes the system has.
std::string_view causeOf(const std::error_code& code)
{
    if (code.category() == causeCategory()) {
        return toString(static_cast<Cause>(code.value()));
    }
    return code.category() == errorCategory() ? toString(static_cast<Errc>(code.value())) : other;
}

/// Runs code that counts an event. Without memory the event is not counted: there is nobody to tell.
template <class Count>
void count(Count what) noexcept
{
    try {
        what();
    } catch (...) {
        return;
    }
}

} // namespace

/// The metrics, and the series of each label and kind of object.
class PrometheusObserver::Metrics {
public:
    Metrics(std::shared_ptr<prometheus::Registry> registry, PrometheusOptions options)
        : registry_(std::move(registry)),
          options_(std::move(options)),
          labels_(detail::labelsOf(options_)),
          buckets_(detail::bucketsOf(options_)),
          families_(*registry_)
    {
    }

    /// The series of an event's object, made at the first event of its kind.
    detail::Series& of(const LockEvent& event)
    {
        const std::string label = lockLabel(event.name);
        const auto kind = static_cast<std::size_t>(event.kind);
        const std::lock_guard lock(mutex_);
        const auto entry = entryOf(label);
        auto& series = entry->second[kind < kinds ? kind : kinds];
        if (!series) {
            auto labels = detail::with(labels_, "kind", toString(event.kind));
            if (options_.lockLabel) {
                labels.emplace("lock", entry->first);
            }
            series = std::make_unique<detail::Series>(families_, labels, buckets_);
        }
        return *series;
    }

    void connected(std::string_view purpose) { families_.connected.Add(connection(purpose)).Increment(); }
    void disconnected(std::string_view purpose, const std::error_code& error)
    {
        families_.disconnected.Add(detail::with(connection(purpose), "cause", causeOf(error))).Increment();
    }
    void renewalFailed(const LockEvent& event, const std::error_code& error)
    {
        families_.renewalFailures.Add(detail::with(of(event).labels, "cause", causeOf(error))).Increment();
    }

private:
    /// The series for one value of the label `lock`; the last is for kinds that have no name.
    using Kinds = std::array<std::unique_ptr<detail::Series>, kinds + 1>;
    using Locks = std::map<std::string, Kinds>;

    [[nodiscard]] prometheus::Labels connection(std::string_view purpose) const
    {
        return detail::with(labels_, "purpose", purpose);
    }

    [[nodiscard]] std::string lockLabel(std::string_view name) const
    try {
        return options_.lockLabel ? detail::printable(options_.lockLabel(name)) : std::string();
    } catch (...) { // thrown by the user's function
        return other;
    }

    Locks::iterator entryOf(const std::string& label)
    {
        const auto found = locks_.find(label);
        if (found != locks_.end()) {
            return found;
        }
        return locks_.try_emplace(locks_.size() < options_.maxLockLabels ? label : other).first;
    }

    const std::shared_ptr<prometheus::Registry> registry_;
    const PrometheusOptions options_;
    const prometheus::Labels labels_;
    const detail::TimeBuckets buckets_;
    detail::Families families_;
    std::mutex mutex_;
    Locks locks_; ///< guarded by mutex_
};

PrometheusObserver::PrometheusObserver(std::shared_ptr<prometheus::Registry> registry, PrometheusOptions options)
{
    if (registry == nullptr) {
        throw LockError(Errc::invalidArgument, "PrometheusObserver needs a registry, but got a null pointer");
    }
    metrics_ = std::make_unique<Metrics>(std::move(registry), std::move(options));
}

PrometheusObserver::~PrometheusObserver() = default;

void PrometheusObserver::acquired(const LockEvent& event, std::chrono::nanoseconds waited,
                                  std::uint32_t attempts) noexcept
{
    count([&] {
        auto& series = metrics_->of(event);
        series.acquired.Increment();
        series.waitedForGrant.Observe(seconds(waited));
        series.attemptsForGrant.Observe(attempts);
    });
}

void PrometheusObserver::contended(const LockEvent& event, std::optional<std::chrono::milliseconds>,
                                   std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept
{
    count([&] {
        auto& series = metrics_->of(event);
        series.contended.Increment();
        series.waitedInVain.Observe(seconds(waited));
        series.attemptsInVain.Observe(attempts);
    });
}

void PrometheusObserver::renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept
{
    count([&] {
        auto& series = metrics_->of(event);
        series.renewed.Increment();
        series.renewal.Observe(seconds(took));
    });
}

void PrometheusObserver::renewalFailed(const LockEvent& event, std::error_code error) noexcept
{
    count([&] { metrics_->renewalFailed(event, error); });
}

void PrometheusObserver::atRisk(const LockEvent& event, std::chrono::nanoseconds, LossReason reason) noexcept
{
    count([&] { metrics_->of(event).atRisk[reason].Increment(); });
}

void PrometheusObserver::lost(const LockEvent& event, LossReason reason) noexcept
{
    count([&] { metrics_->of(event).lost[reason].Increment(); });
}

void PrometheusObserver::released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept
{
    count([&] {
        auto& series = metrics_->of(event);
        series.released[how].Increment();
        if (held > std::chrono::nanoseconds::zero()) { // otherwise it is not known
            series.hold.Observe(seconds(held));
        }
    });
}

void PrometheusObserver::unconfirmed(const LockEvent& event) noexcept
{
    count([&] { metrics_->of(event).unconfirmed.Increment(); });
}

void PrometheusObserver::heldTooLong(const LockEvent& event, std::chrono::nanoseconds) noexcept
{
    count([&] { metrics_->of(event).heldTooLong.Increment(); });
}

void PrometheusObserver::keyWithoutTtl(const LockEvent& event) noexcept
{
    count([&] { metrics_->of(event).keysWithoutTtl.Increment(); });
}

void PrometheusObserver::pushMissed(const LockEvent& event) noexcept
{
    count([&] { metrics_->of(event).pushesMissed.Increment(); });
}

void PrometheusObserver::subscribeRefused(const LockEvent& event) noexcept
{
    count([&] { metrics_->of(event).subscribesRefused.Increment(); });
}

void PrometheusObserver::connected(std::string_view purpose) noexcept
{
    count([&] { metrics_->connected(purpose); });
}

void PrometheusObserver::disconnected(std::string_view purpose, std::error_code error, std::string_view) noexcept
{
    count([&] { metrics_->disconnected(purpose, error); });
}

} // namespace redislock
