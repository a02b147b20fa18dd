#include "history/history.hpp"

#include "history/history_parts.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace redislock::test::history {
namespace {

void takeClock(History& history, Nanoseconds wallMinusBoot)
{
    const auto first = history.wallMinusBoot.value_or(wallMinusBoot);
    history.wallMinusBoot = first;
    history.clockMoved = std::max(history.clockMoved, std::abs(wallMinusBoot - first));
}

void readSurroundings(History& history)
{
    std::map<std::string, std::size_t> open; // faults by name
    std::vector<const Record*> cut;
    for (const auto& record : history.records) {
        auto& process = history.processes[record.pid];
        process.begin = process.begin == 0 ? record.t : process.begin;
        if (!record.client.empty()) {
            history.pidOf.try_emplace(record.client, record.pid);
        }
        if (!record.kind.empty()) {
            history.kindOf.try_emplace(record.lock, record.kind);
        }
        history.longestLease = std::max(history.longestLease, record.leaseMs.value_or(0) * millisecond);
        switch (record.op) {
        case Op::settings:
            process.settings[record.error] = record.count.value_or(0) * millisecond;
            break;
        case Op::killed:
            process.killed = std::min(process.killed, record.t);
            break;
        case Op::stopped:
            process.stops.push_back({record.t, never, "stopped"});
            break;
        case Op::resumed:
            if (!process.stops.empty()) {
                process.stops.back().end = record.t;
            }
            break;
        case Op::starved:
            history.starved.push_back({record.t - *record.count * millisecond, record.t, "starved"});
            break;
        case Op::fault:
            if (record.phase == Phase::invoke) {
                open[record.error] = history.faults.size();
                history.faults.push_back({record.t, never, record.error});
            } else if (const auto found = open.find(record.error); found != open.end()) {
                history.faults[found->second].end = record.t;
            }
            break;
        case Op::latch:
            history.latches.try_emplace(record.lock, *record.count);
            break;
        case Op::member: {
            auto& group = history.groups[record.lock];
            group.members.insert(record.error);
            group.needed = static_cast<std::size_t>(*record.count);
            break;
        }
        case Op::permits:
            history.permits.try_emplace(record.lock, *record.count);
            break;
        case Op::clock:
            takeClock(history, record.offset.value_or(0));
            break;
        case Op::unknown:
            cut.push_back(&record);
            break;
        default:
            break;
        }
    }
    for (const auto* record : cut) {
        if (history.processes[record->pid].killed == never) {
            throw Refused(record->source() + ": the line is cut off, and nothing says that its process was killed");
        }
    }
}

} // namespace

Interval longestWithout(std::vector<Interval> intervals, Nanoseconds from, Nanoseconds to)
{
    std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    Interval longest{from, from};
    const auto look = [&](Nanoseconds begin, Nanoseconds end) {
        if (end - begin > longest.end - longest.begin) {
            longest = {begin, end};
        }
    };
    for (const auto& interval : intervals) {
        if (interval.meets(from, to)) {
            look(from, interval.begin);
            from = std::max(from, interval.end);
        }
    }
    look(from, to);
    return longest;
}

bool Hold::isRenewed() const
{
    return std::any_of(locks.begin(), locks.end(), [](const Call& call) { return call.isRenewed(); });
}

Nanoseconds Hold::longestLease() const
{
    Nanoseconds longest = 0;
    for (const auto& call : locks) {
        longest = std::max(longest, call.lease());
    }
    return longest;
}

Nanoseconds Waiter::placeTime(const History& history) const
{
    return history.bootOf(*asked.expiresMs) - asked.t;
}

bool History::disturbed(Nanoseconds from, Nanoseconds to, int pid) const
{
    const auto meets = [&](const Interval& interval) { return interval.meets(from, to); };
    if (std::any_of(faults.begin(), faults.end(), meets) || std::any_of(starved.begin(), starved.end(), meets)) {
        return true;
    }
    return std::any_of(processes.begin(), processes.end(), [&](const auto& entry) {
        const auto& stops = entry.second.stops;
        return (pid == 0 || entry.first == pid) && std::any_of(stops.begin(), stops.end(), meets);
    });
}

Nanoseconds History::stopped(int pid, Nanoseconds from, Nanoseconds to) const
{
    Nanoseconds sum = 0;
    const auto add = [&](const std::vector<Interval>& stops) {
        for (const auto& stop : stops) {
            if (stop.meets(from, to)) {
                sum += std::min(stop.end, to) - std::max(stop.begin, from);
            }
        }
    };
    add(starved);
    if (const auto found = processes.find(pid); found != processes.end()) {
        add(found->second.stops);
    }
    return sum;
}

Nanoseconds History::setting(int pid, const std::string& name, Nanoseconds otherwise) const
{
    const auto process = processes.find(pid);
    if (process == processes.end()) {
        return otherwise;
    }
    const auto found = process->second.settings.find(name);
    return found == process->second.settings.end() ? otherwise : found->second;
}

Nanoseconds History::commonSetting(const std::string& name, Nanoseconds otherwise) const
{
    for (const auto& [pid, process] : processes) {
        if (!process.settings.empty()) {
            return setting(pid, name, otherwise);
        }
    }
    return otherwise;
}

Nanoseconds History::killedAt(const std::string& client) const
{
    const auto pid = pidOf.find(client);
    const auto process = pid == pidOf.end() ? processes.end() : processes.find(pid->second);
    return process == processes.end() ? never : process->second.killed;
}

const Kind& History::kind(const std::string& lock) const
{
    const auto found = kindOf.find(lock);
    return found == kindOf.end() ? kinds.front() : *findKind(found->second);
}

bool History::isOfAGroup(const std::string& lock) const
{
    return std::any_of(groups.begin(), groups.end(),
                       [&](const auto& group) { return group.second.members.contains(lock); });
}

std::map<std::string, Turns> History::turns() const
{
    std::map<std::string, Turns> turns;
    std::map<std::string, std::pair<int, int>> last;
    for (const auto& hold : holds) {
        const std::pair who{hold.first().pid, hold.first().thread};
        const auto [entry, isNew] = last.try_emplace(hold.lock(), who);
        auto& ofKind = turns[std::string(hold.kind().name)];
        ++ofKind.holds;
        ofKind.changes += !isNew && entry->second != who ? 1 : 0;
        entry->second = who;
    }
    std::set<std::string> opened;
    for (const auto& call : latchCalls) {
        auto& ofLatches = turns["latch"];
        ofLatches.holds += call.invoke.op == Op::countDown && call.succeeded() ? 1 : 0;
        if (call.invoke.op == Op::await && call.succeeded() && opened.insert(call.invoke.lock).second) {
            ++ofLatches.changes;
        }
    }
    return turns;
}

std::size_t History::handOvers() const
{
    const auto all = turns();
    return std::accumulate(all.begin(), all.end(), std::size_t{0},
                           [](std::size_t sum, const auto& entry) { return sum + entry.second.changes; });
}

History understand(std::vector<Record> records)
{
    History history;
    history.records = std::move(records);
    if (history.records.empty()) {
        throw Refused("the history is empty");
    }
    history.begin = history.records.front().t;
    history.end = history.records.back().t;
    readSurroundings(history);
    if (history.clockMoved > millisecond) {
        throw Refused("the wall clock was set during the run: expiry times cannot be compared");
    }
    readTruth(history);
    readClients(history);
    joinTruth(history);
    return history;
}

} // namespace redislock::test::history
