/// @file
/// Growing pauses between tries.
#pragma once

#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>

namespace redislock::detail {

/// Pauses that double from 50 ms to 1 s, each with ± 20 % jitter so that clients that failed together do not return together.
class Backoff {
public:
    static constexpr std::chrono::milliseconds first{50};
    static constexpr std::chrono::milliseconds cap{1000};

    /// The next pause.
    std::chrono::nanoseconds next(Random& random) noexcept
    {
        const auto pause = current_;
        current_ = std::min(current_ * 2, cap);
        return std::chrono::duration_cast<std::chrono::nanoseconds>(pause * random.around(0.2));
    }

    /// Something worked: start small again.
    void reset() noexcept { current_ = first; }

private:
    std::chrono::milliseconds current_ = first;
};

} // namespace redislock::detail
