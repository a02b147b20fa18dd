/// @file
/// When a stop token is stopped.
#pragma once

#include "redislock/requirements.hpp"

#include <string_view>

namespace redislock {

/// What stops work under a lock.
enum class StopAt {
    lost,   ///< the lock is not, or no longer certainly, held
    atRisk, ///< earlier: a renewal should have come, or a fixed lease is nearly over; there is time to finish
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(StopAt when) noexcept
{
    switch (when) {
    case StopAt::lost:
        return "lost";
    case StopAt::atRisk:
        return "atRisk";
    }
    return "unknown";
}

} // namespace redislock
