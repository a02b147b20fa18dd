// S1, S10, S11: no more owners believe at a time than the lock allows. S2: an owner that believes is the holder in
// Redis. S3: a deadline is before Redis' own expiry.
#include "history/report.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

/// The capacity of a lock, and the part of it that a belief takes.
constexpr std::int64_t unlimited = 1'000'000'000;

std::int64_t capacityOf(const History& history, const Hold& hold)
{
    const auto permits = history.permits.find(hold.lock());
    return permits != history.permits.end() ? permits->second : hold.kind().exclusion == "S1" ? 1 : unlimited;
}

std::int64_t takenBy(const Hold& hold)
{
    return hold.kind().takesAll ? unlimited : hold.permits();
}

/// S1, S10, S11. Reads: lock ok, unlock invoke, samples, losses, deadlines; not the stream.
void checkExclusion(const History& history, Report& report)
{
    std::map<std::string, std::vector<const Hold*>> swept; // by lock: holds that may last, and the last before them
    for (const auto& hold : history.holds) {
        if (hold.isEmpty() || hold.kind().isGroup) {
            continue;
        }
        auto& others = swept[hold.lock()];
        report.judge(hold.kind().exclusion, others.empty() ? 0 : 1);
        std::erase_if(others, [&](const Hold* other) { return other->end <= hold.begin; });
        std::int64_t taken = 0; // by others
        const Hold* last = nullptr;
        for (const auto* other : others) {
            if (!readsWhileItWrites(*other, hold)) {
                taken += takenBy(*other);
                last = last == nullptr || other->end > last->end ? other : last;
            }
        }
        if (taken > 0 && taken + takenBy(hold) > capacityOf(history, hold)) {
            report.add(std::string(hold.kind().exclusion), hold.lock(), hold.begin,
                       "more believed at the same time than the lock is for, for " +
                           inMs(std::min(hold.end, last->end) - hold.begin),
                       {last->samples.front(), last->samples.back(), hold.samples.front(), hold.samples.back()});
        }
        others.push_back(&hold);
    }
}

/// S2. Reads: the same, and HSET, PEXPIREAT and DEL of the holder.
void checkTruth(const History& history, const Hold& hold, Report& report)
{
    report.judge("S2");
    if (!hold.grant) {
        report.add("S2", hold.lock(), hold.begin, "believed without a grant in Redis", {hold.samples.front()});
        return;
    }
    const auto& grant = history.grants[*hold.grant];
    ++report.holdsCompared;
    if (grant.freed && grant.freed->t < hold.end) {
        report.add("S2", hold.lock(), hold.end,
                   "believed " + inMs(hold.end - grant.freed->t) + " longer than Redis had the holder",
                   {grant.made, *grant.freed, hold.samples.back()});
        return;
    }
    std::int64_t latest = 0;
    for (const auto& expiry : grant.expiries) {
        latest = std::max(latest, *expiry.expiresMs);
    }
    if (!grant.expiries.empty() && history.bootOf(latest + 1) < hold.end) {
        report.add("S2", hold.lock(), hold.end,
                   "believed " + inMs(hold.end - history.bootOf(latest + 1)) + " longer than the key could live",
                   {grant.made, grant.expiries.back(), hold.samples.back()});
    }
}

/// S3. Reads: the deadlines that were seen, the expiries that may have been set before. An expiry was set at the latest
/// when it came in the stream, and at the earliest one lease before its own time.
void checkDeadlines(const History& history, const Hold& hold, Report& report)
{
    const auto& grant = history.grants[*hold.grant];
    const auto watchdog = history.setting(hold.first().pid, "watchdogTimeout", 0);
    const auto lease = hold.isRenewed() ? std::max(hold.longestLease(), watchdog) : hold.longestLease();
    for (const auto& sample : hold.samples) {
        std::int64_t expires = 0;
        for (const auto& expiry : grant.expiries) {
            if (history.bootOf(*expiry.expiresMs) - lease <= sample.t + millisecond) {
                expires = std::max(expires, *expiry.expiresMs);
            }
        }
        if (expires == 0 || !sample.deadline) {
            continue;
        }
        ++report.deadlinesCompared;
        report.judge("S3");
        if (const auto margin = history.bootOf(expires - 1) - *sample.deadline; margin < 0) {
            report.add("S3", hold.lock(), sample.t, "the deadline is " + inMs(-margin) + " too late",
                       {grant.made, grant.expiries.back(), sample});
            return;
        }
    }
}

} // namespace

void checkBeliefs(const History& history, Report& report)
{
    checkExclusion(history, report);
    if (!history.hasTruth) {
        return;
    }
    for (const auto& hold : history.holds) {
        if (hold.isEmpty() || !hold.kind().isLeased || hold.kind().isGroup) {
            continue;
        }
        checkTruth(history, hold, report);
        if (hold.grant) {
            checkDeadlines(history, hold, report);
        }
    }
}

} // namespace redislock::test::history
