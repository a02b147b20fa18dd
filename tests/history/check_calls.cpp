// T7, T8: calls return in time. T9: after a fault every process gets and frees a lock again. R1: resources are given
// back. R4, S7: nothing stays in Redis.
#include "history/keys.hpp"
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace redislock::test::history {
namespace {

Nanoseconds timeoutOf(const History& history, int pid)
{
    return std::max(history.setting(pid, "commandTimeout", 0), history.setting(pid, "connectTimeout", 0));
}

/// T7. Reads: invoke and return of lock calls with a wait. T8: of unlock calls.
void checkDuration(const History& history, const Call& call, std::map<Place, Nanoseconds>& deadlines, Report& report)
{
    const auto pid = call.invoke.pid;
    const auto place = placeOf(call.invoke);
    auto limit = timeoutOf(history, pid) + report.limits.slack;
    if (call.invoke.op == Op::lock) {
        if (call.succeeded()) {
            deadlines[place] = call.end->deadline.value_or(0);
        }
        if (!call.invoke.waitMs) {
            return;
        }
        limit += *call.invoke.waitMs * millisecond;
        if (isDurable(call.invoke.lock)) { // its last attempt may begin at the end of the wait
            limit += history.setting(pid, "durabilityWithin", 0);
        }
    } else {
        // A renewed deadline is at most a lease away.
        const auto lease = history.setting(pid, "watchdogTimeout", 0);
        const auto left = std::max(deadlines[place], call.invoke.t + lease) - call.invoke.t;
        const auto patience = history.setting(pid, "unreachableAfter", left);
        limit += history.kind(call.invoke.lock).exclusion == "S11" ? patience : std::min(patience, left);
    }
    report.judge(call.invoke.op == Op::lock ? "T7" : "T8");
    const auto killed = history.processes.at(pid).killed;
    const auto end = std::min({call.returned(), killed, history.end});
    const auto took = end - call.invoke.t - history.stopped(pid, call.invoke.t, end);
    if (took > limit) {
        report.add(call.invoke.op == Op::lock ? "T7" : "T8", call.invoke.lock, end,
                   std::string(nameOf(call.invoke.op)) + " took " + inMs(took) + ", at most " + inMs(limit) +
                       " were allowed",
                   call.end ? std::vector{call.invoke, *call.end} : std::vector{call.invoke});
    }
}

/// T9. Reads: the ends of faults, the first lock after each of them that every living process got and freed.
void checkRecovery(const History& history, const Interval& fault, Report& report)
{
    constexpr Nanoseconds backoff = 1000 * millisecond;
    for (const auto& [pid, process] : history.processes) {
        const auto limit = history.longestLease + backoff + 2 * timeoutOf(history, pid) + report.limits.slack;
        const auto by = fault.end + limit;
        const bool lives = !process.settings.empty() && process.begin < fault.end && process.killed > by;
        if (!lives || by > history.end || history.stopped(pid, fault.end, by) > 0) {
            continue;
        }
        report.judge("T9");
        const auto recovered = std::any_of(history.holds.begin(), history.holds.end(), [&, p = pid](const Hold& hold) {
            return hold.first().pid == p && hold.first().t >= fault.end && hold.begin <= by &&
                   hold.ending == Hold::Ending::released;
        });
        if (!recovered) {
            report.add("T9", "", fault.end,
                       "process " + std::to_string(pid) + " locked and freed nothing within " + inMs(limit) +
                           " after the end of: " + fault.what);
        }
    }
}

/// R1. Reads: files, threads and subscriptions at the beginning and at the end.
void checkGivenBack(const History& history, Report& report)
{
    std::map<std::pair<int, std::string>, Record> before;
    for (const auto& record : history.records) {
        if (record.op == Op::resources && record.phase == Phase::invoke) {
            before[{record.pid, record.error}] = record;
        } else if (record.op == Op::resources && record.phase == Phase::ok) {
            const auto found = before.find({record.pid, record.error});
            report.judge("R1");
            const auto least = found == before.end() ? 0 : found->second.count.value_or(0);
            if (record.count.value_or(0) > least + report.limits.moreResources) {
                report.add("R1", "", record.t,
                           "more " + record.error + " at the end than at the beginning: " +
                               std::to_string(record.count.value_or(0)) + ", not " + std::to_string(least),
                           found == before.end() ? std::vector{record} : std::vector{found->second, record});
            }
        } else if (record.op == Op::quiet) {
            report.judge("R1");
            if (record.count.value_or(0) > 0) {
                report.add("R1", "", record.t,
                           std::to_string(*record.count) + " " + record.error + " are left in Redis", {record});
            }
        }
    }
}

/// How many permits were lost with killed processes: at least, and at most.
std::pair<std::int64_t, std::int64_t> lostPermits(const History& history, const std::string& lock)
{
    std::int64_t least = 0;
    std::int64_t most = 0;
    const auto wasKilled = [&](const Record& record) { return history.processes.at(record.pid).killed != never; };
    for (const auto& hold : history.holds) {
        if (hold.lock() == lock && !hold.kind().isLeased && wasKilled(hold.first())) {
            least += hold.ending == Hold::Ending::open ? hold.permits() : 0;
            most += hold.ending == Hold::Ending::released ? 0 : hold.permits();
        }
    }
    for (const auto& call : history.calls) {
        const bool isLockCall = call.invoke.op == Op::lock && call.invoke.lock == lock;
        const bool isUnknown = !call.end || call.end->phase == Phase::unknown; // the withdrawal may not have been sent
        if (isLockCall && isUnknown && !findKind(call.invoke.kind)->isLeased && wasKilled(call.invoke)) {
            most += call.invoke.permits.value_or(1);
        }
    }
    return {least, most};
}

/// S11 in the end. Reads: how many permits a semaphore was made with, and how many it has.
void checkPermits(const History& history, const Record& left, Report& report)
{
    report.judge("S11");
    const auto [least, most] = lostPermits(history, left.lock);
    const auto should = history.permits.at(left.lock) - least;
    if (*left.count > should || *left.count < should - (most - least)) {
        report.add("S11", left.lock, left.t,
                   "there are " + std::to_string(*left.count) + " permits in the end, not " +
                       std::to_string(should - (most - least)) + " to " + std::to_string(should),
                   {left});
    }
}

/// Whether a key may stay without a time to live, or for longer than a lease, according to doc/keys.md.
bool mayStay(const History& history, const Record& key)
{
    if (*key.count < 0) {
        const auto semaphore = semaphoreOfLeases(key.lock);
        return lockOfPrefixed(tokenKey, key.lock) || history.latches.count(key.lock) > 0 ||
               history.permits.count(semaphore.value_or(key.lock)) > 0;
    }
    return isOfAQueue(key.lock) || isWaitingWriter(key.lock) || lockOfPrefixed(requestKey, key.lock);
}

} // namespace

void checkDurations(const History& history, Report& report)
{
    std::map<Place, Nanoseconds> deadlines;
    for (const auto& call : history.calls) {
        checkDuration(history, call, deadlines, report);
    }
    for (const auto& fault : history.faults) {
        if (fault.end != never) {
            checkRecovery(history, fault, report);
        }
    }
}

void checkResources(const History& history, Report& report)
{
    checkGivenBack(history, report);
    for (const auto& record : history.records) {
        if (record.op == Op::permits && record.phase == Phase::ok) {
            checkPermits(history, record, report);
        }
        if (record.op != Op::leftKey || mayStay(history, record)) {
            continue;
        }
        if (record.count.value_or(0) < 0) {
            report.add("R4", record.lock, record.t, "a key without a time to live", {record});
        } else {
            report.add("S7", record.lock, record.t, "a key outlived everybody and its lease", {record});
        }
    }
}

} // namespace redislock::test::history
