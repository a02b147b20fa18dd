/// @file
/// The requests of latches.
#pragma once

#include "core/counter/counter.hpp"
#include "redislock/lease_time.hpp"

#include <cstdint>

namespace redislock::detail {

/// Waits until the latch is open.
CounterOrder waitOrder(const NamedCounter& latch, Wait limit);
CounterRequest<bool> newCountRequest(NamedCounter& latch, std::int64_t count);
CounterRequest<std::int64_t> countDownRequest(NamedCounter& latch);

} // namespace redislock::detail
