#include "history/group_members.hpp"

#include "history/keys.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace redislock::test::history {
namespace {

/// By how much a moment may be off that follows from an expiry.
constexpr Nanoseconds rounding = 2 * millisecond;

Nanoseconds leaseOf(const Hold& hold)
{
    return hold.locks.front().lease();
}

bool isForgotten(const Grant& grant, Nanoseconds at)
{
    return grant.how == Grant::Freed::emptied && grant.freed->t <= at;
}

} // namespace

GroupMembers::GroupMembers(const History& history) : history_(history)
{
    for (const auto& grant : history.grants) {
        const auto pid = history.pidOf.find(clientOf(grant.holder));
        if (history.isOfAGroup(grant.lock)) {
            recorded_.insert(grant.lock);
            grants_[{pid == history.pidOf.end() ? 0 : pid->second, grant.lock}].push_back(&grant);
        }
    }
}

const Group* GroupMembers::groupOf(const Hold& hold) const
{
    const auto found = history_.groups.find(hold.lock());
    return found == history_.groups.end() ? nullptr : &found->second;
}

std::set<std::string> GroupMembers::takenBy(const std::string& group) const
{
    const auto found = history_.groups.find(group);
    const bool takesAll = found != history_.groups.end() && found->second.needed == found->second.members.size();
    return takesAll ? found->second.members : std::set{group};
}

bool GroupMembers::areRecorded(const Group& group) const
{
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](const auto& member) { return recorded_.contains(member); });
}

std::size_t GroupMembers::count(const Hold& hold, const Group& group, Nanoseconds at) const
{
    return static_cast<std::size_t>(std::count_if(group.members.begin(), group.members.end(), [&](const auto& member) {
        return !alive(hold, member, at).empty();
    }));
}

Nanoseconds GroupMembers::validUntil(const Hold& hold, const Group& group, Nanoseconds at) const
{
    std::vector<Nanoseconds> ends;
    for (const auto& member : group.members) {
        auto& end = ends.emplace_back(0);
        for (const auto* grant : alive(hold, member, at)) {
            end = std::max(end, knownEnd(hold, *grant, at));
        }
    }
    std::sort(ends.begin(), ends.end(), std::greater());
    return ends.size() < group.needed ? 0 : ends[group.needed - 1];
}

bool GroupMembers::isExcused(const Hold& hold, Nanoseconds at, Nanoseconds until) const
{
    const auto* group = groupOf(hold);
    if (group == nullptr) {
        return false;
    }
    std::size_t forgotten = 0;
    std::size_t left = 0;
    for (const auto& member : group->members) {
        auto grants = alive(hold, member, at);
        std::erase_if(grants, [&](const Grant* grant) { return executed(hold, *grant) >= until - rounding; });
        const bool isLeft =
            std::any_of(grants.begin(), grants.end(), [&](const Grant* grant) { return !isForgotten(*grant, at); });
        left += isLeft ? 1 : 0;
        forgotten += !isLeft && !grants.empty() ? 1 : 0;
    }
    return forgotten > 0 && left < group->needed;
}

bool GroupMembers::mayBeOf(const Hold& hold, const Grant& grant) const
{
    return grant.made.t >= hold.first().t - rounding && executed(hold, grant) <= hold.end + millisecond;
}

GroupMembers::Grants GroupMembers::alive(const Hold& hold, const std::string& member, Nanoseconds at) const
{
    constexpr Nanoseconds lag = 1000 * millisecond; // of the stream, at most
    Grants alive;
    const auto found = grants_.find({hold.first().pid, member});
    if (found == grants_.end()) {
        return alive;
    }
    const auto& grants = found->second;
    const auto isBefore = [](const Grant* grant, Nanoseconds t) { return grant->made.t < t; };
    auto grant = std::lower_bound(grants.begin(), grants.end(), hold.first().t - rounding, isBefore);
    for (; grant != grants.end() && (*grant)->made.t <= hold.end + lag; ++grant) {
        if (mayBeOf(hold, **grant) && isAlive(hold, **grant, at)) {
            alive.push_back(*grant);
        }
    }
    return alive;
}

/// Neither freed, nor over by the latest time that was ever set.
bool GroupMembers::isAlive(const Hold& hold, const Grant& grant, Nanoseconds at) const
{
    std::int64_t latest = 0;
    for (const auto& expiry : grant.expiries) {
        latest = std::max(latest, *expiry.expiresMs);
    }
    const bool isFreed = grant.freed && grant.how != Grant::Freed::emptied && grant.freed->t < at;
    return !isFreed && executed(hold, grant) <= at + millisecond && history_.bootOf(latest + 1) >= at;
}

/// When the member was granted, if it was for this hold: the stream comes a moment later.
Nanoseconds GroupMembers::executed(const Hold& hold, const Grant& grant) const
{
    return grant.expiries.empty()
               ? grant.made.t
               : std::min(grant.made.t, history_.bootOf(*grant.expiries.front().expiresMs) - leaseOf(hold));
}

/// Until when the grant surely lives, by the times that had been set then.
Nanoseconds GroupMembers::knownEnd(const Hold& hold, const Grant& grant, Nanoseconds at) const
{
    Nanoseconds latest = 0;
    for (const auto& expiry : grant.expiries) {
        if (history_.bootOf(*expiry.expiresMs) - leaseOf(hold) <= at + millisecond) {
            latest = std::max(latest, history_.bootOf(*expiry.expiresMs - 1));
        }
    }
    return latest;
}

} // namespace redislock::test::history
