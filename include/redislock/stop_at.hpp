/// @file
/// When a stop token is stopped.
#pragma once

#include "redislock/requirements.hpp"

namespace redislock {

/// What stops work under a lock.
enum class StopAt {
    lost,   ///< the lock is not, or no longer certainly, held
    atRisk, ///< earlier: a renewal should have come, or a fixed lease is nearly over; there is time to finish
};

} // namespace redislock
