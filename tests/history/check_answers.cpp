// S6: counts are exact. S8: the answer is never "held" after the deadline or the unlock. S9: lost is final. T2: a hold
// that is over is not renewed any more.
#include "history/report.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

/// S6. Reads: the count that each call returned with, against the calls before it; the counts that HSET wrote.
class Counter {
public:
    Counter(const History& history, Report& report) : history_(history), report_(report) {}

    void take(const Call& call)
    {
        if (!call.end) {
            return;
        }
        const auto& end = *call.end;
        auto& count = counts_[placeOf(end)];
        if (call.invoke.op == Op::lock) {
            locked(call, count);
        } else if (end.phase == Phase::fail) {
            expect(call, count, 0, "an unlock was refused to a holder");
        } else if (end.error == "stillHeld") {
            if (end.count == 0 && mayBeLost(call)) { // the remaining level was over when the answer came
                count = 0;
                return;
            }
            expect(call, end.count.value_or(0), count - 1, "wrong count after the end of a nested level");
            count = end.count.value_or(0);
        } else if (end.error == "released" || end.error == "passedOn") {
            // the unlocks of levels that were lost before are still owed, and return alreadyLost
            if (!outerLevelsAreOver(call, count)) {
                expect(call, count, 1, "released with another count than 1");
            }
            count = 0;
        } else {
            count = end.count.value_or(0);
        }
    }

private:
    void locked(const Call& call, std::int64_t& count)
    {
        if (!call.succeeded() || !call.end->count) {
            return;
        }
        const auto now = *call.end->count;
        auto& ends = ends_[placeOf(*call.end)];
        ends.resize(static_cast<std::size_t>(std::max<std::int64_t>(now, 1)), never);
        ends.back() = call.invoke.error == "fixed" ? call.end->deadline.value_or(never) : never;
        if (findKind(call.invoke.kind)->isGroup) { // never nested; S13 judges whether the hold before was over
            count = now;
            return expect(call, std::max<std::int64_t>(now, 1), 1, "wrong count after a lock");
        }
        // If the hold was lost meanwhile this is a new hold; if it is already over, it has no levels.
        if (now > 1 || (now == 1 && count > 0 && !mayBeLost(call))) {
            expect(call, now, count + 1, "wrong count after a lock");
        }
        count = now;
    }

    /// Whether nothing was left when the innermost of several levels ended, because the leases of the others were over.
    [[nodiscard]] bool outerLevelsAreOver(const Call& call, std::int64_t count)
    {
        const auto& ends = ends_[placeOf(*call.end)];
        if (count < 2 || static_cast<std::size_t>(count) > ends.size()) {
            return false;
        }
        return std::all_of(ends.begin(), ends.begin() + (count - 1),
                           [&](Nanoseconds end) { return end <= call.end->t; });
    }

    /// Whether the hold before this call may have been over when it was made.
    [[nodiscard]] bool mayBeLost(const Call& call) const
    {
        const auto found = std::find_if(history_.holds.begin(), history_.holds.end(), [&](const Hold& hold) {
            return hold.ending == Hold::Ending::lost && placeOf(hold.first()) == placeOf(call.invoke) &&
                   hold.begin <= call.invoke.t && hold.end <= call.returned() &&
                   (hold.deadline <= call.returned() || hold.lostAt != never);
        });
        return found != history_.holds.end();
    }

    void expect(const Call& call, std::int64_t is, std::int64_t should, const std::string& what)
    {
        report_.judge("S6");
        if (is != should) {
            report_.add("S6", call.invoke.lock, call.end->t,
                        what + ": " + std::to_string(is) + ", not " + std::to_string(should), {call.invoke, *call.end});
        }
    }

    const History& history_;
    Report& report_;
    std::map<Place, std::int64_t> counts_;
    std::map<Place, std::vector<Nanoseconds>> ends_; ///< of the levels, when they were taken
};

/// S6 in Redis. Reads: HSET of the holder up to the answer; DEL after an unlock that returned "released".
void checkServerCounts(const History& history, const Hold& hold, Report& report)
{
    if (!hold.grant) {
        return;
    }
    const auto& grant = history.grants[*hold.grant];
    for (const auto& call : hold.locks) {
        const auto count = call.end->count.value_or(1);
        if (count > 1 && std::find(grant.counts.begin(), grant.counts.end(), count) == grant.counts.end()) {
            report.add("S6", hold.lock(), call.end->t, "Redis never had the count " + std::to_string(count),
                       {grant.made, *call.end});
        }
    }
    if (hold.ending == Hold::Ending::released && grant.how == Grant::Freed::open) {
        const auto& end = hold.unlocks.back();
        if (end.end && history.bootOf(grant.expiresMs()) > end.end->t &&
            history.end > end.end->t + report.limits.slack) {
            report.add("S6", hold.lock(), end.end->t, "released, but Redis kept it", {grant.made, *end.end});
        }
    }
}

/// S8 and S9 for a thread. Reads: samples and the calls between them.
class Teller {
public:
    explicit Teller(Report& report) : report_(report) {}

    void take(const Record& record)
    {
        auto& state = states_[placeOf(record)];
        if (record.op == Op::lock && record.phase == Phase::ok) {
            state = {record, record.count.value_or(1), false};
        } else if (record.op == Op::unlock && record.phase != Phase::invoke) {
            state.levels = record.count.value_or(state.levels);
        } else if (record.op == Op::sample) {
            sample(record, state);
        }
    }

private:
    struct State {
        Record last{};
        std::int64_t levels = 0;
        bool lost = false;
    };

    void sample(const Record& record, State& state)
    {
        const bool held = record.saysHeld();
        report_.judge("S8");
        report_.judge("S9", state.lost ? 1 : 0);
        if (held && state.levels == 0) {
            report_.add("S8", record.lock, record.t, "said to be held without a hold", {state.last, record});
        }
        if (held && state.lost) {
            report_.add("S9", record.lock, record.t, "held again after its loss", {state.last, record});
        }
        state.lost = state.lost || !held;
        state.last = record;
    }

    Report& report_;
    std::map<Place, State> states_;
};

/// S8 and S9 for a hold. Reads: the observer's events about the holder, and the samples.
void checkTold(const Hold& hold, Report& report)
{
    for (const auto& sample : hold.samples) {
        if (sample.op == Op::sample && hold.lostAt < sample.t) {
            report.add("S8", hold.lock(), sample.t, "said to be held after its loss was told", {sample});
            return;
        }
    }
}

/// S9. Reads: the order of the observer's events.
void checkFinality(const History& history, Report& report)
{
    for (const auto& [holder, records] : history.told) {
        const Record* over = nullptr;
        const Record* passed = nullptr; // then the next hold of the holder begins at once
        for (const auto& record : records) {
            report.judge("S9", over != nullptr ? 1 : 0);
            if (passed != nullptr && record.op != Op::acquired) {
                report.add("S9", record.lock, record.t, "passed on, and nobody has it", {*passed, record});
                break;
            }
            passed = nullptr;
            if (over != nullptr && (record.op == Op::renewed || record.op == Op::acquired)) {
                report.add("S9", record.lock, record.t, std::string(nameOf(record.op)) + " after its end",
                           {*over, record});
                break;
            }
            if (record.op == Op::released && record.error == "passedOn") {
                passed = &record;
            } else if (record.op == Op::lost || record.op == Op::released) {
                over = &record;
            }
        }
    }
}

/// S9 in Redis. Reads: PEXPIREAT long after the end of the belief, if nothing held a request back.
void checkLateRenewals(const History& history, const Hold& hold, Report& report)
{
    const auto pid = hold.first().pid;
    if (!hold.grant || !hold.isRenewed() || hold.wasPassedOn || hold.ending == Hold::Ending::open) {
        return;
    }
    const auto patience = history.setting(pid, "commandTimeout", 0) + report.limits.slack;
    for (const auto& expiry : history.grants[*hold.grant].expiries) {
        const auto executed = history.bootOf(*expiry.expiresMs) - hold.longestLease();
        if (executed > hold.end + patience && !history.disturbed(hold.end, executed, 0)) {
            report.add("S9", hold.lock(), expiry.t, "renewed after its end", {hold.samples.back(), expiry});
            return;
        }
    }
}

/// T2. Reads: the renewals that the server executed, whether they found the hold or not, if nothing held a request
/// back.
void checkRequests(const History& history, const Hold& hold, Report& report)
{
    const auto found = history.requests.find(hold.holder);
    if (found == history.requests.end() || hold.wasPassedOn || hold.ending == Hold::Ending::open) {
        return;
    }
    const auto patience = history.setting(hold.first().pid, "commandTimeout", 0) + report.limits.slack;
    for (const auto& request : found->second) {
        report.judge("T2", request.error == "renew" ? 1 : 0);
        if (request.error == "renew" && request.t > hold.end + patience && !history.disturbed(hold.end, request.t, 0)) {
            report.add("T2", hold.lock(), request.t, "the watchdog asks for a hold that is over",
                       {hold.samples.back(), request});
            return;
        }
    }
}

} // namespace

void checkAnswers(const History& history, Report& report)
{
    Counter counter(history, report);
    std::vector<const Call*> byReturn;
    for (const auto& call : history.calls) {
        byReturn.push_back(&call);
    }
    std::stable_sort(byReturn.begin(), byReturn.end(),
                     [](const Call* a, const Call* b) { return a->returned() < b->returned(); });
    for (const auto* call : byReturn) {
        counter.take(*call);
    }
    Teller teller(report);
    for (const auto& record : history.records) {
        teller.take(record);
    }
    for (const auto& hold : history.holds) {
        checkServerCounts(history, hold, report);
        checkTold(hold, report);
        checkLateRenewals(history, hold, report);
        checkRequests(history, hold, report);
    }
    checkFinality(history, report);
}

} // namespace redislock::test::history
