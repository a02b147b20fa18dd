/// @file
/// The members of groups according to Redis.
#pragma once

#include "history/history.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::history {

/// Which members the processes had whose threads believed in groups, as far as the streams of the servers were
/// recorded. It is not known which thread of a process a member was granted to.
class GroupMembers {
public:
    explicit GroupMembers(const History& history);

    /// Null for a group of which only the beliefs are known.
    [[nodiscard]] const Group* groupOf(const Hold& hold) const;
    /// The names that nobody else can have meanwhile: the members if all are needed, otherwise the group.
    [[nodiscard]] std::set<std::string> takenBy(const std::string& group) const;
    [[nodiscard]] bool areRecorded(const Group& group) const;

    /// How many members there were for the hold at that time. A member that a server forgot counts until its lease is
    /// over: the holder may not know of the loss before.
    [[nodiscard]] std::size_t count(const Hold& hold, const Group& group, Nanoseconds at) const;
    /// Until when enough members surely live, by the times that the servers had by then.
    [[nodiscard]] Nanoseconds validUntil(const Hold& hold, const Group& group, Nanoseconds at) const;
    /// Whether servers forgot some members, and the others are too few. Only grants from before @p until can be of this
    /// hold: later ones may be of another caller of the same process.
    [[nodiscard]] bool isExcused(const Hold& hold, Nanoseconds at, Nanoseconds until) const;

    /// Whether, by the times, the grant may have been for this hold.
    [[nodiscard]] bool mayBeOf(const Hold& hold, const Grant& grant) const;

private:
    using Grants = std::vector<const Grant*>;

    /// The grants of a member that may be for this hold and were alive at that time; one, or none, unless threads of
    /// the process took turns.
    [[nodiscard]] Grants alive(const Hold& hold, const std::string& member, Nanoseconds at) const;
    [[nodiscard]] bool isAlive(const Hold& hold, const Grant& grant, Nanoseconds at) const;
    [[nodiscard]] Nanoseconds executed(const Hold& hold, const Grant& grant) const;
    [[nodiscard]] Nanoseconds knownEnd(const Hold& hold, const Grant& grant, Nanoseconds at) const;

    const History& history_;
    std::set<std::string> recorded_;
    std::map<std::pair<int, std::string>, Grants> grants_; ///< by process and member
};

} // namespace redislock::test::history
