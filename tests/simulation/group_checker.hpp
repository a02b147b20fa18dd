/// @file
/// Checks that a believer in a group of locks holds enough of them.
#pragma once

#include "simulation/keyspace.hpp"
#include "simulation/scheduler.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace redislock::simulation {

/// A member of a group that was granted.
struct HeldMember {
    std::size_t server;
    std::string name;
    std::string holder;
};

/// S13: a believer in a group has enough of its members on the servers, each for at least a millisecond longer than it
/// believes; and there is no other believer, unless members were taken away from outside.
class GroupChecker {
public:
    /// The first: the keys of a server. The second: whether a hold there was taken away from outside.
    using KeyspaceOf = std::function<const Keyspace&(std::size_t server)>;
    using IsExcused = std::function<bool(const HeldMember&)>;
    /// Until when the believer believes in the group, as it would say now.
    using Until = std::function<VirtualTime()>;

    GroupChecker(KeyspaceOf keyspaceOf, IsExcused isExcused)
        : keyspaceOf_(std::move(keyspaceOf)), isExcused_(std::move(isExcused))
    {
    }

    /// @param needed how many of the group's members. @param members the members that it counts on now.
    /// @return a number for the believer.
    std::uint64_t believes(const std::string& group, std::size_t needed, const Until& until,
                           const std::function<std::vector<HeldMember>()>& members);
    void ends(std::uint64_t who) { beliefs_.erase(who); }
    /// Called after each request that a server executed, and after each belief.
    void check(VirtualTime now) const;

private:
    struct Belief {
        std::string group;
        std::size_t needed;
        Until until;
        std::function<std::vector<HeldMember>()> members;
    };

    void checkTruth(const Belief& belief, VirtualTime now) const;
    [[nodiscard]] bool isTrue(const HeldMember& member, VirtualTime until, VirtualTime now) const;
    [[nodiscard]] bool isWhole(const Belief& belief) const;

    const KeyspaceOf keyspaceOf_;
    const IsExcused isExcused_;
    std::map<std::uint64_t, Belief> beliefs_;
    std::uint64_t last_ = 0;
};

} // namespace redislock::simulation
