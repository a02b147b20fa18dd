/// @file
/// That who believes to hold a group of locks holds enough of them.
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

/// S13: who believes to hold a group has so many of its members on the servers as are needed, each for at least a
/// millisecond longer than it believes; and nobody else does, unless members were taken away from outside.
class GroupChecker {
public:
    /// What a server remembers. Whether a hold there was taken away from outside.
    using KeyspaceOf = std::function<const Keyspace&(std::size_t server)>;
    using IsExcused = std::function<bool(const HeldMember&)>;
    /// Until when it believes so, as it would say now.
    using Until = std::function<VirtualTime()>;

    GroupChecker(KeyspaceOf keyspaceOf, IsExcused isExcused)
        : keyspaceOf_(std::move(keyspaceOf)), isExcused_(std::move(isExcused))
    {
    }

    /// @param needed how many of the group's members. @param members those that it counts on now.
    /// @return who it is.
    std::uint64_t believes(const std::string& group, std::size_t needed, const Until& until,
                           const std::function<std::vector<HeldMember>()>& members);
    void ends(std::uint64_t who) { beliefs_.erase(who); }
    /// After each request that a server executed, and each belief.
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
