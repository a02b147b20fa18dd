// "linearizable": the calls on a lock can be put in an order that a mutex allows, which is re-entrant and, for some
// kinds, shared. Reads: lock and unlock calls, losses; the replication stream says more exactly when each call took
// effect, and which grants no caller got.
#include "history/keys.hpp"
#include "history/linearizability.hpp"
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace redislock::test::history {
namespace {

/// A number for each hold. A read hold inside a write hold of its thread has the number of that write hold, also if the
/// write hold may have been over when the answer came.
class Owners {
public:
    int of(const Hold& hold)
    {
        auto& writer = writers_[{hold.first().pid, hold.first().thread, hold.lock()}];
        if (writer.hold != nullptr && hold.first().t < writer.hold->end && readsWhileItWrites(*writer.hold, hold)) {
            return writer.number;
        }
        ++last_;
        if (hold.kind().name == "write") {
            writer = {&hold, last_};
            byClient_[{hold.first().client, hold.lock()}].push_back(writer);
        }
        return last_;
    }

    /// The owner of a grant that no caller got. Only its client can tell whether it is a read hold inside a write hold.
    int of(const Grant& grant)
    {
        for (const auto& writer : byClient_[{clientOf(grant.holder), grant.lock}]) {
            if (grant.shares && writer.hold->begin <= grant.made.t && grant.made.t < writer.hold->end) {
                return writer.number;
            }
        }
        return ++last_;
    }

private:
    struct Writer {
        const Hold* hold = nullptr;
        int number = 0;
    };

    int last_ = 0;
    std::map<std::tuple<int, int, std::string>, Writer> writers_; ///< the last of each thread
    std::map<std::pair<std::string, std::string>, std::vector<Writer>> byClient_;
};

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
        const auto operation = [owner, permits = hold.permits(), shares = !hold.kind().takesAll](Operation::Kind kind) {
            return Operation{.kind = kind, .owner = owner, .permits = permits, .shares = shares};
        };
        auto levels = hold.locks.size();
        for (const auto& call : hold.locks) {
            const bool outermost = &call == &hold.locks.front();
            auto begin = call.invoke.t;
            auto end = call.returned();
            if (outermost && grant != nullptr && !hold.wasPassedToIt) {
                begin = std::min(end, std::max(begin, executed(*grant, call.lease())));
                end = std::max(begin, std::min(end, grant->made.t));
            }
            operations.push_back({{operation(Operation::Kind::acquire), begin, end}, *call.end});
        }
        for (const auto& call : hold.unlocks) {
            if (call.end && call.end->error == "stillHeld" && levels > 1) {
                operations.push_back(
                    {{operation(Operation::Kind::release), call.invoke.t, call.returned()}, *call.end});
                --levels;
            }
        }
        for (; levels > 0; --levels) {
            operations.push_back(
                {{operation(Operation::Kind::release), hold.end, std::max(hold.end, endOf(hold, grant))},
                 hold.unlocks.empty() ? hold.samples.back() : hold.unlocks.back().invoke});
        }
    }

    void add(const Grant& grant, int owner)
    {
        auto& operations = byLock_[grant.lock];
        const auto begin = std::min(grant.made.t, executed(grant, history_.longestLease));
        const auto end = grant.freed ? grant.freed->t : never;
        operations.push_back(
            {{{.kind = Operation::Kind::acquire, .owner = owner, .shares = grant.shares}, begin, grant.made.t},
             grant.made});
        operations.push_back(
            {{{.kind = Operation::Kind::release, .owner = owner, .shares = grant.shares}, begin, end}, grant.made});
    }

    [[nodiscard]] const auto& byLock() const { return byLock_; }

private:
    /// The earliest time at which the grant was executed.
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
    Owners owners;
    for (const auto& hold : history.holds) {
        if (!hold.kind().isGroup) {
            operations.add(hold, owners.of(hold));
        }
    }
    for (const auto& grant : history.grants) {
        if (!grant.hold && !history.isOfAGroup(grant.lock)) { // it is only known that each of these excluded all others
            operations.add(grant, owners.of(grant));
        }
    }
    for (const auto& [lock, attributed] : operations.byLock()) {
        std::vector<TimedOperation> timed;
        for (const auto& each : attributed) {
            timed.push_back(each.operation);
        }
        const auto permits = history.permits.find(lock);
        const auto result = permits == history.permits.end() ? linearize(SharedMutex{}, timed)
                                                             : linearize(Permits{.configured = permits->second}, timed);
        if (result.verdict == Linearization::Verdict::impossible) {
            const auto& record = attributed[result.failedAt].record;
            report.add("linearizable", lock, record.t, "no order of the calls is one of such a lock", {record});
        } else if (result.verdict == Linearization::Verdict::undecided) {
            throw Refused(lock + ": too many orders are possible to look at all of them");
        }
        report.linearized += timed.size();
        report.judge("linearizable", timed.size());
    }
}

} // namespace redislock::test::history
