// The versions of Redisson that were built.
#include "interop/kinds.hpp"

#include <algorithm>
#include <sstream>

namespace redislock::test {

std::vector<std::string> redissonVersions()
{
    std::istringstream list(REDISLOCK_REDISSON_VERSIONS);
    std::vector<std::string> versions;
    for (std::string version; std::getline(list, version, ' ');) {
        versions.push_back(version);
    }
    return versions;
}

bool has(const std::string& redisson, const LockKind& kind)
{
    return std::stoi(redisson) >= kind.since;
}

std::string testName(const std::string& redisson)
{
    auto name = "Redisson" + redisson;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

} // namespace redislock::test
