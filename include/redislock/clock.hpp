/// @file
/// The one clock of the library.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <ratio>

namespace redislock {

/// The clock that decides whether a lock is still held: Linux' `CLOCK_BOOTTIME`.
///
/// It is steady (never set back, untouched by `date -s` and NTP steps) and, unlike `std::chrono::steady_clock`, goes on
/// while the machine is suspended. A lease that ran out during a suspend is therefore seen as over the moment the
/// machine wakes up. A virtual machine that is paused from outside stops this clock too; nothing inside can see that.
///
/// **Thread safety**: all functions may be called from any thread. **Cost**: one vDSO call, no allocation.
struct BootClock {
    using rep = std::chrono::nanoseconds::rep;
    using period = std::chrono::nanoseconds::period;
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;

    /// The time since boot, suspends included, in nanoseconds.
    static time_point now() noexcept
    {
        timespec t{};
        ::clock_gettime(CLOCK_BOOTTIME, &t);
        return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
    }
};

/// A moment on the BootClock. `TimePoint::max()` means "never".
using TimePoint = BootClock::time_point;

/// `from + span`, or `TimePoint::max()` where the sum would overflow; a negative span gives `from`.
template <class Rep, class Period>
constexpr TimePoint saturatingAdd(TimePoint from, std::chrono::duration<Rep, Period> span) noexcept
{
    if (!(span > span.zero())) {
        return from;
    }
    using Nanoseconds = std::chrono::duration<long double, std::nano>;
    if (Nanoseconds(span) >= Nanoseconds(TimePoint::max() - std::max(from, TimePoint{}))) {
        return TimePoint::max();
    }
    return from + std::chrono::duration_cast<std::chrono::nanoseconds>(span);
}

} // namespace redislock
