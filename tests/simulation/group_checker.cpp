#include "simulation/group_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace redislock::simulation {

std::uint64_t GroupChecker::believes(const std::string& group, std::size_t needed, const Until& until,
                                     const std::function<std::vector<HeldMember>()>& members)
{
    beliefs_[++last_] = {group, needed, until, members};
    return last_;
}

void GroupChecker::check(VirtualTime now) const
{
    std::map<std::string, std::uint64_t> holders;
    for (const auto& [who, belief] : beliefs_) {
        if (now >= belief.until()) {
            continue;
        }
        checkTruth(belief, now);
        if (isWhole(belief) && !holders.emplace(belief.group, who).second) {
            throw Violation("S13 groups", fmt::format("two believe to hold {}", belief.group));
        }
    }
}

void GroupChecker::checkTruth(const Belief& belief, VirtualTime now) const
{
    const VirtualTime until = belief.until();
    std::set<std::pair<std::size_t, std::string>> distinct;
    for (const auto& member : belief.members()) {
        if (isExcused_(member) || isTrue(member, until, now)) {
            distinct.emplace(member.server, member.name);
        }
    }
    if (distinct.size() < belief.needed) {
        throw Violation("S13 groups",
                        fmt::format("{} is believed to be held until {:.3f} ms, with {} members instead of {}",
                                    belief.group, static_cast<double>(until.count()) / 1e6, distinct.size(),
                                    belief.needed));
    }
}

bool GroupChecker::isTrue(const HeldMember& member, VirtualTime until, VirtualTime now) const
{
    const auto* key = keyspaceOf_(member.server).find(member.name, millisecondOf(now));
    return key != nullptr && key->find(member.holder) != nullptr &&
           (!key->expiresAtMs || until <= VirtualTime((*key->expiresAtMs - 1) * 1'000'000));
}

/// Whether the believer has enough members, apart from members that were taken away from outside.
bool GroupChecker::isWhole(const Belief& belief) const
{
    const auto members = belief.members();
    const auto own = std::ranges::count_if(members, [&](const HeldMember& member) { return !isExcused_(member); });
    return static_cast<std::size_t>(own) >= belief.needed;
}

} // namespace redislock::simulation
