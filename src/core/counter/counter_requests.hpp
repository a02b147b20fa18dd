/// @file
/// The requests of semaphores and latches.
#pragma once

#include "core/counter/counter.hpp"
#include "redislock/lease_time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redislock::detail {

inline constexpr std::int64_t maxCount = 2147483647;
inline constexpr std::size_t mostTaken = 8; ///< records of other requests that one request deletes

/// The number in a reply; an error where it is not in the range.
std::int64_t numberOf(const Reply& reply, std::int64_t least, std::int64_t most, std::error_code& ec) noexcept;

/// The meaning of an answer that is a number of the range.
CounterRequest<std::int64_t>::Meaning numberIn(std::int64_t least, std::int64_t most);
/// The meaning of an answer 0 or 1.
bool flagOf(const Call& call, bool repeated, std::error_code& ec) noexcept;
/// The meaning of an answer that is always 1.
bool doneOf(const Call& call, bool repeated, std::error_code& ec) noexcept;

/// Whether so many may be asked for.
constexpr bool isCount(std::int64_t count, std::int64_t least = 1) noexcept
{
    return count >= least && count <= maxCount;
}

/// Makes the counter, if it does not exist. @param live how long; zero: for ever.
CounterRequest<bool> trySetRequest(NamedCounter& counter, std::int64_t value, std::chrono::milliseconds live,
                                   std::int64_t message);
CounterRequest<std::int64_t> getRequest(NamedCounter& counter);
/// Deletes a semaphore, or a latch and tells its waiters.
CounterRequest<bool> deleteRequest(NamedCounter& counter);

/// Where permits are added.
enum class AddTo { anyCounter, existingCounter };
CounterRequest<bool> addRequest(NamedCounter& counter, std::int64_t difference, AddTo where);
/// Gives permits back in the background, unless the semaphore was deleted.
void putBack(NamedCounter& counter, std::int64_t permits) noexcept;

/// Waits for so many permits. Refused for zero, and for an impossible number.
CounterOrder permitsOrder(NamedCounter& counter, std::int64_t permits, Wait wait);
CounterRequest<bool> releaseRequest(NamedCounter& counter, std::int64_t permits, AddTo where);
/// Takes all free permits.
CounterRequest<std::int64_t> drainRequest(NamedCounter& counter);
/// Makes a semaphore that lives for that time.
CounterRequest<bool> trySetForRequest(NamedCounter& counter, std::int64_t permits, std::chrono::milliseconds live);

/// Waits until the latch is open.
CounterOrder waitOrder(const NamedCounter& latch, Wait limit);
CounterRequest<bool> newCountRequest(NamedCounter& latch, std::int64_t count);
CounterRequest<std::int64_t> countDownRequest(NamedCounter& latch);

} // namespace redislock::detail
