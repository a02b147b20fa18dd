#include "processes.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

namespace redislock::tool {

std::map<pid_t, pid_t> parentsIn(const std::filesystem::path& proc)
{
    std::map<pid_t, pid_t> all;
    std::error_code ec;
    using Folders = std::filesystem::directory_iterator;
    for (auto entry = Folders(proc, ec); entry != Folders(); entry.increment(ec)) {
        const auto name = entry->path().filename().string();
        if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
            continue;
        }
        std::ifstream file(entry->path() / "stat");
        std::string text;
        std::getline(file, text, '\0');    // all of it; nothing, and no exception, if the process has ended meanwhile
        const auto end = text.rfind(") "); // ends the program's name, which may contain anything
        if (end != std::string::npos && end + 4 < text.size() && text[end + 2] != 'Z') {
            all[static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10))] =
                static_cast<pid_t>(std::strtol(text.c_str() + end + 4, nullptr, 10));
        }
    }
    return all;
}

} // namespace redislock::tool
