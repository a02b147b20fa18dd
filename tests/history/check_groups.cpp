// S13: an owner that believes in a group holds enough of its members until the deadline, and no other owner believes in
// it; a member that no owner counts on any more is given back. T4: an owner that waits for a group that nobody has gets
// it.
#include "history/group_members.hpp"
#include "history/keys.hpp"
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::history {
namespace {

/// Until when the owner may have held the group: this may be later than the end of its sure belief.
Nanoseconds keptUntil(const Hold& hold)
{
    const auto end = hold.unlocks.empty() ? never : hold.unlocks.back().invoke.t;
    return hold.lostAt != never ? std::max(hold.end, hold.lostAt) : std::max(hold.end, end);
}

/// S13, exclusion. Reads: lock ok, unlock invoke, samples, losses, deadlines of groups. Two groups that need all of
/// their members exclude each other when they have one in common.
class Exclusion {
public:
    Exclusion(const GroupMembers& members, Report& report) : members_(members), report_(report) {}

    void take(const Hold& hold)
    {
        for (const auto& what : members_.takenBy(hold.lock())) {
            enter(hold, what);
        }
    }

private:
    void enter(const Hold& hold, const std::string& what)
    {
        auto& others = held_[what];
        report_.judge("S13", others.empty() ? 0 : 1);
        std::erase_if(others, [&](const Hold* other) { return other->end <= hold.begin; });
        for (const auto* other : others) {
            if (!members_.isExcused(*other, hold.begin, hold.first().t) &&
                !members_.isExcused(hold, hold.begin, never) && told_.insert({other, &hold}).second) {
                report_.add("S13", hold.lock(), hold.begin,
                            "two believed to have " + what + ", for " +
                                inMs(std::min(hold.end, other->end) - hold.begin),
                            {other->samples.front(), other->samples.back(), hold.samples.front(), hold.samples.back()});
            }
        }
        others.push_back(&hold);
    }

    const GroupMembers& members_;
    Report& report_;
    std::map<std::string, std::vector<const Hold*>> held_; ///< holds that may still last, and the last one before them
    std::set<std::pair<const Hold*, const Hold*>> told_;
};

/// S13, the truth. Reads: samples and the end of a belief, and the grants of the members to its process.
void checkMembers(const GroupMembers& members, const Hold& hold, Report& report)
{
    const auto* group = members.groupOf(hold);
    if (group == nullptr || !members.areRecorded(*group)) {
        return;
    }
    const auto check = [&](const Record& sample, Nanoseconds at) {
        const auto count = members.count(hold, *group, at);
        const auto validUntil = members.validUntil(hold, *group, at);
        report.judge("S13");
        if (count < group->needed) {
            report.add("S13", hold.lock(), at,
                       "believed with " + std::to_string(count) + " members, not " + std::to_string(group->needed),
                       {hold.samples.front(), sample});
        } else if (at == sample.t && *sample.deadline > validUntil) {
            report.add("S13", hold.lock(), at,
                       "the deadline is " + inMs(*sample.deadline - validUntil) + " too late for " +
                           std::to_string(group->needed) + " members",
                       {hold.samples.front(), sample});
        } else {
            return true;
        }
        return false;
    };
    for (const auto& sample : hold.samples) {
        if (sample.t <= hold.end && !check(sample, sample.t)) {
            return;
        }
    }
    (void)check(hold.samples.back(), hold.end);
}

/// S13, remaining members. Reads: grants of members, the beliefs that may count on them; if nothing held a request
/// back.
class Leftovers {
public:
    Leftovers(const History& history, const GroupMembers& members) : history_(history), members_(members)
    {
        for (const auto& hold : history.holds) {
            if (const auto* group = hold.kind().isGroup ? members.groupOf(hold) : nullptr) {
                for (const auto& member : group->members) {
                    holds_[{hold.first().pid, member}].push_back(&hold);
                }
            }
        }
    }

    void check(const Grant& grant, Report& report) const
    {
        const auto client = clientOf(grant.holder);
        const auto pid = history_.pidOf.find(client);
        if (pid == history_.pidOf.end() || grant.expiries.empty()) {
            return;
        }
        const auto timeout = history_.setting(pid->second, "commandTimeout", 0);
        const auto wanted = wantedUntil(grant, pid->second, timeout);
        const auto by = wanted == never ? never : wanted + 2 * timeout + report.limits.slack;
        if (by > history_.end || by > history_.killedAt(client) ||
            history_.disturbed(grant.made.t - calmBefore, by, 0)) {
            return;
        }
        report.judge("S13");
        if (std::min(grant.freed ? grant.freed->t : never, history_.bootOf(grant.expiresMs())) > by) {
            report.add("S13", grant.lock, by, "a member was kept that nobody counted on",
                       {grant.made, grant.expiries.back()});
        }
    }

private:
    static constexpr Nanoseconds calmBefore = 1500 * millisecond; // by then there are connections again

    /// Until when the round of an acquire, or a hold of the process, wants the member.
    [[nodiscard]] Nanoseconds wantedUntil(const Grant& grant, int pid, Nanoseconds timeout) const
    {
        auto until = grant.made.t + timeout;
        if (const auto found = holds_.find({pid, grant.lock}); found != holds_.end()) {
            for (const auto* hold : found->second) {
                until = members_.mayBeOf(*hold, grant) ? std::max(until, keptUntil(*hold)) : until;
            }
        }
        return until;
    }

    const History& history_;
    const GroupMembers& members_;
    std::map<std::pair<int, std::string>, std::vector<const Hold*>> holds_; ///< by process and member
};

/// T4 for groups. Reads: lock calls that ended without the group, beliefs; if there had been no fault for a lease.
class Waits {
public:
    Waits(const History& history, const GroupMembers& members) : history_(history), members_(members)
    {
        for (const auto& hold : history.holds) {
            if (hold.kind().isGroup) {
                const auto until = keptUntil(hold);
                for (const auto& what : members.takenBy(hold.lock())) {
                    taken_[what].push_back({hold.begin, until == never ? hold.deadline : until});
                }
            }
        }
    }

    void check(const Call& call, Report& report) const
    {
        const auto limit = 2 * report.limits.slack;
        if (call.returned() == never || call.returned() - call.invoke.t < limit) {
            return;
        }
        std::vector<Interval> taken;
        for (const auto& what : members_.takenBy(call.invoke.lock)) {
            if (const auto found = taken_.find(what); found != taken_.end()) {
                taken.insert(taken.end(), found->second.begin(), found->second.end());
            }
        }
        const auto free = longestWithout(std::move(taken), call.invoke.t, call.returned());
        const auto left = history_.longestLease + report.limits.slack; // by then the remaining members are over
        if (history_.disturbed(free.begin - left, free.begin + limit, 0)) {
            return;
        }
        report.judge("T4");
        if (free.end - free.begin > limit) {
            report.add("T4", call.invoke.lock, free.begin,
                       "nobody had it for " + inMs(free.end - free.begin) + ", and who waited did not get it",
                       {call.invoke, *call.end});
        }
    }

private:
    const History& history_;
    const GroupMembers& members_;
    std::map<std::string, std::vector<Interval>> taken_;
};

} // namespace

void checkGroups(const History& history, Report& report)
{
    const GroupMembers members(history);
    Exclusion exclusion(members, report);
    for (const auto& hold : history.holds) {
        if (hold.kind().isGroup && !hold.isEmpty()) {
            exclusion.take(hold);
            checkMembers(members, hold, report);
        }
    }
    const Leftovers leftovers(history, members);
    for (const auto& grant : history.grants) {
        if (history.isOfAGroup(grant.lock)) {
            leftovers.check(grant, report);
        }
    }
    const Waits waits(history, members);
    for (const auto& call : history.calls) {
        const bool isRefused = call.invoke.op == Op::lock && call.end && call.end->phase == Phase::fail;
        if (isRefused && findKind(call.invoke.kind)->isGroup) {
            waits.check(call, report);
        }
    }
}

} // namespace redislock::test::history
