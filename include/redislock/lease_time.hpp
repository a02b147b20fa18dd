/// @file
/// How long a lock is leased and how long a caller waits for it.
#pragma once

#include <chrono>
#include <concepts>
#include <limits>
#include <type_traits>

namespace redislock {

namespace detail {

enum class Rounding { down, up };

/// Whole milliseconds, saturating at the ends of the type instead of overflowing; NaN becomes the minimum.
template <Rounding rounding, class Rep, class Period>
constexpr std::chrono::milliseconds toMilliseconds(std::chrono::duration<Rep, Period> d) noexcept
{
    using std::chrono::milliseconds;
    // In the duration's own precision where that is a floating one, so that 0.3 s are 300 ms.
    using Float = std::conditional_t<std::floating_point<Rep>, Rep, long double>;
    constexpr auto limit = static_cast<Float>(std::numeric_limits<milliseconds::rep>::max() / 2);
    const Float ms = static_cast<Float>(d.count()) * (Float{1000} * Period::num / Period::den);
    if (!(ms > -limit)) {
        return milliseconds::min();
    }
    if (ms >= limit) {
        return milliseconds::max();
    }
    const auto whole = static_cast<milliseconds::rep>(ms); // towards zero
    const auto rest = ms - static_cast<Float>(whole);
    if constexpr (rounding == Rounding::up) {
        return milliseconds(whole + (rest > 0 ? 1 : 0));
    } else {
        return milliseconds(whole - (rest < 0 ? 1 : 0));
    }
}

} // namespace detail

/// The shortest lease that can be asked for: 10 ms.
inline constexpr std::chrono::milliseconds minLease{10};

/// The longest lease that can be asked for: 30 days.
inline constexpr std::chrono::milliseconds maxLease = std::chrono::hours(24 * 30);

/// How long Redis keeps a lock for its holder: a fixed time, or `keepRenewing`.
///
/// Any `std::chrono` duration converts to a fixed lease, rounded **down** to whole milliseconds. A fixed lease is valid
/// between `minLease` and `maxLease`; whatever is outside (zero, negative, `duration::max()`) is kept as it is and
/// refused with `Errc::invalidArgument` by the call that gets it, before any I/O.
class Lease {
public:
    /// A fixed lease. @param d 10 ms … 30 days; rounded down to whole milliseconds.
    template <class Rep, class Period>
    constexpr Lease(std::chrono::duration<Rep, Period> d) noexcept // NOLINT: implicit on purpose
        : fixed_(detail::toMilliseconds<detail::Rounding::down>(d))
    {
    }

    /// A lease of the watchdog's timeout (`Config::watchdogTimeout`), renewed every third of it until the lock is ended.
    static constexpr Lease renewed() noexcept { return Lease(Renewed{}); }

    /// Whether the watchdog renews this lease.
    [[nodiscard]] constexpr bool isRenewed() const noexcept { return fixed_ == renewedMark; }

    /// The fixed time; zero for a renewed lease.
    [[nodiscard]] constexpr std::chrono::milliseconds fixed() const noexcept
    {
        return isRenewed() ? std::chrono::milliseconds::zero() : fixed_;
    }

    /// Whether the lease may be asked for.
    [[nodiscard]] constexpr bool isValid() const noexcept
    {
        return isRenewed() || (fixed_ >= minLease && fixed_ <= maxLease);
    }

    friend constexpr bool operator==(const Lease&, const Lease&) noexcept = default;

private:
    /// No duration converts to it.
    static constexpr std::chrono::milliseconds renewedMark{std::chrono::milliseconds::min().count() + 1};
    struct Renewed {};
    constexpr explicit Lease(Renewed) noexcept : fixed_(renewedMark) {}

    std::chrono::milliseconds fixed_;
};

/// The default lease: the watchdog renews it until the lock is ended.
inline constexpr Lease keepRenewing = Lease::renewed();

/// How long a caller is ready to wait for a lock.
///
/// Any `std::chrono` duration converts, rounded **up** to whole milliseconds. Zero and negative durations mean one
/// attempt; `duration::max()`, and whatever is too long for the clock, means `waitForever`.
class Wait {
public:
    /// @param d how long to wait; zero or negative: one attempt.
    template <class Rep, class Period>
    constexpr Wait(std::chrono::duration<Rep, Period> d) noexcept // NOLINT: implicit on purpose
        : span_(detail::toMilliseconds<detail::Rounding::up>(d))
    {
        if (span_ < std::chrono::milliseconds::zero()) {
            span_ = std::chrono::milliseconds::zero();
        }
    }

    /// The time to wait; `milliseconds::max()` for ever.
    [[nodiscard]] constexpr std::chrono::milliseconds span() const noexcept { return span_; }

    /// Whether this is one attempt without waiting.
    [[nodiscard]] constexpr bool isOneAttempt() const noexcept { return span_ == std::chrono::milliseconds::zero(); }

    friend constexpr bool operator==(const Wait&, const Wait&) noexcept = default;

private:
    std::chrono::milliseconds span_;
};

/// Wait until the lock is granted, however long that takes.
inline constexpr Wait waitForever{std::chrono::milliseconds::max()};

/// Ask once and do not wait.
inline constexpr Wait oneAttempt{std::chrono::milliseconds::zero()};

} // namespace redislock
