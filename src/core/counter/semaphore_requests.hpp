/// @file
/// The requests of semaphores.
#pragma once

#include "core/counter/counter.hpp"
#include "core/counter/counter_requests.hpp"
#include "redislock/lease_time.hpp"

#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// Waits for so many permits. Refused for zero, and for an impossible number.
CounterOrder permitsOrder(NamedCounter& counter, std::int64_t permits, Wait wait);
CounterRequest<bool> releaseRequest(NamedCounter& counter, std::int64_t permits, AddTo where);
/// Takes all free permits.
CounterRequest<std::int64_t> drainRequest(NamedCounter& counter);
/// Makes a semaphore that lives for that time.
CounterRequest<bool> trySetForRequest(NamedCounter& counter, std::int64_t permits, std::chrono::milliseconds live);

} // namespace redislock::detail
