// S4: fencing tokens grow from grant to grant.
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace redislock::test::history {
namespace {

std::string inWords(std::int64_t token, std::int64_t last)
{
    return std::to_string(token) + " after " + std::to_string(last);
}

/// S4 in Redis. Reads: HSET of a new holder and the token that the same script set.
void checkGrants(const History& history, Report& report)
{
    std::map<std::string, const Grant*> latest;
    for (const auto& grant : history.grants) {
        if (!grant.token) {
            continue;
        }
        const auto*& last = latest[grant.lock];
        report.judge("S4", last != nullptr ? 1 : 0);
        if (last != nullptr && *grant.token <= *last->token) {
            report.add("S4", grant.lock, grant.made.t,
                       "a grant has no greater token than the one before it: " + inWords(*grant.token, *last->token),
                       {last->made, grant.made});
        }
        last = &grant;
    }
}

/// S4 for the tokens that callers got, in the order of their beliefs. Reads: lock ok of all levels, and the grant.
void checkHolds(const History& history, Report& report)
{
    std::map<std::string, const Record*> latest;
    for (const auto& hold : history.holds) {
        const auto& given = *hold.locks.front().end;
        if (!given.token || hold.isEmpty()) {
            continue;
        }
        const auto*& last = latest[hold.lock()];
        report.judge("S4", last != nullptr ? 1 : 0);
        if (last != nullptr && *given.token <= *last->token) {
            report.add("S4", hold.lock(), hold.begin,
                       "no greater token than of the hold before it: " + inWords(*given.token, *last->token),
                       {*last, given});
        }
        last = &given;
        for (const auto& call : hold.locks) {
            if (call.end->token && *call.end->token != *given.token) {
                report.add("S4", hold.lock(), call.end->t, "a nested level has another token", {given, *call.end});
            }
        }
        const auto* grant = hold.grant ? &history.grants[*hold.grant] : nullptr;
        const auto isOther = [&](const Grant& each) { // a copy of the request may be granted after the release
            return each.lock != grant->lock || each.holder != grant->holder || each.token != given.token;
        };
        if (grant != nullptr && grant->token && std::ranges::all_of(history.grants, isOther)) {
            report.add("S4", hold.lock(), hold.begin,
                       "another token than that of its grant: " + std::to_string(*given.token) + ", not " +
                           std::to_string(*grant->token),
                       {grant->made, given});
        }
    }
}

} // namespace

void checkFences(const History& history, Report& report)
{
    checkGrants(history, report);
    checkHolds(history, report);
}

} // namespace redislock::test::history
