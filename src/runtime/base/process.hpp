/// @file
/// Which process and thread this is.
#pragma once

#include <cstdint>

namespace redislock::detail {

/// A number for the calling thread, never used again for another (the system's thread ids are).
std::uint64_t currentThread() noexcept;

/// How often this process is a fork of the one that first asked. A different number: everything before belongs to the
/// parent.
std::uint32_t forkGeneration() noexcept;

} // namespace redislock::detail
