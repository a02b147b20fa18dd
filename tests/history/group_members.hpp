/// @file
/// What Redis says of the members of groups.
#pragma once

#include "history/history.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::history {

/// Which members the processes of those who believe to hold groups had, as far as the streams of their servers were
/// recorded. Which thread of a process a member was granted to is not known.
class GroupMembers {
public:
    explicit GroupMembers(const History& history);

    /// Null for a group of which nothing is known but its beliefs.
    [[nodiscard]] const Group* groupOf(const Hold& hold) const;
    /// What nobody else can have meanwhile: the members where all are needed, or else the group.
    [[nodiscard]] std::set<std::string> takenBy(const std::string& group) const;
    [[nodiscard]] bool areRecorded(const Group& group) const;

    /// How many members there were for the hold at that time. What a server forgot counts until its lease is over: so
    /// long the holder may not know.
    [[nodiscard]] std::size_t count(const Hold& hold, const Group& group, Nanoseconds at) const;
    /// Until when so many of them as are needed surely live, by what the servers had been told by then.
    [[nodiscard]] Nanoseconds validUntil(const Hold& hold, const Group& group, Nanoseconds at) const;
    /// Whether servers forgot some of them, and the others are too few.
    [[nodiscard]] bool isExcused(const Hold& hold, Nanoseconds at) const;

    /// Whether it may have been granted for this hold: by the time.
    [[nodiscard]] bool mayBeOf(const Hold& hold, const Grant& grant) const;

private:
    using Grants = std::vector<const Grant*>;

    /// Those of a member that may be the hold's and were alive at that time; one, or none, unless its threads took
    /// turns.
    [[nodiscard]] Grants alive(const Hold& hold, const std::string& member, Nanoseconds at) const;
    [[nodiscard]] bool isAlive(const Hold& hold, const Grant& grant, Nanoseconds at) const;
    [[nodiscard]] Nanoseconds executed(const Hold& hold, const Grant& grant) const;
    [[nodiscard]] Nanoseconds knownEnd(const Hold& hold, const Grant& grant, Nanoseconds at) const;

    const History& history_;
    std::set<std::string> recorded_;
    std::map<std::pair<int, std::string>, Grants> grants_; ///< by process and member
};

} // namespace redislock::test::history
