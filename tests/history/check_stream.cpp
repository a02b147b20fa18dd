// S5: nobody releases or renews another's hold. S7: a grant that no caller got ends with its lease. R4: no key without
// time.
#include "history/keys.hpp"
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace redislock::test::history {
namespace {

const Hold* holdOf(const History& history, const Grant& grant)
{
    return grant.hold ? &history.holds[*grant.hold] : nullptr;
}

/// S5, its end. Reads: DEL with PUBLISH (a release), DEL before the expiry, HSET over another's, against unlock invoke.
/// A release that hands on to the next thread of its client publishes nothing: then its holder has ended the hold
/// before. The holder of a member believes in the group: whether the group lacks a member is a question of S13.
void checkEnd(const History& history, const Grant& grant, Report& report)
{
    const auto* hold = holdOf(history, grant);
    report.judge("S5", grant.freed ? 1 : 0);
    switch (grant.how) {
    case Grant::Freed::released:
        if (hold != nullptr && hold->end > grant.freed->t) {
            report.add("S5", grant.lock, grant.freed->t, "released by somebody else while its holder believed",
                       {grant.made, *grant.freed, hold->samples.back()});
        }
        return;
    case Grant::Freed::removed:
        if (hold != nullptr ? hold->end <= grant.freed->t && hold->ending != Hold::Ending::lost
                            : history.isOfAGroup(grant.lock)) {
            return;
        }
        report.add("S5", grant.lock, grant.freed->t, "removed before its time was over, by no release",
                   {grant.made, *grant.freed});
        return;
    case Grant::Freed::overwritten:
        report.add("S5", grant.lock, grant.freed->t, "granted while another held it", {grant.made, *grant.freed});
        return;
    case Grant::Freed::expired:
    case Grant::Freed::emptied:
    case Grant::Freed::open:
        return;
    }
}

/// The commands of a script.
struct Commands {
    int all = 0;
    int times = 0; ///< PEXPIREAT
};

/// S5, its time. Reads: PEXPIREAT alone (a renewal) of a hold all of whose leases are fixed. A request that only asks
/// whether Redis has the hold sets what was left of it when it was sent: it prolongs the hold by no more than the time
/// that it was on its way, and never to more than a lease from now.
void checkRenewals(const History& history, const Grant& grant, const std::map<std::int64_t, Commands>& commandsOfTx,
                   Report& report)
{
    const auto* hold = holdOf(history, grant);
    if (hold == nullptr || hold->isRenewed()) {
        return;
    }
    const auto slack = report.limits.slack / 5;
    std::map<bool, std::int64_t> latest; // of the key, and of the hold's own
    for (const auto& expiry : grant.expiries) {
        // a repeated acquire or release sets the count too; a reader's renewal sets the time of its hold besides the
        // key's
        const auto& commands = commandsOfTx.at(expiry.tx.value_or(0));
        const bool isAlone = expiry.holder.empty() ? commands.all == 1 : commands.all == commands.times;
        const auto expires = expiry.expiresMs.value_or(0);
        const auto [before, isFirst] = latest.try_emplace(expiry.holder.empty(), expires);
        const auto longer = (expires - before->second) * millisecond;
        before->second = expires;
        if (!isAlone || isFirst || longer <= slack) {
            continue;
        }
        const auto left = history.bootOf(expires) - expiry.t;
        if (left > hold->longestLease() + slack || !history.disturbed(expiry.t - longer, expiry.t, 0)) {
            report.add("S5", grant.lock, expiry.t, "a hold with a fixed lease was renewed", {grant.made, expiry});
            return;
        }
    }
}

/// S7. Reads: grants without a belief: they are given back, or came from a late request.
void checkUnwanted(const History& history, const Grant& grant, const std::map<std::string, const Hold*>& holdsOf,
                   Report& report)
{
    if (grant.hold || history.isOfAGroup(grant.lock)) { // S13 judges these
        return;
    }
    report.judge("S7");
    const auto same = holdsOf.find(grant.holder);
    if (same != holdsOf.end() && grant.made.t > same->second->begin && grant.made.t < same->second->end) {
        report.add("S7", grant.lock, grant.made.t, "granted twice to one acquire, while it believed",
                   {same->second->samples.front(), grant.made});
        return;
    }
    const auto lastExpiry = grant.expiries.empty() ? 0 : history.bootOf(grant.expiresMs());
    const auto end = grant.freed ? std::min(grant.freed->t, lastExpiry) : lastExpiry;
    const auto longest = history.longestLease;
    // If the process was killed just then, its caller may have wanted the grant.
    const auto killed = history.killedAt(clientOf(grant.holder));
    const bool mayBeWanted = killed != never && grant.made.t + longest + report.limits.slack > killed;
    if (end > grant.made.t + longest + report.limits.slack && !mayBeWanted) {
        report.add("S7", grant.lock, grant.made.t, "a grant that nobody waits for outlived its lease",
                   {grant.made, grant.expiries.back()});
    }
}

} // namespace

void checkStream(const History& history, Report& report)
{
    std::map<std::int64_t, Commands> commandsOfTx;
    for (const auto& record : history.records) {
        if (record.offset && record.op != Op::clock && record.op != Op::attached) {
            auto& commands = commandsOfTx[record.tx.value_or(0)];
            ++commands.all;
            commands.times += record.op == Op::pexpireat ? 1 : 0;
        }
    }
    std::map<std::string, const Hold*> holdsOf;
    for (const auto& hold : history.holds) {
        holdsOf[hold.holder] = &hold;
    }
    for (const auto& grant : history.grants) {
        checkEnd(history, grant, report);
        checkRenewals(history, grant, commandsOfTx, report);
        checkUnwanted(history, grant, holdsOf, report);
        report.judge("R4");
        if (grant.withoutExpiry) {
            report.add("R4", grant.lock, grant.made.t, "a key was made without a time to live", {grant.made});
        }
    }
    for (const auto& orphan : history.orphans) {
        report.add("S5", orphan.lock, orphan.t, "a time to live was set on a lock that nobody had", {orphan});
    }
}

} // namespace redislock::test::history
