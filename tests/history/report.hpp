/// @file
/// The findings of a check of a history.
#pragma once

#include "history/history.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test::history {

struct Violation {
    std::string invariant; ///< "S1" ...
    std::string lock;
    Nanoseconds t = 0;
    std::string text;
    std::vector<Record> records{}; ///< the lines that show the violation
};

struct Limits {
    /// How late a running process may be, because of posting a callback or of scheduling.
    Nanoseconds slack = 500 * millisecond;
    /// Fewer changes of holder prove nothing.
    std::size_t leastHandOvers = 1000;
    /// Kinds of lock each of which must have changed hands.
    std::vector<std::string> kinds{};
    /// Files and connections that a client may have in addition to those at its beginning.
    std::int64_t moreResources = 2;
    /// How long after a Sentinel named the new master a holder may believe in a grant that the new master lacks.
    Nanoseconds toldWithin = 1500 * millisecond;
};

/// In the names of locks with a durability.
constexpr std::string_view durableMark = ":durable:";
inline bool isDurable(std::string_view lock)
{
    return lock.find(durableMark) != std::string_view::npos;
}

struct Report {
    Limits limits{};
    std::vector<Violation> violations{};
    Nanoseconds longestWakeUp = 0; ///< from a free lock with a waiter to its next grant, without a fault
    std::size_t wakeUps = 0;
    std::size_t deadlinesCompared = 0; ///< with the server's expiry
    std::size_t holdsCompared = 0;     ///< with a grant in the stream
    std::size_t linearized = 0;        ///< operations
    std::size_t excused = 0;           ///< two believers, because a fail-over lost the grant of one
    Nanoseconds longestExcused = 0;
    std::string ofFailOvers{}; ///< lines of the summary
    /// For each invariant: how often there was something that could have broken it. A history proves nothing about
    /// other invariants.
    std::map<std::string, std::size_t, std::less<>> judged{};

    void judge(std::string_view invariant, std::size_t times = 1)
    {
        if (times > 0) {
            judged.try_emplace(std::string(invariant), 0).first->second += times;
        }
    }

    void add(std::string invariant, const std::string& lock, Nanoseconds t, std::string text,
             std::vector<Record> records = {})
    {
        violations.push_back({std::move(invariant), lock, t, std::move(text), std::move(records)});
    }
};

/// Checks all invariants. @throws Refused for a history that proves nothing.
Report check(const History& history, const Limits& limits);

struct Judgement {
    History history;
    Report report;
};
/// Understands and checks the lines, those of a run with fail-overs (`promoted`) by the rules for these.
Judgement judge(std::vector<Record> records, const Limits& limits);

/// "12.345 ms".
std::string inMs(Nanoseconds time);

/// The counts, one on each line.
std::string summaryOf(const History& history, const Report& report);
/// A violation with the lines that show it, times relative to the beginning of the history.
std::string textOf(const History& history, const Violation& violation);
/// A picture of what happened to the lock around the violation: beliefs, grants, faults.
std::string timelineSvg(const History& history, const Violation& violation);

// The checks, by their subjects. Each names its invariants.
void checkBeliefs(const History& history, Report& report);
void checkGroups(const History& history, Report& report);
void checkFences(const History& history, Report& report);
void checkStream(const History& history, Report& report);
void checkAnswers(const History& history, Report& report);
void checkLosses(const History& history, Report& report);
void checkWakeUps(const History& history, Report& report);
void checkLatches(const History& history, Report& report);
void checkQueues(const History& history, Report& report);
void checkDurations(const History& history, Report& report);
void checkResources(const History& history, Report& report);
void checkModels(const History& history, Report& report);

} // namespace redislock::test::history
