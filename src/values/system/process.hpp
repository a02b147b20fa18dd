/// @file
/// Which process and thread this is.
#pragma once

#include "redislock/config.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace redislock::detail {

/// A number for the calling thread, never used again for another (the system's thread ids are).
std::uint64_t currentThread() noexcept;

/// How many forks lie between this process and the one that called this first. If the number has changed, all that was
/// made before belongs to the parent.
std::uint32_t forkGeneration() noexcept;

/// The name of this machine, or container; empty if the system does not tell it.
std::string hostName();

/// The name of a client's connections; empty: they have none. @param clientId the client's UUID
std::string connectionNameOf(const Config& config, std::string_view clientId);

} // namespace redislock::detail
