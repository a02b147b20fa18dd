/// @file
/// The processes of this machine.
#pragma once

#include <sys/types.h>

#include <dirent.h>

#include <filesystem>
#include <map>

namespace redislock::tool {

/// The processes that the folder /proc shows. **Thread safety**: none.
class Processes {
public:
    /// Keeps the folder open. @throws std::runtime_error when it is missing, or has other numbers than this process
    /// knows: those of another PID namespace.
    explicit Processes(const std::filesystem::path& proc = "/proc");
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    ~Processes() { ::closedir(folder_); }

    /// The parent of each process; 0 where that cannot be read: the process has ended meanwhile, or there is no file
    /// handle left. Processes that have ended but were not waited for are listed too.
    [[nodiscard]] std::map<pid_t, pid_t> parents() const;

private:
    DIR* folder_ = nullptr;
};

} // namespace redislock::tool
