/// @file
/// Steps that must not fail for lack of memory.
#pragma once

#include <new>

namespace redislock::detail {

/// Lets other threads free memory: after the first failure not at all, later 1 ms. In signal.cpp.
/// @return false when about 100 ms have been waited.
bool awaitMemory(int failures) noexcept;

/// Calls @p attempt again while there is no memory for it, for about 100 ms. An operation that has begun goes on this
/// way: left half-done, it would leave a lock behind, or a caller waiting. A failed attempt must have changed nothing.
template <class Attempt>
auto patiently(Attempt&& attempt)
{
    for (int failures = 1;; ++failures) {
        try {
            return attempt();
        } catch (const std::bad_alloc&) {
            if (!awaitMemory(failures)) {
                throw;
            }
        }
    }
}

} // namespace redislock::detail
