// Finds the grant of Redis for each hold of a client, and the end of each belief.
#include "history/history_parts.hpp"
#include "history/keys.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace redislock::test::history {
namespace {

using Half = std::tuple<std::string, std::string, bool>; // client, lock, and whether it writes

/// When Redis made the grant, by its clock, to a call with that lease: the stream is read some time later.
Nanoseconds executedAt(const History& history, const Hold& hold, const Grant& grant)
{
    return history.bootOf(*grant.expiries.front().expiresMs) - hold.locks.front().lease();
}

/// Whether the outermost call of the hold can have returned with this grant.
bool fits(const History& history, const Hold& hold, const Grant& grant)
{
    if (grant.expiries.empty()) {
        return false;
    }
    const auto executed = executedAt(history, hold, grant);
    return executed >= hold.locks.front().invoke.t - 2 * millisecond && executed <= hold.begin + millisecond;
}

/// The grants of each holder, in order. An acquire that is sent again after its first grant has run out has two.
using GrantsOf = std::map<std::string, std::vector<std::size_t>>;

/// The last of the holder's grants that the hold can have returned with.
std::optional<std::size_t> fittingGrant(const History& history, const GrantsOf& grantsOf, const Hold& hold,
                                        const std::string& holder)
{
    std::optional<std::size_t> fitting;
    if (const auto found = grantsOf.find(holder); found != grantsOf.end()) {
        for (const auto grant : found->second) {
            fitting = fits(history, hold, history.grants[grant]) ? grant : fitting;
        }
    }
    return fitting;
}

/// The grant of a hold that was passed on inside the client: the same holder had the grant before, and has it now.
std::optional<std::size_t> passedGrant(const History& history, const GrantsOf& grantsOf, const Hold& hold,
                                       const std::string& holder)
{
    std::optional<std::size_t> fitting;
    if (const auto found = grantsOf.find(holder); found != grantsOf.end()) {
        for (const auto grant : found->second) {
            const auto& each = history.grants[grant];
            const bool lasts = !each.freed || each.freed->t >= hold.begin;
            const bool wasMade = !each.expiries.empty() && executedAt(history, hold, each) <= hold.begin + millisecond;
            fitting = wasMade && lasts ? grant : fitting; // only renewed leases are passed on, all of one length
        }
    }
    return fitting;
}

/// Until when the thread believed in the hold at least, by its calls.
Nanoseconds believedUntil(const History& history, const Hold& hold)
{
    const auto end = hold.ending == Hold::Ending::open ? never : hold.end;
    // After a regular unlock() renewals may have moved the deadline beyond the one that was seen last. If the release
    // of a group is unconfirmed, the group may have been lost before.
    const bool deadlineIsKnown =
        hold.ending != Hold::Ending::released && (hold.ending != Hold::Ending::unconfirmed || hold.kind().isGroup);
    const auto process = history.processes.find(hold.first().pid);
    const auto killed = process == history.processes.end() ? never : process->second.killed;
    return std::min({end, deadlineIsKnown ? hold.deadline : never, killed});
}

/// The observer's events say which holder has which grant, in the order of the grants. The calls return in that order
/// too, except calls that return so late that their hold is already over.
class Names {
public:
    Names(const History& history, const GrantsOf& grantsOf) : history_(history), grantsOf_(grantsOf)
    {
        std::set<std::string> passed; // holders, until the next hold of theirs
        for (const auto& record : history.records) {
            if (record.op == Op::acquired) {
                told_[{record.client, record.lock, isWriter(record.holder)}].push_back(
                    {record.holder, passed.erase(record.holder) > 0});
            } else if (record.op == Op::released && record.error == "passedOn") {
                passed.insert(record.holder);
            }
        }
    }

    void give(Hold& hold)
    {
        auto& told = told_[{hold.first().client, hold.lock(), hold.kind().name == "write"}];
        const auto own = hold.kind().takesAll ? firstOf(told, hold) : bestOf(told, hold);
        if (own != told.end()) {
            hold.holder = own->holder;
            hold.wasPassedToIt = own->isPassed;
            hold.grant = grantOf(hold, *own);
            told.erase(hold.kind().takesAll ? told.begin() : own, std::next(own));
        }
        if (hold.kind().name == "write") {
            writers_[{hold.first().pid, hold.first().thread, hold.lock()}] = &hold;
        }
    }

private:
    struct Name {
        std::string holder;
        bool isPassed; ///< the holder had it before
    };
    using Told = std::deque<Name>;

    [[nodiscard]] std::optional<std::size_t> grantOf(const Hold& hold, const Name& name) const
    {
        return name.isPassed ? passedGrant(history_, grantsOf_, hold, name.holder)
                             : fittingGrant(history_, grantsOf_, hold, name.holder);
    }

    [[nodiscard]] Told::iterator firstOf(Told& told, const Hold& hold) const
    {
        return std::find_if(told.begin(), told.end(),
                            [&](const Name& name) { return grantOf(hold, name).has_value(); });
    }

    /// For readers, whose calls return in any order: the best fit among the grants that may be the hold's. An error in
    /// a hold remains visible, since each grant is assigned only once.
    [[nodiscard]] Told::iterator bestOf(Told& told, const Hold& hold) const
    {
        auto best = told.end();
        Rank bestRank;
        for (auto name = told.begin(); name != told.end(); ++name) {
            if (const auto grant = grantOf(hold, *name)) {
                const auto rank = rankOf(history_.grants[*grant], hold);
                if (best == told.end() || rank < bestRank) {
                    best = name;
                    bestRank = rank;
                }
            }
        }
        return best;
    }

    using Rank = std::tuple<bool, bool, bool, bool, Nanoseconds>;

    /// Ranks a grant: beside a writer only that writer's thread reads; the request was not sent before the time that
    /// the deadline implies; the levels are the same; and the grant ended after the belief, but soon.
    [[nodiscard]] Rank rankOf(const Grant& grant, const Hold& hold) const
    {
        std::int64_t levels = 1;
        for (const auto& call : hold.locks) {
            levels = std::max(levels, call.end->count.value_or(1));
        }
        const bool hasOtherLevels = *std::max_element(grant.counts.begin(), grant.counts.end()) != levels;
        const auto end = grant.freed ? grant.freed->t : never;
        return {grant.besideWriter != writes(hold), isOlder(grant, hold), hasOtherLevels,
                end < believedUntil(history_, hold), end};
    }

    /// Whether the thread of the hold had the same lock for writing when the hold began.
    [[nodiscard]] bool writes(const Hold& hold) const
    {
        const auto writer = writers_.find({hold.first().pid, hold.first().thread, hold.lock()});
        return writer != writers_.end() && hold.first().t < believedUntil(history_, *writer->second);
    }

    /// If an acquire was sent again, the grant's time was set again.
    [[nodiscard]] bool isOlder(const Grant& grant, const Hold& hold) const
    {
        const auto& call = hold.locks.front();
        const auto sent = *call.end->deadline - call.lease() + driftOf(call.lease());
        return std::none_of(grant.expiries.begin(), grant.expiries.end(), [&](const Record& expiry) {
            const auto executed = history_.bootOf(*expiry.expiresMs) - call.lease();
            return executed >= sent - 2 * millisecond && executed <= hold.begin + millisecond;
        });
    }

    const History& history_;
    const GrantsOf& grantsOf_;
    std::map<Half, Told> told_;
    std::map<std::tuple<int, int, std::string>, const Hold*> writers_; ///< the last of each thread
};

void nameHolders(History& history, const GrantsOf& grantsOf)
{
    Names names(history, grantsOf);
    for (auto& hold : history.holds) {
        if (hold.holder.empty() && hold.deadline > hold.begin) {
            names.give(hold);
        }
    }
}

/// In a process that was killed the observer may not have got the event for the last call.
void nameLastHolders(History& history)
{
    for (auto& hold : history.holds) {
        const auto& client = hold.first().client;
        if (!hold.holder.empty() || history.killedAt(client) == never) {
            continue;
        }
        for (std::size_t i = 0; i < history.grants.size(); ++i) {
            const auto& grant = history.grants[i];
            const bool mayBeIts = grant.lock == hold.lock() && clientOf(grant.holder) == client &&
                                  isWriter(grant.holder) == (hold.kind().name == "write") &&
                                  history.told.count(grant.holder) == 0;
            if (mayBeIts && fits(history, hold, grant)) {
                hold.holder = grant.holder;
                hold.grant = i;
            }
        }
    }
}

void findLosses(History& history, Hold& hold)
{
    const auto found = history.told.find(hold.holder);
    if (found == history.told.end()) {
        return;
    }
    for (const auto& record : found->second) {
        if (record.op == Op::lost) {
            hold.lostAt = std::min(hold.lostAt, record.t);
        }
    }
}

/// The loss of a group before its deadline is reported after it has happened. The belief is certain only until the last
/// sample before that loss.
Nanoseconds lastSampleBefore(const Hold& hold, Nanoseconds loss)
{
    Nanoseconds last = hold.begin;
    for (const auto& sample : hold.samples) {
        last = sample.t < loss ? std::max(last, sample.t) : last;
    }
    return last;
}

void endBelief(const History& history, Hold& hold)
{
    const bool endsBeforeItIsTold = hold.kind().isGroup && hold.lostAt < hold.deadline;
    const auto lost = endsBeforeItIsTold ? lastSampleBefore(hold, hold.lostAt) : hold.lostAt;
    hold.end = std::max(hold.begin, std::min(believedUntil(history, hold), lost));
    if (hold.ending == Hold::Ending::open && hold.lostAt != never) {
        hold.ending = Hold::Ending::lost;
    }
}

} // namespace

void joinTruth(History& history)
{
    GrantsOf grantsOf;
    for (std::size_t i = 0; i < history.grants.size(); ++i) {
        grantsOf[history.grants[i].holder].push_back(i);
    }
    std::stable_sort(history.holds.begin(), history.holds.end(),
                     [](const Hold& a, const Hold& b) { return a.begin < b.begin; });
    nameHolders(history, grantsOf);
    nameLastHolders(history);
    for (std::size_t i = 0; i < history.holds.size(); ++i) {
        auto& hold = history.holds[i];
        findLosses(history, hold);
        endBelief(history, hold);
        if (!hold.grant && !hold.holder.empty()) {
            hold.grant = fittingGrant(history, grantsOf, hold, hold.holder);
        }
        if (hold.grant) {
            auto& last = history.grants[*hold.grant].hold;
            if (last && hold.wasPassedToIt) {
                history.holds[*last].wasPassedOn = true;
            }
            last = i;
        }
    }
}

} // namespace redislock::test::history
