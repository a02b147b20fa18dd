/// @file
/// What this process uses of the system's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

namespace redislock::test {

inline std::int64_t entriesOf(const std::filesystem::path& folder)
{
    const std::filesystem::directory_iterator entries(folder);
    return std::distance(begin(entries), end(entries));
}

/// One more than there are otherwise: that which counts them.
inline std::int64_t openFiles()
{
    return entriesOf("/proc/self/fd");
}

/// What the open files are, for who has to find out why there are so many.
inline std::string listOfOpenFiles()
{
    std::string list;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        list += (list.empty() ? "" : ", ") + std::filesystem::read_symlink(entry.path(), gone).string();
    }
    return list;
}

inline std::int64_t runningThreads()
{
    return entriesOf("/proc/self/task");
}

} // namespace redislock::test
