/// @file
/// Who holds a lock.
#pragma once

#include "redislock/requirements.hpp"

#include <cstdint>

namespace redislock {

/// An outermost hold: a counter of the process, taken anew for each outermost hold and shared by the holds nested in
/// it. In Redis the holder is `<client id>:<holder id>`, both parts as text: a late or doubled release of hold 17 can
/// never touch hold 18 of the same thread.
enum class HolderId : std::uint64_t {};

/// A number that is greater for each later hold of a FencedLock, in microseconds since 1970 or above. A resource that
/// remembers the greatest it has seen, and refuses smaller ones, is safe from holders that do not know yet that they
/// lost the lock.
enum class FencingToken : std::uint64_t {};

} // namespace redislock
