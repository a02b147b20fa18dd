/// @file
/// When a waiter that is not told asks again.
#pragma once

#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace redislock {

/// The pauses between the attempts of a waiter that asks for itself instead of waiting to be told.
///
/// A wait that is over ends the attempts whatever the policy says, and a pause is cut to what is left of it.
/// **Thread safety**: safe, if a function of the user's own is.
class RetryPolicy {
public:
    using Pause = std::chrono::nanoseconds;
    /// The pause after the n-th attempt (from 1 on); nothing: give up. Called for each attempt, by whatever thread drives it;
    /// must not block or throw.
    using Function = std::function<std::optional<Pause>(std::uint32_t attempt, Random& random)>;

    /// One attempt.
    static RetryPolicy none()
    {
        return RetryPolicy([](std::uint32_t, Random&) { return std::optional<Pause>(); });
    }

    /// The same pause each time: sleep-only. @param pause negative: as zero, which asks again as soon as the answer is there.
    static RetryPolicy fixed(Pause pause)
    {
        pause = std::max(pause, Pause::zero());
        return RetryPolicy([pause](std::uint32_t, Random&) { return std::optional(pause); });
    }

    /// Pauses that double from @p first to @p most, each between half and all of that, so that waiters that met once do not
    /// meet again ("equal jitter", Brooker 2015). @param first at least 1 µs. @param most at least @p first.
    static RetryPolicy exponential(Pause first, Pause most)
    {
        first = std::max<Pause>(first, std::chrono::microseconds(1));
        most = std::max(first, most);
        return RetryPolicy([first, most](std::uint32_t attempt, Random& random) {
            Pause pause = first;
            for (std::uint32_t i = 1; i < attempt && pause < most; ++i) {
                pause = pause > most / 2 ? most : 2 * pause;
            }
            return std::optional(std::chrono::duration_cast<Pause>(pause * (0.5 + 0.5 * random.unit())));
        });
    }

    /// Asks @p spins times without a pause, then after each @p pause. @param pause as of fixed().
    static RetryPolicy spinThenSleep(std::uint32_t spins, Pause pause)
    {
        pause = std::max(pause, Pause::zero());
        return RetryPolicy([spins, pause](std::uint32_t attempt, Random&) {
            return std::optional(attempt <= spins ? Pause::zero() : pause);
        });
    }

    /// Asks without any pause: spin-only. Keeps a processor and the connection busy.
    static RetryPolicy spin() { return fixed(Pause::zero()); }

    /// The user's own. @param function not empty.
    explicit RetryPolicy(Function function) : function_(std::move(function)) {}

    /// The pause after an attempt. @param attempt from 1 on. @return nothing: no further attempt.
    [[nodiscard]] std::optional<Pause> pauseAfter(std::uint32_t attempt, Random& random) const
    {
        return function_ ? function_(attempt, random) : std::nullopt;
    }

private:
    Function function_;
};

} // namespace redislock
