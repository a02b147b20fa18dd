#include "redislock/retry_policy.hpp"

#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace redislock {

RetryPolicy::RetryPolicy(Function function) : function_(std::move(function)) {}

RetryPolicy RetryPolicy::none()
{
    return RetryPolicy([](std::uint32_t, Random&) { return std::optional<Pause>(); });
}

RetryPolicy RetryPolicy::fixed(Pause pause)
{
    return RetryPolicy([pause](std::uint32_t, Random&) { return std::optional(pause); });
}

RetryPolicy RetryPolicy::exponential(Pause first, Pause most)
{
    const auto least = std::max<std::chrono::nanoseconds>(first.span(), std::chrono::microseconds(1));
    return RetryPolicy([least, most = std::max(least, most.span())](std::uint32_t attempt, Random& random) {
        auto pause = least;
        for (std::uint32_t i = 1; i < attempt && pause < most; ++i) {
            pause = pause > most / 2 ? most : 2 * pause;
        }
        const auto half = static_cast<std::uint64_t>(pause.count() / 2);
        const auto jitter = std::chrono::nanoseconds(static_cast<std::int64_t>(random.next() % (half + 1)));
        return std::optional<Pause>(pause - jitter);
    });
}

RetryPolicy RetryPolicy::spinThenSleep(std::uint32_t spins, Pause pause)
{
    return RetryPolicy([spins, pause](std::uint32_t attempt, Random&) {
        return std::optional<Pause>(attempt <= spins ? Pause(std::chrono::nanoseconds::zero()) : pause);
    });
}

RetryPolicy RetryPolicy::spin()
{
    return fixed(std::chrono::nanoseconds::zero());
}

std::optional<RetryPolicy::Pause> RetryPolicy::pauseAfter(std::uint32_t attempt, Random& random) const
{
    return function_ ? function_(attempt, random) : std::nullopt;
}

} // namespace redislock
