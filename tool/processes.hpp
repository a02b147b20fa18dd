/// @file
/// The processes of this machine.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>

namespace redislock::tool {

/// The parent of each process, except for processes that have ended but were not waited for. A process that ends while
/// this reads about it may be missing.
/// @param proc the folder /proc
std::map<pid_t, pid_t> parentsIn(const std::filesystem::path& proc);

} // namespace redislock::tool
