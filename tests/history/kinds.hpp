/// @file
/// The kinds of lock in a history: the words of the field `kind`.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace redislock::test::history {

/// The facts about a kind that the checker needs.
struct Kind {
    std::string_view name;
    std::string_view exclusion = "S1"; ///< the rule about who may believe at the same time
    bool takesAll = true;              ///< a holder takes the whole lock, not a part of it
    bool tellsEverybody = true;        ///< its releases publish on the lock's channel, unless they hand on
    bool isLeased = true;              ///< its holds expire, and Redis knows their holders
    bool tellsLoss = true;             ///< its client learns of the loss of a hold
    bool isGroup = false;              ///< its holds are those of other locks, the members
};

/// The first kind is that of lines without the field.
inline constexpr std::array kinds{
    Kind{.name = "reentrant"},
    Kind{.name = "nonReentrant"},
    Kind{.name = "spin", .tellsEverybody = false},
    Kind{.name = "fenced"},
    Kind{.name = "fair", .tellsEverybody = false},
    Kind{.name = "read", .exclusion = "S10", .takesAll = false},
    Kind{.name = "write", .exclusion = "S10"},
    Kind{.name = "permit", .exclusion = "S11", .takesAll = false, .tellsEverybody = false, .tellsLoss = false},
    Kind{.name = "semaphore",
         .exclusion = "S11",
         .takesAll = false,
         .tellsEverybody = false,
         .isLeased = false,
         .tellsLoss = false},
    Kind{.name = "multi", .exclusion = "S13", .tellsEverybody = false, .tellsLoss = false, .isGroup = true},
    Kind{.name = "red", .exclusion = "S13", .tellsEverybody = false, .tellsLoss = false, .isGroup = true},
};

/// Null: there is no kind of that name.
inline const Kind* findKind(std::string_view name)
{
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == name; });
    return name.empty() ? &kinds.front() : found == kinds.end() ? nullptr : &*found;
}

} // namespace redislock::test::history
