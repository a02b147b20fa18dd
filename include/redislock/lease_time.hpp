/// @file
/// How long a lock is leased and how long a caller waits for it.
#pragma once

#include "redislock/clock.hpp"

#include <chrono>

namespace redislock {

/// The shortest lease: 10 ms.
inline constexpr std::chrono::milliseconds minLease{10};

/// The longest lease: 30 days.
inline constexpr std::chrono::milliseconds maxLease = std::chrono::hours(24 * 30);

/// How long Redis keeps a lock for its holder: a fixed time, or `keepRenewing`.
///
/// Any `std::chrono` duration converts to a fixed lease, rounded **down** to whole milliseconds. A fixed lease is valid
/// between `minLease` and `maxLease`; any other value (zero, negative, `duration::max()`) is kept as it is, and the
/// call that receives it fails with `Errc::invalidArgument` before any I/O.
class Lease {
public:
    /// A fixed lease. @param d 10 ms … 30 days; rounded down to whole milliseconds.
    template <class Rep, class Period>
    constexpr Lease(std::chrono::duration<Rep, Period> d) noexcept // NOLINT: implicit on purpose
        : fixed_(detail::saturatingCast<std::chrono::milliseconds, detail::Rounding::down>(d))
    {
        if (fixed_ == renewedMark) {
            fixed_ = std::chrono::milliseconds::min();
        }
    }

    /// A lease of `Config::watchdogTimeout`, renewed after every third of it until the lock is released.
    static constexpr Lease renewed() noexcept { return Lease(Renewed{}); }

    /// Whether the watchdog renews this lease.
    [[nodiscard]] constexpr bool isRenewed() const noexcept { return fixed_ == renewedMark; }

    /// The fixed time; zero for a renewed lease.
    [[nodiscard]] constexpr std::chrono::milliseconds fixed() const noexcept
    {
        return isRenewed() ? std::chrono::milliseconds::zero() : fixed_;
    }

    /// Whether the lease is in its range.
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

/// The default lease: the watchdog renews it until the lock is released.
inline constexpr Lease keepRenewing = Lease::renewed();

/// The lease of a permit of `PermitExpirableSemaphore` that stays taken until it is released. **If its process crashes,
/// the permit stays taken** until somebody releases it by its id or sets the number of permits again.
inline constexpr Lease nonExpiring{std::chrono::milliseconds::max()};

/// How long a caller waits for a lock.
///
/// Any `std::chrono` duration converts, rounded **up** to whole milliseconds. Zero and negative durations mean one
/// attempt; `milliseconds::max()`, and any duration that is too long for the clock (292 years), means `waitForever`.
class Wait {
public:
    /// @param d how long to wait; zero or negative: one attempt.
    template <class Rep, class Period>
    constexpr Wait(std::chrono::duration<Rep, Period> d) noexcept // NOLINT: implicit on purpose
        : span_(detail::saturatingCast<std::chrono::milliseconds, detail::Rounding::up>(d))
    {
        constexpr auto longest = std::chrono::floor<std::chrono::milliseconds>(BootClock::duration::max());
        if (span_ < std::chrono::milliseconds::zero()) {
            span_ = std::chrono::milliseconds::zero();
        } else if (span_ > longest) {
            span_ = std::chrono::milliseconds::max();
        }
    }

    /// Until a moment of any clock, counted from @p now; a moment in the past means one attempt, and one too far away
    /// to count in nanoseconds means `waitForever`.
    template <class Moment, class Now>
    static constexpr Wait until(const Moment& moment, const Now& now) noexcept
    {
        using std::chrono::nanoseconds;
        const auto end = detail::saturatingCast<nanoseconds, detail::Rounding::up>(moment.time_since_epoch());
        const auto begin = detail::saturatingCast<nanoseconds, detail::Rounding::down>(now.time_since_epoch());
        if (end <= begin) {
            return nanoseconds::zero();
        }
        nanoseconds::rep span = 0;
        const bool tooFar = end == nanoseconds::max() || __builtin_sub_overflow(end.count(), begin.count(), &span);
        return tooFar ? nanoseconds::max() : nanoseconds(span);
    }

    /// The time to wait; `milliseconds::max()`: for ever.
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
