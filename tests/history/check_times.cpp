// T1: a loss is reported in time. T3: a hold is renewed while the server can be reached. T4, T5: a free lock with a
// waiter is granted soon, after a release and after a lease that ran out. T6: all dead waiters together cost the
// waiters behind them the time of one place.
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace redislock::test::history {
namespace {

/// The latest time at which the hold was over: the last deadline that the thread saw, moved by the reported renewals.
Nanoseconds latestDeadline(const History& history, const Hold& hold)
{
    auto latest = hold.deadline;
    if (const auto told = history.told.find(hold.holder); told != history.told.end()) {
        for (const auto& record : told->second) {
            if (record.op == Op::renewed) {
                latest = std::max(latest, record.t + hold.longestLease());
            }
        }
    }
    return latest;
}

const Record* toldOf(const History& history, const Hold& hold, Op op)
{
    const auto told = history.told.find(hold.holder);
    if (told == history.told.end()) {
        return nullptr;
    }
    const auto found =
        std::find_if(told->second.begin(), told->second.end(), [&](const auto& r) { return r.op == op; });
    return found == told->second.end() ? nullptr : &*found;
}

/// When the caller of unlock() learned that the hold was lost; never: unlock() was not called in time.
Nanoseconds heardFromUnlock(const Hold& hold, Nanoseconds deadline)
{
    const bool isAsked = !hold.unlocks.empty() && hold.unlocks.back().invoke.t < deadline;
    return isAsked && hold.unlocks.back().succeeded() ? hold.unlocks.back().returned() : never;
}

/// T1. Reads: the deadlines that were seen, the observer's events, the results of unlock(), stops of the process.
void checkTold(const History& history, const Hold& hold, Report& report)
{
    report.judge("T1");
    const auto pid = hold.first().pid;
    const auto deadline = latestDeadline(history, hold);
    const auto* lost = toldOf(history, hold, Op::lost);
    const auto until = lost != nullptr ? lost->t : std::min(history.end, heardFromUnlock(hold, deadline));
    const auto killed = history.killedAt(hold.first().client);
    const auto late = until - deadline - history.stopped(pid, deadline - hold.longestLease(), until);
    if (late > report.limits.slack && killed > deadline + report.limits.slack) {
        report.add("T1", hold.lock(), until,
                   lost != nullptr ? "the loss was told " + inMs(late) + " late" : "a loss was never told",
                   {hold.samples.back(), lost != nullptr ? *lost : history.records.back()});
        return;
    }
    const auto* risk = toldOf(history, hold, Op::atRisk);
    // If the thread did not run between the two moments, it may report only the loss.
    constexpr Nanoseconds punctual = 5 * millisecond;
    const bool byTime = lost != nullptr && lost->t >= hold.deadline && lost->t < hold.deadline + punctual;
    const bool ran = hold.deadline - hold.begin > leastStarved && history.stopped(pid, hold.begin, until) == 0;
    if (byTime && ran && (risk == nullptr || risk->t > lost->t)) {
        report.add("T1", hold.lock(), lost->t, "lost without having been at risk", {hold.samples.back(), *lost});
    }
}

/// The longest time without a fault of the server, the network or the process.
Nanoseconds calmIn(const History& history, Nanoseconds from, Nanoseconds to, int pid)
{
    std::vector<Interval> lastErrors = history.faults;
    if (const auto process = history.processes.find(pid); process != history.processes.end()) {
        lastErrors.insert(lastErrors.end(), process->second.stops.begin(), process->second.stops.end());
    }
    const auto calm = longestWithout(std::move(lastErrors), from, to);
    return calm.end - calm.begin;
}

/// T3. Reads: the deadline of a hold that was lost because its time was over, the faults, the stops.
void checkRenewed(const History& history, const Hold& hold, Report& report)
{
    const auto pid = hold.first().pid;
    const auto watchdog = history.setting(pid, "watchdogTimeout", 0);
    if (!hold.locks.front().isRenewed() || watchdog == 0 || hold.lostAt < hold.deadline || hold.lostAt == never) {
        return;
    }
    report.judge("T3");
    const auto timeout = history.setting(pid, "commandTimeout", 0);
    const auto deadline = latestDeadline(history, hold);
    const auto begin = deadline - watchdog + driftOf(watchdog) + watchdog / 3;
    const auto end = deadline - std::max(watchdog / 10, std::min(2 * timeout, watchdog / 4));
    if (const auto calm = calmIn(history, begin, end, pid); calm >= 2 * timeout + report.limits.slack / 5) {
        report.add("T3", hold.lock(), hold.lostAt, "not renewed, though nothing was in the way for " + inMs(calm),
                   {hold.samples.back()});
    }
}

/// A call that waited for the lock all that time, in a process that ran; null: there is none.
const Call* waiterThrough(const History& history, const std::vector<const Call*>& calls, Nanoseconds from,
                          Nanoseconds to)
{
    for (const auto* call : calls) {
        const auto pid = call->invoke.pid;
        const auto process = history.processes.find(pid);
        const bool lives = process == history.processes.end() || process->second.killed > to;
        const auto deadline = call->invoke.waitMs ? call->invoke.t + *call->invoke.waitMs * millisecond : never;
        if (call->invoke.t <= from && call->returned() >= to && deadline >= to && lives &&
            history.stopped(pid, from, to) == 0) {
            return call;
        }
    }
    return nullptr;
}

/// T4 and T5. Reads: DEL, expiry and HSET of each lock, the lock calls that waited meanwhile, the faults.
class WakeUps {
public:
    WakeUps(const History& history, Report& report) : history_(history), report_(report)
    {
        for (const auto& call : history.calls) {
            if (call.invoke.op == Op::lock && call.invoke.waitMs != 0) {
                calls_[call.invoke.lock].push_back(&call);
            }
        }
        for (const auto& grant : history.grants) {
            grants_[grant.lock].push_back(&grant);
        }
        for (const auto& waiter : history.waiters) {
            placeTime_ = std::max(placeTime_, waiter.placeTime(history));
            if (waiter.how == Waiter::Leaving::open || waiter.how == Waiter::Leaving::removed) {
                dead_[waiter.came.lock].push_back(&waiter);
            }
        }
    }

    void check()
    {
        for (const auto& [lock, grants] : grants_) {
            const Grant* last = grants.front(); // the grant, of those up to now, that lasts longest
            for (const auto* next : grants) {
                if (next != last && next->made.t >= freeAfter(*last)) {
                    checkAfter(*last, next);
                }
                last = freeAfter(*next) > freeAfter(*last) ? next : last;
            }
            checkAfter(*last, nullptr);
        }
    }

private:
    [[nodiscard]] Nanoseconds freeAfter(const Grant& grant) const
    {
        return grant.how == Grant::Freed::released
                   ? grant.freed->t
                   : history_.bootOf(std::max(grant.expiresMs(), grant.keyExpiresMs) + 1);
    }

    void checkAfter(const Grant& grant, const Grant* next)
    {
        const bool released = grant.how == Grant::Freed::released;
        if (!released && grant.expiries.empty()) {
            return;
        }
        const auto free = freeAfter(grant);
        const auto then = next != nullptr ? next->made.t : history_.end;
        const bool wasAwaited = next != nullptr && next->hold && history_.holds[*next->hold].first().t < free;
        const bool isBehindDead = stoodBehindDead(grant.lock, free);
        const auto* rule = isBehindDead ? "T6" : released ? "T4" : "T5";
        report_.judge(rule, wasAwaited ? 1 : 0);
        if (released && wasAwaited && !isBehindDead) {
            if (!history_.disturbed(free - calmBefore, then, 0)) {
                report_.longestWakeUp = std::max(report_.longestWakeUp, then - free);
            }
            ++report_.wakeUps;
        }
        const auto& slack = report_.limits.slack;
        const auto poll = history_.commonSetting("pollInterval", 1000 * millisecond);
        const bool told = released && !history_.disturbed(free - calmBefore, free, 0);
        const auto limit = isBehindDead ? placeTime_ + poll + slack : told ? slack : poll + slack;
        const auto waitedFrom = isBehindDead ? free + limit - slack : free; // granted to any waiter, after the dead
        if (then - free <= limit || history_.disturbed(free, free + limit, 0)) {
            return;
        }
        if (const auto* waiter = waiterThrough(history_, calls_[grant.lock], waitedFrom, free + limit)) {
            report_.add(rule, grant.lock, free,
                        "free for " + inMs(then - free) +
                            " while somebody waited, granted at last: " + (next != nullptr ? next->holder : "never"),
                        {grant.made, waiter->invoke});
        }
    }

    /// Whether some waiters in the queue had stopped asking.
    [[nodiscard]] bool stoodBehindDead(const std::string& lock, Nanoseconds at) const
    {
        const auto found = dead_.find(lock);
        return found != dead_.end() && std::any_of(found->second.begin(), found->second.end(), [&](const auto* waiter) {
                   return waiter->came.t <= at && (!waiter->left || waiter->left->t > at);
               });
    }

    static constexpr Nanoseconds calmBefore = 1500 * millisecond; // by then there are subscriptions again

    const History& history_;
    Report& report_;
    std::map<std::string, std::vector<const Call*>> calls_;
    std::map<std::string, std::vector<const Grant*>> grants_;
    std::map<std::string, std::vector<const Waiter*>> dead_; ///< waiters that never left by themselves
    Nanoseconds placeTime_ = 0;                              ///< how long a place is kept
};

} // namespace

void checkLosses(const History& history, Report& report)
{
    for (const auto& hold : history.holds) {
        const bool unlocked = hold.ending == Hold::Ending::released || hold.ending == Hold::Ending::unconfirmed;
        if (!unlocked && !hold.holder.empty() && hold.kind().tellsLoss) {
            checkTold(history, hold, report);
            checkRenewed(history, hold, report);
        }
    }
}

void checkWakeUps(const History& history, Report& report)
{
    if (history.hasTruth) {
        WakeUps(history, report).check();
    }
}

} // namespace redislock::test::history
