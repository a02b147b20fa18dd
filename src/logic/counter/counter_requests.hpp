/// @file
/// The requests that several kinds of counter share.
#pragma once

#include "logic/counter/counter.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redislock::detail {

inline constexpr std::int64_t maxCount = 2147483647;
inline constexpr std::size_t mostTaken = 8; ///< records of other requests that one deletes

/// An error where a number of that range is expected, else the number.
std::int64_t numberOf(const Reply& reply, std::int64_t least, std::int64_t most, std::error_code& ec) noexcept;

/// Of a script that answers with a number of the range.
CounterRequest<std::int64_t>::Meaning numberIn(std::int64_t least, std::int64_t most);
/// Of a script that answers 0 or 1.
bool flagOf(const Call& call, bool repeated, std::error_code& ec) noexcept;
/// Of a script that answers 1.
bool doneOf(const Call& call, bool repeated, std::error_code& ec) noexcept;

/// Whether one may be asked for.
constexpr bool isCount(std::int64_t count, std::int64_t least = 1) noexcept
{
    return count >= least && count <= maxCount;
}

/// Makes the counter, if it does not exist. @param live how long; zero: for ever.
CounterRequest<bool> trySetRequest(NamedCounter& counter, std::int64_t value, std::chrono::milliseconds live,
                                   std::int64_t message);
CounterRequest<std::int64_t> getRequest(NamedCounter& counter);
/// Deletes a semaphore, or a latch, whose waiters are told.
CounterRequest<bool> deleteRequest(NamedCounter& counter);

/// What is added, and where.
enum class AddTo { anyCounter, existingCounter };
CounterRequest<bool> addRequest(NamedCounter& counter, std::int64_t difference, AddTo where);
/// Gives permits back in the background, unless the semaphore was deleted.
void putBack(NamedCounter& counter, std::int64_t permits) noexcept;

} // namespace redislock::detail
