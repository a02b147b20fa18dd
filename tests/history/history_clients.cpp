// Makes calls and holds from the lines of the clients.
#include "history/history_parts.hpp"
#include "redislock/error.hpp"

#include <algorithm>

namespace redislock::test::history {
namespace {

class ClientReader {
public:
    explicit ClientReader(History& history) : history_(history) {}

    void take(const Record& record)
    {
        if (record.op == Op::lock || record.op == Op::unlock || isOfALatch(record)) {
            return record.phase == Phase::invoke ? begin(record) : end(record);
        }
        if (record.op == Op::sample) {
            return sample(record);
        }
        if (record.op == Op::request) {
            history_.requests[record.holder].push_back(record);
        } else if (!record.holder.empty() && record.phase == Phase::event && record.offset == std::nullopt) {
            history_.told[record.holder].push_back(record);
        }
    }

    /// Handles calls that never returned. Their effect is not known, but a belief ends with the call of unlock().
    void finish()
    {
        for (auto& [thread, call] : pending_) {
            if (auto* hold = openHold(call.invoke); hold != nullptr && call.invoke.op == Op::unlock) {
                hold->unlocks.push_back(call);
                close(*hold, Hold::Ending::unconfirmed, call.invoke.t);
            }
            (isOfALatch(call.invoke) ? history_.latchCalls : history_.calls).push_back(std::move(call));
        }
        for (auto* calls : {&history_.calls, &history_.latchCalls}) {
            std::stable_sort(calls->begin(), calls->end(),
                             [](const Call& a, const Call& b) { return a.invoke.t < b.invoke.t; });
        }
    }

private:
    using Thread = std::pair<int, int>;

    static bool isOfALatch(const Record& record) { return record.op == Op::countDown || record.op == Op::await; }

    void begin(const Record& record)
    {
        const Thread thread{record.pid, record.thread};
        if (!pending_.try_emplace(thread, Call{record}).second) {
            throw Refused(record.source() + ": a thread cannot make two calls at a time");
        }
    }

    void end(const Record& record)
    {
        const auto found = pending_.find({record.pid, record.thread});
        if (found == pending_.end() || found->second.invoke.op != record.op) {
            throw Refused(record.source() + ": the end of a call that did not begin");
        }
        Call call = std::move(found->second);
        pending_.erase(found);
        call.end = record;
        if (isOfALatch(record)) {
            history_.latchCalls.push_back(std::move(call));
            return;
        }
        if (call.invoke.op == Op::unlock) {
            unlocked(call);
        } else if (call.succeeded()) {
            locked(call);
        } else if (auto* hold = openHold(record);
                   hold != nullptr && record.error == make_error_code(Errc::lost).message()) {
            close(*hold, Hold::Ending::lost, call.invoke.t);
        }
        history_.calls.push_back(std::move(call));
    }

    void locked(const Call& call)
    {
        const auto& end = *call.end;
        Hold* hold = openHold(end);
        if (hold == nullptr || end.count.value_or(1) <= 1) {
            if (hold != nullptr) {
                close(*hold, Hold::Ending::lost, call.invoke.t);
            }
            open_[placeOf(end)] = history_.holds.size();
            hold = &history_.holds.emplace_back();
            hold->begin = end.t;
            hold->holder = end.holder;
        }
        hold->locks.push_back(call);
        hold->levels.push_back(end.deadline.value_or(never));
        believed(*hold, end);
    }

    void unlocked(const Call& call)
    {
        Hold* hold = openHold(call.invoke);
        const auto& end = *call.end;
        if (hold == nullptr || end.phase == Phase::fail) {
            return;
        }
        hold->unlocks.push_back(call);
        const bool nested = end.error == "stillHeld" || end.count.value_or(0) > 0;
        if (end.error == "alreadyLost") {
            close(*hold, Hold::Ending::lost, call.invoke.t);
        } else if (nested) {
            endLevel(*hold, end);
        } else {
            close(*hold, end.phase == Phase::unknown ? Hold::Ending::unconfirmed : Hold::Ending::released,
                  call.invoke.t);
        }
    }

    /// The remaining levels have the deadline that they had before, or a later one, which a sample will show.
    void endLevel(Hold& hold, const Record& end)
    {
        if (hold.levels.size() > 1) {
            hold.levels.pop_back();
            hold.deadline = hold.levels.back();
        }
        if (end.count.value_or(1) == 0) { // and that is over already
            close(hold, Hold::Ending::lost, end.t);
        }
    }

    void sample(const Record& record)
    {
        Hold* hold = openHold(record);
        if (hold == nullptr) {
            return;
        }
        if (record.saysHeld()) {
            believed(*hold, record);
        } else {
            close(*hold, Hold::Ending::lost, record.t);
        }
    }

    static void believed(Hold& hold, const Record& record)
    {
        hold.samples.push_back(record);
        hold.deadline = std::max(hold.deadline, record.deadline.value_or(never));
    }

    /// @param latest the latest possible end of the belief.
    void close(Hold& hold, Hold::Ending ending, Nanoseconds latest)
    {
        hold.ending = ending;
        hold.end = latest;
        open_.erase(placeOf(hold.first()));
    }

    Hold* openHold(const Record& record)
    {
        const auto found = open_.find(placeOf(record));
        return found == open_.end() ? nullptr : &history_.holds[found->second];
    }

    History& history_;
    std::map<Thread, Call> pending_;
    std::map<Place, std::size_t> open_;
};

} // namespace

void readClients(History& history)
{
    ClientReader reader(history);
    for (const auto& record : history.records) {
        reader.take(record);
    }
    reader.finish();
}

} // namespace redislock::test::history
