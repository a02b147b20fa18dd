/// @file
/// Who holds a lock.
#pragma once

#include "redislock/requirements.hpp"

#include <cstdint>

namespace redislock {

/// The number of an outermost hold: a counter of the process, incremented for each outermost hold and shared by the
/// holds nested in it. In Redis the holder is `<client id>:<holder id>`, both parts as text, so a late or duplicated
/// release of hold 17 can never touch hold 18 of the same thread.
enum class HolderId : std::uint64_t {};

/// A number that grows with each hold of a FencedLock: microseconds since 1970, or more. A resource that remembers the
/// greatest token it has seen, and refuses smaller ones, is safe from holders that do not yet know that they lost the
/// lock.
enum class FencingToken : std::uint64_t {};

} // namespace redislock
