/// @file
/// Growing pauses between tries.
#pragma once

#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>

namespace redislock::detail {

/// The pause after a waiter's n-th request if nothing wakes it: as a SpinLock's, 1 ms to 128 ms, less up to a half.
inline std::chrono::nanoseconds pollPause(std::uint32_t attempt, Random& random) noexcept
{
    const std::chrono::nanoseconds pause = std::chrono::milliseconds(1) * (1 << std::min(attempt - 1, 7U));
    return pause - std::chrono::nanoseconds(
                       static_cast<std::int64_t>(random.unit() * 0.5 * static_cast<double>(pause.count())));
}

/// Pauses that double from 50 ms to 1 s, each with ± 20 % jitter, so that clients that failed together do not come back
/// together.
class Backoff {
public:
    static constexpr std::chrono::milliseconds first{50};
    static constexpr std::chrono::milliseconds cap{1000};

    /// The next pause.
    std::chrono::nanoseconds next(Random& random) noexcept
    {
        const std::chrono::milliseconds pause = current_;
        current_ = std::min(current_ * 2, Pause(cap));
        return std::chrono::duration_cast<std::chrono::nanoseconds>(pause * random.around(0.2));
    }

    /// A try succeeded: starts with small pauses again.
    void reset() noexcept { current_ = Pause(first); }

private:
    using Pause = std::chrono::duration<std::int32_t, std::milli>; // small: each hold has one
    Pause current_{first};
};

} // namespace redislock::detail
