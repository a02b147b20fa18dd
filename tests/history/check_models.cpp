// "linearizable": the calls on a lock can be put in an order that a re-entrant mutex allows. Reads: lock and unlock
// calls, losses; the replication stream says more exactly when each took effect, and what happened for nobody.
#include "history/linearizability.hpp"
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace redislock::test::history {
namespace {

using Kind = Operation::Kind;

struct Attributed {
    TimedOperation operation;
    Record record;
};

class Operations {
public:
    explicit Operations(const History& history) : history_(history) {}

    void add(const Hold& hold, int owner)
    {
        const auto* grant = hold.grant ? &history_.grants[*hold.grant] : nullptr;
        if (hold.isEmpty() && grant == nullptr) {
            return;
        }
        auto& operations = byLock_[hold.lock()];
        auto levels = hold.locks.size();
        for (const auto& call : hold.locks) {
            const bool outermost = &call == &hold.locks.front();
            auto begin = call.invoke.t;
            auto end = call.returned();
            if (outermost && grant != nullptr) {
                begin = std::min(end, std::max(begin, executed(*grant, call.lease())));
                end = std::max(begin, std::min(end, grant->made.t));
            }
            operations.push_back({{{Kind::acquire, owner}, begin, end}, *call.end});
        }
        for (const auto& call : hold.unlocks) {
            if (call.end && call.end->error == "stillHeld" && levels > 1) {
                operations.push_back({{{Kind::release, owner}, call.invoke.t, call.returned()}, *call.end});
                --levels;
            }
        }
        for (; levels > 0; --levels) {
            operations.push_back({{{Kind::release, owner}, hold.end, std::max(hold.end, endOf(hold, grant))},
                                  hold.unlocks.empty() ? hold.samples.back() : hold.unlocks.back().invoke});
        }
    }

    void add(const Grant& grant, int owner)
    {
        auto& operations = byLock_[grant.lock];
        const auto begin = std::min(grant.made.t, executed(grant, history_.longestLease));
        operations.push_back({{{Kind::acquire, owner}, begin, grant.made.t}, grant.made});
        operations.push_back({{{Kind::release, owner}, begin, grant.freed ? grant.freed->t : never}, grant.made});
    }

    [[nodiscard]] const auto& byLock() const { return byLock_; }

private:
    /// Not before this.
    [[nodiscard]] Nanoseconds executed(const Grant& grant, Nanoseconds lease) const
    {
        return grant.expiries.empty() ? 0 : history_.bootOf(*grant.expiries.front().expiresMs) - lease - millisecond;
    }

    static Nanoseconds endOf(const Hold& hold, const Grant* grant)
    {
        auto end = hold.ending == Hold::Ending::released ? hold.unlocks.back().returned() : never;
        if (grant != nullptr && grant->freed) {
            end = std::min(end, grant->freed->t);
        }
        return end;
    }

    const History& history_;
    std::map<std::string, std::vector<Attributed>> byLock_;
};

} // namespace

void checkModels(const History& history, Report& report)
{
    Operations operations(history);
    int owner = 0;
    for (const auto& hold : history.holds) {
        operations.add(hold, ++owner);
    }
    for (const auto& grant : history.grants) {
        if (!grant.hold) {
            operations.add(grant, ++owner);
        }
    }
    for (const auto& [lock, attributed] : operations.byLock()) {
        std::vector<TimedOperation> timed;
        for (const auto& each : attributed) {
            timed.push_back(each.operation);
        }
        const auto result = linearize(ReentrantMutex{}, timed);
        if (result.verdict == Linearization::Verdict::impossible) {
            const auto& record = attributed[result.failedAt].record;
            report.add("linearizable", lock, record.t, "no order of the calls is one of a mutex", {record});
        } else if (result.verdict == Linearization::Verdict::undecided) {
            throw Refused(lock + ": too many orders are possible to look at all of them");
        }
        report.linearized += timed.size();
        report.judge("linearizable", timed.size());
    }
}

} // namespace redislock::test::history
