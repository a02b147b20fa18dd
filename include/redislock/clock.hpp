/// @file
/// The one clock of the library.
#pragma once

#include "redislock/requirements.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <ctime>
#include <limits>
#include <type_traits>

namespace redislock {

namespace detail {

enum class Rounding { down, up };

/// As many whole @p To as @p from is, rounded, and saturating at the ends of the type instead of overflowing; NaN
/// becomes the minimum. Whole numbers are converted exactly.
template <class To, Rounding rounding, class Rep, class Period>
constexpr To saturatingCast(std::chrono::duration<Rep, Period> from) noexcept
{
    using Limits = std::numeric_limits<typename To::rep>;
    static_assert(std::is_same_v<typename To::rep, std::int64_t> && To::period::num == 1);
    if constexpr (std::integral<Rep>) {
        __extension__ using Wide = __int128;
        constexpr Wide factor = static_cast<Wide>(Period::num) * To::period::den;
        if constexpr (factor % Period::den == 0 &&
                      factor / Period::den <= Limits::max()) { // no division, in every call
            typename To::rep many = 0;
            return !__builtin_mul_overflow(from.count(), static_cast<typename To::rep>(factor / Period::den), &many)
                       ? To(many)
                   : from.count() < 0 ? To::min()
                                      : To::max();
        }
        Wide product = 0;
        if (__builtin_mul_overflow(static_cast<Wide>(from.count()), factor, &product)) {
            return from.count() < 0 ? To::min() : To::max(); // whatever Period::den is
        }
        Wide whole = product / Period::den;
        const Wide rest = product % Period::den;
        whole += rounding == Rounding::up && rest > 0 ? 1 : rounding == Rounding::down && rest < 0 ? -1 : 0;
        return whole <= Limits::min()   ? To::min()
               : whole >= Limits::max() ? To::max()
                                        : To(static_cast<typename To::rep>(whole));
    } else {
        // in the duration's own precision, so that 0.3 s are 300 ms
        using Float = std::conditional_t<std::floating_point<Rep>, Rep, long double>;
        constexpr auto limit = static_cast<Float>(0x1.0p63L);
        const Float many = static_cast<Float>(from.count()) * (Float{1} * To::period::den * Period::num / Period::den);
        if (!(many > -limit)) {
            return To::min();
        }
        if (many >= limit) {
            return To::max();
        }
        const auto whole = static_cast<typename To::rep>(many); // towards zero
        const auto rest = many - static_cast<Float>(whole);
        return To(whole + (rounding == Rounding::up && rest > 0 ? 1 : rounding == Rounding::down && rest < 0 ? -1 : 0));
    }
}

} // namespace detail

/// The clock that decides whether a lock is still held: `CLOCK_BOOTTIME` of Linux.
///
/// It is steady (never set back, and not affected by `date -s` and NTP steps) and, unlike `std::chrono::steady_clock`,
/// continues while the machine is suspended. So a lease that ran out during a suspend counts as over the moment the
/// machine wakes up. If a virtual machine is paused from outside, this clock stops too; a program inside cannot notice
/// that.
///
/// **Thread safety**: all functions may be called from any thread. **Cost**: one vDSO call, no allocation.
struct BootClock {
    using rep = std::chrono::nanoseconds::rep;             ///< of a clock's traits
    using period = std::chrono::nanoseconds::period;       ///< of a clock's traits
    using duration = std::chrono::nanoseconds;             ///< of a clock's traits
    using time_point = std::chrono::time_point<BootClock>; ///< of a clock's traits
    static constexpr bool is_steady = true;                ///< of a clock's traits

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
    const auto more = detail::saturatingCast<std::chrono::nanoseconds, detail::Rounding::down>(span);
    if (more <= more.zero()) {
        return from;
    }
    const auto room = from > TimePoint{} ? TimePoint::max() - from : TimePoint::duration::max();
    return more >= room ? TimePoint::max() : from + more;
}

} // namespace redislock
