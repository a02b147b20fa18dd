/// @file
/// Virtual time.
#pragma once

#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// The true time of a simulated world, since its beginning. Redis' clock shows it; clients have clocks of their own.
using VirtualTime = std::chrono::nanoseconds;
using Task = std::function<void()>;

/// All future events, in order of time; events of the same time happen in the order in which they were scheduled.
class Scheduler {
public:
    [[nodiscard]] VirtualTime now() const noexcept { return now_; }

    void at(VirtualTime when, Task task)
    {
        heap_.push_back({std::max(when, now_), ++last_, std::move(task)});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    /// Runs the next event. @return false when that event is later than `end`; the time is then `end`.
    bool step(VirtualTime end)
    {
        if (heap_.empty() || heap_.front().when > end) {
            now_ = end;
            return false;
        }
        std::pop_heap(heap_.begin(), heap_.end(), later);
        auto entry = std::move(heap_.back());
        heap_.pop_back();
        now_ = entry.when;
        entry.task();
        return true;
    }

private:
    struct Entry {
        VirtualTime when;
        std::uint64_t order;
        Task task;
    };
    static bool later(const Entry& a, const Entry& b) noexcept
    {
        return a.when != b.when ? a.when > b.when : a.order > b.order;
    }

    std::vector<Entry> heap_;
    VirtualTime now_{0};
    std::uint64_t last_ = 0;
};

/// A machine's clock: it began at another value and runs a little faster or slower than true time.
class DriftingClock {
public:
    static constexpr std::int64_t perUnit = 10'000; ///< the unit of `drift`
    static constexpr std::int64_t mostDrift = 100;  ///< 1 %, as the library allows

    /// @param drift ten-thousandths, at most `mostDrift` either way.
    DriftingClock(VirtualTime offset, std::int64_t drift) noexcept : offset_(offset.count()), drift_(drift) {}

    [[nodiscard]] TimePoint read(VirtualTime now) const noexcept
    {
        return TimePoint(TimePoint::duration(offset_ + now.count() + now.count() / perUnit * drift_));
    }

    /// The true time at which the clock shows at least this, less than a microsecond late.
    [[nodiscard]] VirtualTime when(TimePoint local) const noexcept
    {
        const auto elapsed = std::max<std::int64_t>(local.time_since_epoch().count() - offset_, 0);
        const auto unit = perUnit + drift_;
        return VirtualTime(elapsed / unit * perUnit + elapsed % unit);
    }

private:
    std::int64_t offset_;
    std::int64_t drift_;
};

} // namespace redislock::simulation
