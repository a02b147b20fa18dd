/// @file
/// When a waiter that polls asks again.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/export.hpp"
#include "redislock/random.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace redislock {

/// The pauses between the attempts of a waiter that polls instead of waiting for a notification.
///
/// The attempts end with the caller's wait, whatever the policy says, and a pause is cut to what is left of the wait.
/// **Thread safety**: safe, if the user's function is.
class REDISLOCK_EXPORT RetryPolicy {
public:
    /// A pause: any `std::chrono` duration converts, rounded **up** to whole nanoseconds. A negative duration means no
    /// pause, and one that is too long for the clock (292 years) means the longest that the clock can count.
    class Pause {
    public:
        /// Converts any duration.
        template <class Rep, class Period>
        constexpr Pause(std::chrono::duration<Rep, Period> d) noexcept // NOLINT: implicit on purpose
            : span_(detail::saturatingCast<std::chrono::nanoseconds, detail::Rounding::up>(d))
        {
            if (span_ < std::chrono::nanoseconds::zero()) {
                span_ = std::chrono::nanoseconds::zero();
            }
        }

        /// How long it is; never negative.
        [[nodiscard]] constexpr std::chrono::nanoseconds span() const noexcept { return span_; }

        friend constexpr bool operator==(const Pause&, const Pause&) noexcept = default;

    private:
        std::chrono::nanoseconds span_;
    };
    /// The pause after the n-th attempt (from 1 on) that was refused; empty: give up.
    ///
    /// It is called without any mutex of the library: for a blocking call on the caller's thread; for an asynchronous
    /// one on the client's own thread (for a group, on that of a member's client), where it must not block, and where
    /// calls that would wait fail with `wouldDeadlock`. If it throws, only that call ends: see LockCalls::tryLock().
    using Function = std::function<std::optional<Pause>(std::uint32_t attempt, Random& random)>;

    /// One attempt.
    static RetryPolicy none();

    /// The same pause each time: sleep-only. @param pause zero: asks again as soon as the reply has come.
    static RetryPolicy fixed(Pause pause);

    /// Pauses that double from @p first to @p most, each between half and all of that, so that waiters that collided
    /// once do not collide again ("equal jitter", Brooker 2015). @param first at least 1 µs. @param most at least
    /// @p first.
    static RetryPolicy exponential(Pause first, Pause most);

    /// Asks @p spins times without a pause, then after each @p pause.
    static RetryPolicy spinThenSleep(std::uint32_t spins, Pause pause);

    /// Asks without any pause: spin-only. Keeps a processor and the connection busy.
    static RetryPolicy spin();

    /// The user's own policy. @param function not empty.
    explicit RetryPolicy(Function function);

    /// The pause after an attempt. @param attempt from 1 on. @return empty: no further attempt.
    [[nodiscard]] std::optional<Pause> pauseAfter(std::uint32_t attempt, Random& random) const;

private:
    Function function_;
};

} // namespace redislock
