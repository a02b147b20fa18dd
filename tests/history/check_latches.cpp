// S12: a latch opens when as many count-downs as it was made for have counted, never before, and stays open.
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

/// The calls of a latch that is made once.
struct Latch {
    std::int64_t count = 0;
    std::vector<const Call*> countDowns{}; ///< by the time of the invoke
    std::vector<const Call*> waits{};

    /// How many count-downs had returned to their callers by a moment.
    [[nodiscard]] std::int64_t counted(Nanoseconds by) const
    {
        return std::count_if(countDowns.begin(), countDowns.end(),
                             [&](const Call* call) { return call->succeeded() && call->returned() <= by; });
    }
    /// How many count-downs may have counted by a moment.
    [[nodiscard]] std::int64_t asked(Nanoseconds by) const
    {
        return std::count_if(countDowns.begin(), countDowns.end(),
                             [&](const Call* call) { return call->invoke.t <= by; });
    }
};

/// Reads: await, against the count-downs before it.
void checkWait(const Latch& latch, const Call& wait, Report& report)
{
    const auto& lock = wait.invoke.lock;
    if (!wait.end || wait.end->phase == Phase::unknown) {
        return;
    }
    report.judge("S12");
    if (wait.succeeded() && latch.asked(wait.returned()) < latch.count) {
        report.add("S12", lock, wait.returned(), "open after too few count-downs", {wait.invoke, *wait.end});
    } else if (!wait.succeeded() && latch.counted(wait.invoke.t) >= latch.count) {
        report.add("S12", lock, wait.returned(), "closed after enough count-downs", {wait.invoke, *wait.end});
    }
}

/// Reads: the results of count-downs. Each has its own number on the way down to zero.
void checkCounts(const Latch& latch, Report& report)
{
    std::map<std::int64_t, const Call*> leftBy;
    for (const auto* call : latch.countDowns) {
        if (!call->succeeded()) {
            continue;
        }
        report.judge("S12");
        const auto left = *call->end->count;
        const auto [other, isNew] = leftBy.try_emplace(left, call);
        const bool mayBeTold = left >= std::max<std::int64_t>(0, latch.count - latch.asked(call->returned())) &&
                               left <= std::max<std::int64_t>(0, latch.count - latch.counted(call->invoke.t) - 1);
        if ((left > 0 && !isNew) || !mayBeTold) {
            report.add("S12", call->invoke.lock, call->returned(),
                       "a count-down left " + std::to_string(left) + ", which cannot be",
                       {*other->second->end, *call->end});
        }
    }
}

/// Reads: the count that is left in the end, 0 if the latch is open.
void checkRest(const Latch& latch, const Record& rest, Report& report)
{
    report.judge("S12");
    const auto most = std::max<std::int64_t>(0, latch.count - latch.counted(rest.t));
    const auto least = std::max<std::int64_t>(0, latch.count - latch.asked(rest.t));
    if (*rest.count > most || *rest.count < least) {
        report.add("S12", rest.lock, rest.t,
                   "the count is " + std::to_string(*rest.count) + " in the end, not " + std::to_string(least) +
                       " to " + std::to_string(most),
                   {rest});
    }
}

} // namespace

void checkLatches(const History& history, Report& report)
{
    std::map<std::string, Latch> latches;
    for (const auto& [lock, count] : history.latches) {
        latches[lock].count = count;
    }
    for (const auto& call : history.latchCalls) {
        auto& latch = latches[call.invoke.lock];
        (call.invoke.op == Op::await ? latch.waits : latch.countDowns).push_back(&call);
    }
    for (const auto& [lock, latch] : latches) {
        checkCounts(latch, report);
        for (const auto* wait : latch.waits) {
            checkWait(latch, *wait, report);
        }
    }
    for (const auto& record : history.records) {
        if (record.op == Op::latch && record.phase == Phase::ok) {
            checkRest(latches[record.lock], record, report);
        }
    }
}

} // namespace redislock::test::history
