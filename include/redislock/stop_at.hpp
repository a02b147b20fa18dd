/// @file
/// When a stop token is stopped.
#pragma once

#include "redislock/requirements.hpp"

#include <string_view>

namespace redislock {

/// Which event stops a stop token.
enum class StopAt {
    lost,   ///< the lock is no longer held, or no longer certain to be
    atRisk, ///< earlier: a renewal is overdue, or a fixed lease is nearly over; there is still time to finish
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
