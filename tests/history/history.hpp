/// @file
/// The contents of a history: calls, holds that callers believed in, grants that Redis made.
#pragma once

#include "history/kinds.hpp"
#include "history/record.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace redislock::test::history {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
constexpr Nanoseconds millisecond = 1'000'000;

/// How long before the end of its lease a deadline is.
inline Nanoseconds driftOf(Nanoseconds lease)
{
    return (lease + 99) / 100 + 2 * millisecond;
}

struct History;

/// A history that proves nothing: it has no stream, its clock was set, or too little happened.
class Refused : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Interval {
    Nanoseconds begin = 0;
    Nanoseconds end = never;
    std::string what{};

    [[nodiscard]] bool meets(Nanoseconds from, Nanoseconds to) const noexcept { return begin <= to && end >= from; }
};

/// The longest part of a time that overlaps none of the intervals.
Interval longestWithout(std::vector<Interval> intervals, Nanoseconds from, Nanoseconds to);

/// A call of a client, from its start to its end.
struct Call {
    Record invoke;
    std::optional<Record> end{}; ///< none: it never returned

    [[nodiscard]] Nanoseconds returned() const noexcept { return end ? end->t : never; }
    [[nodiscard]] bool succeeded() const noexcept { return end && end->phase == Phase::ok; }
    [[nodiscard]] Nanoseconds lease() const noexcept { return invoke.leaseMs.value_or(0) * millisecond; }
    [[nodiscard]] bool isRenewed() const noexcept { return invoke.error == "renewed"; }
};

/// The belief of a thread: from the return of its lock() to the call of its last unlock(), its loss or its deadline.
struct Hold {
    std::vector<Call> locks{}; ///< the outermost first
    std::vector<Call> unlocks{};
    std::vector<Nanoseconds> levels{}; ///< the deadline that each level not yet ended began with
    std::vector<Record> samples{};     ///< samples that said "held", including those of the lock calls
    std::string holder{};              ///< empty if it is not known
    std::optional<std::size_t> grant{};
    Nanoseconds begin = 0;
    Nanoseconds end = 0;        ///< not before begin; the belief was surely alive until then
    Nanoseconds deadline = 0;   ///< the latest that was seen
    Nanoseconds lostAt = never; ///< when its loss was reported
    enum class Ending { open, released, unconfirmed, lost } ending = Ending::open;
    bool wasPassedToIt = false; ///< inside its client: it has the grant of the hold before
    bool wasPassedOn = false;   ///< the same: its holder goes on as another hold

    [[nodiscard]] const Record& first() const { return locks.front().invoke; }
    /// How many permits the hold takes.
    [[nodiscard]] std::int64_t permits() const { return first().permits.value_or(1); }
    [[nodiscard]] const std::string& lock() const { return first().lock; }
    [[nodiscard]] const Kind& kind() const { return *findKind(first().kind); }
    [[nodiscard]] bool isEmpty() const noexcept { return end <= begin; }
    [[nodiscard]] bool isRenewed() const;
    [[nodiscard]] Nanoseconds longestLease() const;
};

/// Whether a hold that began during a write hold is a read hold of the same thread, which a read/write lock allows.
inline bool readsWhileItWrites(const Hold& writer, const Hold& hold)
{
    return writer.kind().name == "write" && hold.kind().name == "read" && writer.first().pid == hold.first().pid &&
           writer.first().thread == hold.first().thread;
}

/// A holder's time in Redis according to the replication stream. Times are those of arrival: nothing was executed
/// later.
struct Grant {
    std::string lock{};
    std::string holder{};
    Record made{};                    ///< the HSET
    std::vector<Record> expiries{};   ///< each PEXPIREAT
    std::vector<std::int64_t> counts; ///< each count that was set
    std::optional<Record> freed{};    ///< the DEL, or the HSET of the next holder
    enum class Freed { open, released, expired, removed, overwritten, emptied } how = Freed::open;
    std::optional<std::size_t> hold{};
    std::int64_t keyExpiresMs = 0; ///< at its end: until when the key could live if no other holder came
    bool shares = false;           ///< a reader's
    bool besideWriter = false;     ///< made while a writer had the lock, whose own thread may read
    bool withoutExpiry = false;    ///< the script that made the key set no time to live
    std::optional<std::int64_t> token{};
    std::string turnOf{}; ///< the first in the queue, if there was one

    /// The last expiry; 0 if there is none.
    [[nodiscard]] std::int64_t expiresMs() const noexcept { return expiries.empty() ? 0 : *expiries.back().expiresMs; }
};

/// Locks that are held as one.
struct Group {
    std::set<std::string> members{}; ///< by name, which is that of one key on one server
    std::size_t needed = 0;          ///< how many of them are enough
};

/// A waiter's time in the queue of a fair lock.
struct Waiter {
    Record came{};                ///< the first ZADD
    Record asked{};               ///< the last one
    std::optional<Record> left{}; ///< ZREM
    enum class Leaving { open, granted, byItself, removed } how = Leaving::open;

    /// How long the waiter has its place without asking.
    [[nodiscard]] Nanoseconds placeTime(const History& history) const;
};

struct Process {
    Nanoseconds begin = 0;
    Nanoseconds killed = never;
    std::vector<Interval> stops{};
    std::map<std::string, Nanoseconds> settings{};
};

/// The owner and the lock of a client's line: process, thread, lock and kind.
using Place = std::tuple<int, int, std::string, std::string>;
inline Place placeOf(const Record& record)
{
    return {record.pid, record.thread, record.lock, record.kind};
}

/// How often locks of a kind were held, and how often by another holder than before.
struct Turns {
    std::size_t holds = 0;
    std::size_t changes = 0;
};

/// A whole history.
struct History {
    std::vector<Record> records;
    std::vector<Call> calls;     ///< by the time of the invoke
    std::vector<Hold> holds;     ///< by their begin
    std::vector<Waiter> waiters; ///< in the order in which they came
    std::vector<Grant> grants;   ///< in the order of the stream
    std::map<int, Process> processes;
    std::map<std::string, int> pidOf;            ///< by client
    std::vector<Call> latchCalls;                ///< count-downs and waits, by the time of the invoke
    std::map<std::string, std::int64_t> latches; ///< the initial count of each
    std::map<std::string, std::int64_t> permits; ///< by semaphore: how many there are
    std::map<std::string, Group> groups;
    std::map<std::string, std::string> kindOf; ///< by lock, if its clients named one
    std::vector<Interval> faults;
    std::vector<Interval> starved;                       ///< when the machine let no process run
    std::vector<Record> orphans;                         ///< changes of locks that nobody held in the stream
    std::map<std::string, std::vector<Record>> told;     ///< by holder: the observer's events
    std::map<std::string, std::vector<Record>> requests; ///< by holder: the requests that the server executed
    bool hasTruth = false;
    std::optional<Nanoseconds> wallMinusBoot{};
    Nanoseconds clockMoved = 0;
    Nanoseconds longestLease = 0; ///< of all calls and watchdogs
    Nanoseconds begin = 0;
    Nanoseconds end = 0;

    /// A moment of the server's wall clock on `CLOCK_BOOTTIME`.
    [[nodiscard]] Nanoseconds bootOf(std::int64_t wallMs) const
    {
        return wallMs * millisecond - wallMinusBoot.value_or(0);
    }
    /// Whether there was a fault of the server, the network or this process (0: any) in that time.
    [[nodiscard]] bool disturbed(Nanoseconds from, Nanoseconds to, int pid) const;
    /// How long the process stood still in that time.
    [[nodiscard]] Nanoseconds stopped(int pid, Nanoseconds from, Nanoseconds to) const;
    [[nodiscard]] Nanoseconds setting(int pid, const std::string& name, Nanoseconds otherwise) const;
    /// A setting that all processes share.
    [[nodiscard]] Nanoseconds commonSetting(const std::string& name, Nanoseconds otherwise) const;
    /// When the process of a client was killed.
    [[nodiscard]] Nanoseconds killedAt(const std::string& client) const;
    [[nodiscard]] const Kind& kind(const std::string& lock) const;
    [[nodiscard]] bool isOfAGroup(const std::string& lock) const;
    /// The turns of each kind.
    [[nodiscard]] std::map<std::string, Turns> turns() const;
    /// Changes of holder, over all locks.
    [[nodiscard]] std::size_t handOvers() const;
};

/// Makes a history from its lines.
/// @throws Refused when the clocks moved by more than 1 ms, or when lines contradict each other in a way that no
/// program can cause.
History understand(std::vector<Record> records);

} // namespace redislock::test::history
