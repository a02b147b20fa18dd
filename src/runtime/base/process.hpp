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

/// How often this process is a fork of the one that first asked. A different number: everything before belongs to the
/// parent.
std::uint32_t forkGeneration() noexcept;

/// The name of this machine, or container; empty if the system does not tell.
std::string hostName();

/// What the connections of a client are called; empty: they have no name. @param clientId the client's UUID
std::string connectionNameOf(const Config& config, std::string_view clientId);

} // namespace redislock::detail
