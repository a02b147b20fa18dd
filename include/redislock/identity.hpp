/// @file
/// Who holds a lock.
#pragma once

#include <cstdint>

namespace redislock {

/// An outermost hold: a counter of the process, taken anew for each outermost hold and shared by the holds nested in it.
/// In Redis the holder is `<client id>:<holder id>`, both parts as text: a late or doubled release of hold 17 can never
/// touch hold 18 of the same thread.
enum class HolderId : std::uint64_t {};

} // namespace redislock
