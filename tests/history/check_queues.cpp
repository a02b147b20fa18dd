// T6: a fair lock is granted in the order of asking, to waiters that go on asking. check_times.cpp judges the cost of
// dead waiters.
#include "history/keys.hpp"
#include "history/report.hpp"

#include <map>
#include <string>
#include <utility>

namespace redislock::test::history {
namespace {

/// Reads: HSET of a new holder, against the places and ZREM of the queue before it.
void checkTurn(const Grant& grant, Report& report)
{
    if (grant.turnOf.empty()) {
        return;
    }
    report.judge("T6");
    if (grant.turnOf != grant.holder) {
        report.add("T6", grant.lock, grant.made.t, "granted out of turn, before " + grant.turnOf, {grant.made});
    }
}

/// Reads: ZREM of the first in the queue without a grant, against the place before it, and the places after it.
void checkPlace(const History& history, const Waiter& waiter, const Waiter* again, Report& report)
{
    if (waiter.how != Waiter::Leaving::removed) {
        return;
    }
    const auto& lock = waiter.came.lock;
    const auto& removed = *waiter.left;
    report.judge("T6");
    if (const auto early = history.bootOf(*waiter.asked.expiresMs) - removed.t; early > millisecond) {
        report.add("T6", lock, removed.t, "a waiter lost its place " + inMs(early) + " before its time",
                   {waiter.asked, removed});
        return;
    }
    const auto pid = history.pidOf.find(clientOf(waiter.came.holder));
    const bool isKnown = pid != history.pidOf.end();
    if (again != nullptr && isKnown && !history.disturbed(waiter.asked.t, removed.t, pid->second)) {
        report.add("T6", lock, removed.t, "a waiter lost its place, and was alive",
                   {waiter.asked, removed, again->came});
    }
}

} // namespace

void checkQueues(const History& history, Report& report)
{
    for (const auto& grant : history.grants) {
        checkTurn(grant, report);
    }
    std::map<std::pair<std::string, std::string>, const Waiter*> later;
    for (auto waiter = history.waiters.rbegin(); waiter != history.waiters.rend(); ++waiter) {
        const auto*& again = later[{waiter->came.lock, waiter->came.holder}];
        checkPlace(history, *waiter, again, report);
        again = &*waiter;
    }
}

} // namespace redislock::test::history
