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
/// A wait that is over ends the attempts whatever the policy says, and a pause is cut to what is left of it.
/// **Thread safety**: safe, if a function of the user's own is.
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
    /// The pause after the n-th attempt (from 1 on) that was refused; nothing: give up.
    ///
    /// It is called under no lock of the library: for a blocking call on the thread that calls; for an asynchronous one
    /// on the client's own thread (of one of its members', for a group), where it must not block, and calls that would
    /// wait are `wouldDeadlock`. What it throws ends that call and nothing else: see LockCalls::tryLock().
    using Function = std::function<std::optional<Pause>(std::uint32_t attempt, Random& random)>;

    /// One attempt.
    static RetryPolicy none();

    /// The same pause each time: sleep-only. @param pause zero: asks again as soon as the answer is there.
    static RetryPolicy fixed(Pause pause);

    /// Pauses that double from @p first to @p most, each between half and all of that, so that waiters that collided
    /// once do not collide again ("equal jitter", Brooker 2015). @param first at least 1 µs. @param most at least
    /// @p first.
    static RetryPolicy exponential(Pause first, Pause most);

    /// Asks @p spins times without a pause, then after each @p pause.
    static RetryPolicy spinThenSleep(std::uint32_t spins, Pause pause);

    /// Asks without any pause: spin-only. Keeps a processor and the connection busy.
    static RetryPolicy spin();

    /// A policy of the user's own. @param function not empty.
    explicit RetryPolicy(Function function);

    /// The pause after an attempt. @param attempt from 1 on. @return nothing: no further attempt.
    [[nodiscard]] std::optional<Pause> pauseAfter(std::uint32_t attempt, Random& random) const;

private:
    Function function_;
};

} // namespace redislock
