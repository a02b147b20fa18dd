/// @file
/// The groups of locks of a chaos run.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::chaos {

/// The number of servers for groups; these servers have nothing else.
inline constexpr std::size_t groupServers = 5;

/// What a group consists of.
struct SharedGroup {
    std::string kind;                                         ///< a word of the format
    std::string name;                                         ///< in the history
    std::vector<std::pair<std::size_t, std::string>> members; ///< each with its server
};

/// @param names of the members; in a history members on several servers have different names.
inline SharedGroup groupOn(const std::string& kind, const std::string& name, const std::string& names,
                           std::size_t firstServer, std::size_t servers)
{
    SharedGroup group{kind, name, {}};
    for (auto server = firstServer; server < firstServer + servers; ++server) {
        group.members.emplace_back(server, names + "@" + std::to_string(server));
    }
    return group;
}

/// Some RedLocks, and two MultiLocks with members in common.
inline std::vector<SharedGroup> sharedGroups()
{
    return {groupOn("red", "chaos:red:0", "chaos:red:0", 0, groupServers),
            groupOn("red", "chaos:red:1", "chaos:red:1", 0, groupServers),
            groupOn("multi", "chaos:multi:0", "chaos:shelf", 0, 3),
            groupOn("multi", "chaos:multi:1", "chaos:shelf", 1, 4)};
}

/// Groups that nobody else takes: with these a process shows that it can take a group.
inline std::vector<SharedGroup> ownGroups(const std::string& client)
{
    return {groupOn("red", "chaos:own:red:" + client, "chaos:own:" + client, 0, groupServers),
            groupOn("multi", "chaos:own:multi:" + client, "chaos:own:shelf:" + client, 0, groupServers)};
}

} // namespace redislock::test::chaos
