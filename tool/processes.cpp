#include "processes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock::tool {

namespace {

/// Whether the folder has the numbers that this process knows. There is one for each namespace, and that in another one
/// may be the same by chance.
bool isOwn(const std::filesystem::path& proc)
{
    std::ifstream file(proc / "self" / "status");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto self = "pid:\t" + std::to_string(::getpid()) + "\n";
    const auto has = [&text](const std::string& words) { return text.find(words) != std::string::npos; };
    return has("NS" + self) || (has("\nP" + self.substr(1)) && !has("NSpid:"));
}

/// 0: not known
pid_t parentOf(int folder, const std::string& process)
{
    std::array<char, 512> bytes{};
    const int file = ::openat(folder, (process + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    const auto size = ::read(file, bytes.data(), bytes.size() - 4); // zeros end it
    ::close(file);
    const std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    const auto end = text.rfind(") "); // ends the program's name, which may contain anything
    return end == std::string_view::npos ? 0 : static_cast<pid_t>(std::strtol(&bytes[end + 4], nullptr, 10));
}

} // namespace

Processes::Processes(const std::filesystem::path& proc)
{
    errno = 0;
    folder_ = isOwn(proc) ? ::opendir(proc.c_str()) : nullptr;
    if (folder_ == nullptr) {
        const auto why = errno == 0 ? "it is of another PID namespace" : std::generic_category().message(errno);
        throw std::runtime_error("the processes of a command cannot be found in " + proc.string() + ": " + why);
    }
}

std::map<pid_t, pid_t> Processes::parents() const
{
    std::map<pid_t, pid_t> all;
    ::rewinddir(folder_);
    while (const dirent* entry = ::readdir(folder_)) {
        char* end = nullptr;
        const auto process = static_cast<pid_t>(std::strtol(entry->d_name, &end, 10));
        if (*end == '\0') {
            all[process] = parentOf(::dirfd(folder_), entry->d_name);
        }
    }
    return all;
}

} // namespace redislock::tool
