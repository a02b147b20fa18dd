/// @file
/// The resources of the system that this process uses.
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

/// Includes one file that is open only to count the files.
inline std::int64_t openFiles()
{
    return entriesOf("/proc/self/fd");
}

/// A list of the open files, for a person who has to find out why there are so many.
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
