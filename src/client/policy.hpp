/// @file
/// Asks users' policies for a pause.
#pragma once

#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <variant>

namespace redislock::detail {

/// What a policy says, as an event for the machine that asks; an exception of the policy ends the call. Expects no
/// mutex to be held. @param thrown receives that exception; null: it is dropped.
inline std::variant<Pause, Cancelled> pauseOf(const RetryPolicy& policy, std::uint32_t attempt, Random& random,
                                              std::exception_ptr* thrown = nullptr)
{
    try {
        const auto pause = policy.pauseAfter(attempt, random);
        return Pause{BootClock::now(), pause ? std::optional(pause->span()) : std::nullopt};
    } catch (...) {
        if (thrown != nullptr) {
            *thrown = std::current_exception();
        }
        return Cancelled{BootClock::now(), Errc::invalidArgument};
    }
}

} // namespace redislock::detail
