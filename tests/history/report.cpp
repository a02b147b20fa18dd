#include "history/report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

namespace redislock::test::history {
namespace {

std::size_t countOf(const History& history, Hold::Ending ending)
{
    return static_cast<std::size_t>(std::count_if(history.holds.begin(), history.holds.end(),
                                                  [&](const Hold& hold) { return hold.ending == ending; }));
}

std::string inTurns(const History& history)
{
    std::ostringstream out;
    for (const auto& [kind, turns] : history.turns()) {
        out << "  " << std::left << std::setw(24) << kind << turns.changes << "  (held " << turns.holds << " times)\n";
    }
    return out.str();
}

} // namespace

std::string inMs(Nanoseconds time)
{
    std::ostringstream out;
    out << std::fixed << std::setprecision(3) << static_cast<double>(time) / static_cast<double>(millisecond) << " ms";
    return out.str();
}

Report check(const History& history, const Limits& limits)
{
    if (const auto handOvers = history.handOvers(); handOvers < limits.leastHandOvers) {
        throw Refused(std::to_string(handOvers) + " changes of holder prove nothing, at least " +
                      std::to_string(limits.leastHandOvers) + " are needed");
    }
    const auto turns = history.turns();
    for (const auto& kind : limits.kinds) {
        if (const auto found = turns.find(kind); found == turns.end() || found->second.changes == 0) {
            throw Refused("no lock of the kind '" + kind + "' changed hands");
        }
    }
    Report report;
    report.limits = limits;
    constexpr std::array checks{checkBeliefs, checkGroups, checkFences,  checkStream,    checkAnswers,   checkLosses,
                                checkWakeUps, checkQueues, checkLatches, checkDurations, checkResources, checkModels};
    for (const auto checkSome : checks) {
        checkSome(history, report);
    }
    std::stable_sort(report.violations.begin(), report.violations.end(),
                     [](const Violation& a, const Violation& b) { return a.t < b.t; });
    return report;
}

std::string summaryOf(const History& history, const Report& report)
{
    const auto succeeded = [&](Op op) {
        return std::count_if(history.calls.begin(), history.calls.end(),
                             [&](const Call& call) { return call.invoke.op == op && call.succeeded(); });
    };
    const auto ofGroups = std::count_if(history.grants.begin(), history.grants.end(),
                                        [&](const Grant& grant) { return history.isOfAGroup(grant.lock); });
    const auto unmatched =
        std::count_if(history.grants.begin(), history.grants.end(), [](const Grant& grant) { return !grant.hold; }) -
        ofGroups;
    std::ostringstream out;
    const auto starved = history.stopped(0, history.begin, history.end);
    out << "calls                     " << history.calls.size() << "  (lock ok " << succeeded(Op::lock)
        << ", unlock ok " << succeeded(Op::unlock) << ")\n"
        << "holds                     " << history.holds.size() << "  (lost " << countOf(history, Hold::Ending::lost)
        << ", unconfirmed " << countOf(history, Hold::Ending::unconfirmed) << ")\n"
        << "changes of holder         " << history.handOvers() << "\n"
        << inTurns(history) << "grants in Redis           " << history.grants.size()
        << "  (of groups' members: " << ofGroups << ", for nobody: " << unmatched << ")\n"
        << "beliefs against truth     " << report.holdsCompared << "\n"
        << "deadlines against expiry  " << report.deadlinesCompared << "\n"
        << "linearized operations     " << report.linearized << "\n"
        << "wake-ups                  " << report.wakeUps << "  (longest undisturbed " << inMs(report.longestWakeUp)
        << ")\n"
        << "the machine stood still   " << inMs(starved) << "  (" << history.starved.size() << " times)\n"
        << "judged                   ";
    for (const auto& [invariant, times] : report.judged) {
        out << ' ' << invariant << ' ' << times;
    }
    out << '\n' << report.ofFailOvers << "violations                " << report.violations.size() << "\n";
    return out.str();
}

std::string textOf(const History& history, const Violation& violation)
{
    std::ostringstream out;
    out << violation.invariant << "  " << violation.lock << "  at " << inMs(violation.t - history.begin) << ": "
        << violation.text << "\n";
    for (const auto& record : violation.records) {
        out << "    " << inMs(record.t - history.begin) << "  " << record.source() << "  " << toLine(record);
    }
    return out.str();
}

} // namespace redislock::test::history
