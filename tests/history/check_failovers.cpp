// Fail-overs. S1: nobody shares a lock, unless the promoted server lacked one of the two grants. F1: the holder of such
// a grant is told soon. F2: a grant with a durability that was told is in the data of each server that is promoted.
#include "history/report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::history {
namespace {

bool isOfAServer(const Record& record)
{
    return record.op == Op::request || record.op == Op::attached || record.op == Op::detached ||
           (record.op >= Op::hset && record.op <= Op::freed);
}

/// A part of a server's stream without a gap, and when it last wrote each holder.
struct Stretch {
    Nanoseconds begin = 0;
    Nanoseconds end = never;
    std::map<std::string, Nanoseconds> holders{};

    /// Whether the server had a grant. @param grantedAt by the server that made it
    [[nodiscard]] bool has(const std::string& holder, Nanoseconds grantedAt) const
    {
        const auto found = holders.find(holder);
        return found != holders.end() && found->second > grantedAt - 5 * millisecond;
    }
};

/// The time in which the slot of a name was on its way, or had been left half-way.
struct Move {
    Nanoseconds begin = 0;
    Nanoseconds end = never;
};

/// A fail-over: what the promoted server had until then.
struct Promotion {
    std::int64_t server = 0;
    Nanoseconds named = 0; ///< when somebody else first named it
    std::optional<Stretch> before{};
    std::string replaced{}; ///< the number of the server that it replaced; empty: of the only other one
};

/// What the servers did, according to lines that are written for each of them in files of its own, `truth-1.jsonl` and
/// `requests-1.jsonl`. A stream is recorded while its server is a replica: it ends when the server is promoted.
class ServerLines {
public:
    explicit ServerLines(const std::vector<Record>& records)
    {
        for (const auto& record : records) {
            take(record);
        }
        for (auto& promotion : promotions_) {
            if (!endsWithPromotion(promotion)) {
                promotion.before.reset();
            }
        }
    }

    [[nodiscard]] const std::vector<Promotion>& promotions() const noexcept { return promotions_; }
    /// Whether the slot of the lock was on its way at any time of that.
    [[nodiscard]] bool wasMoved(const std::string& lock, Nanoseconds from, Nanoseconds to) const
    {
        const auto found = moves_.find(lock);
        return found != moves_.end() && std::ranges::any_of(found->second, [&](const Move& move) {
                   return move.begin <= to && move.end >= from;
               });
    }

    struct Execution {
        Nanoseconds t;
        std::int64_t server;
    };
    /// Where the hold was granted: the last server that executed its request before it began.
    [[nodiscard]] std::optional<Execution> grantOf(const Hold& hold) const
    {
        std::optional<Execution> last;
        if (const auto found = requests_.find(hold.holder); found != requests_.end()) {
            for (const auto& each : found->second) {
                last = each.t <= hold.begin + millisecond && (!last || each.t >= last->t) ? each : last;
            }
        }
        return last;
    }

private:
    static std::int64_t serverOf(const Record& record)
    {
        return std::stoll(record.file.str().substr(record.file.str().rfind('-') + 1));
    }

    void take(const Record& record)
    {
        if (record.op == Op::promoted && record.phase == Phase::invoke) {
            becameMaster_[*record.count].push_back(record.t);
        } else if (record.op == Op::promoted) {
            const auto stream = streams_.find(*record.count);
            promotions_.push_back({*record.count, record.t,
                                   stream == streams_.end() ? std::nullopt : std::optional(stream->second),
                                   record.error});
        } else if (record.op == Op::moved && record.phase == Phase::invoke) {
            moves_[record.lock].push_back({.begin = record.t});
        } else if (record.op == Op::moved) {
            moves_[record.lock].back().end = record.t;
        } else if (record.op == Op::request && record.error == "lock") {
            requests_[record.holder].push_back({record.t, serverOf(record)});
        } else if (record.op == Op::attached) {
            streams_[serverOf(record)] = {.begin = record.t};
        } else if (record.op == Op::detached) {
            streams_[serverOf(record)].end = record.t;
        } else if (record.op == Op::hset) {
            streams_[serverOf(record)].holders[record.holder] = record.t;
        }
    }

    /// Whether the stream was recorded until the promotion, which ended it. Both are seen a little later.
    [[nodiscard]] bool endsWithPromotion(const Promotion& promotion) const
    {
        constexpr auto near = 500 * millisecond;
        const auto became = becameMaster_.find(promotion.server);
        return promotion.before && promotion.before->begin > 0 && promotion.before->end != never &&
               became != becameMaster_.end() &&
               std::any_of(became->second.begin(), became->second.end(), [&](Nanoseconds t) {
                   return t > promotion.before->end - near && t < promotion.before->end + near;
               });
    }

    std::map<std::int64_t, Stretch> streams_; ///< the last of each server
    std::map<std::int64_t, std::vector<Nanoseconds>> becameMaster_;
    std::map<std::string, std::vector<Execution>> requests_; ///< by holder
    std::vector<Promotion> promotions_;
    std::map<std::string, std::vector<Move>> moves_; ///< by lock
};

/// Writes into the return of each outermost lock() whose holder it made, which the observer is told at the
/// same time, or later if its thread has to wait for a processor.
void nameHoldersByEvents(std::vector<Record>& records)
{
    using Key = std::pair<std::string, std::string>;
    std::map<Key, std::deque<const Record*>> told;
    for (const auto& record : records) {
        if (record.op == Op::acquired) {
            told[{record.client, record.lock}].push_back(&record);
        }
    }
    std::map<Place, Nanoseconds> asked;
    for (auto& record : records) {
        if (record.op != Op::lock) {
            continue;
        }
        if (record.phase == Phase::invoke) {
            asked[placeOf(record)] = record.t;
        } else if (record.phase == Phase::ok && record.count.value_or(1) <= 1) {
            auto& all = told[{record.client, record.lock}];
            const auto own = std::find_if(all.begin(), all.end(), [&](const Record* each) {
                return each->t >= asked[placeOf(record)] && each->t <= record.t + 1000 * millisecond;
            });
            if (own != all.end()) {
                record.holder = (*own)->holder;
                all.erase(own);
            }
        }
    }
}

class FailOverJudge {
public:
    FailOverJudge(const History& history, const ServerLines& servers, Report& report)
        : history_(history), servers_(servers), report_(report)
    {
    }

    void judge()
    {
        std::map<std::string, std::vector<const Hold*>> swept; // by lock: holds that may last
        for (const auto& hold : history_.holds) {
            if (hold.isEmpty()) {
                continue;
            }
            auto& others = swept[hold.lock()];
            report_.judge("S1", others.empty() ? 0 : 1);
            std::erase_if(others, [&](const Hold* other) { return other->end <= hold.begin; });
            for (const auto* other : others) {
                judgeTogether(*other, hold);
            }
            others.push_back(&hold);
            unplaced_ += servers_.grantOf(hold) ? 0 : 1;
            judgeSurvival(hold);
        }
    }

    /// How many holds were granted by an unknown server: nothing excuses these, and F2 is not judged of them.
    [[nodiscard]] std::size_t unplaced() const noexcept { return unplaced_; }

private:
    /// Two holds of a lock that were believed at the same time.
    void judgeTogether(const Hold& first, const Hold& second)
    {
        const auto together = std::min(first.end, second.end);
        const auto complain = [&](const char* invariant, const std::string& why) {
            report_.add(invariant, second.lock(), second.begin,
                        "two believed at the same time, for " + inMs(together - second.begin) + ": " + why,
                        {first.samples.front(), first.samples.back(), second.samples.front(), second.samples.back()});
        };
        std::optional<Nanoseconds> mayLast; // the two together
        for (const auto& promotion : servers_.promotions()) {
            const bool isHalfMoved = servers_.wasMoved(first.lock(), promotion.named, promotion.named);
            for (const auto& [lost, kept] : {std::pair(&first, &second), std::pair(&second, &first)}) {
                if ((isHalfMoved && lost == &first) ||
                    (!isDurable(first.lock()) && isLostBy(promotion, *lost, *kept))) {
                    const auto from = std::max(promotion.named, lost->begin);
                    const auto until = from + history_.stopped(lost->first().pid, from, together);
                    mayLast = std::max(mayLast.value_or(0), until + report_.limits.toldWithin);
                }
            }
        }
        if (!mayLast) {
            const auto why = isDurable(first.lock()) ? "with a durability; " : "no fail-over lost a grant; ";
            return complain("S1", why + placeText(first) + ", " + placeText(second));
        }
        ++report_.excused;
        std::erase_if(report_.violations, [&](const Violation& each) { // the same, as the model of the lock sees it
            return each.invariant == "linearizable" && each.lock == second.lock() && each.t == second.begin;
        });
        report_.longestExcused = std::max(report_.longestExcused, together - second.begin);
        report_.judge("F1");
        if (together > *mayLast) {
            complain("F1", "the holder that a fail-over forgot was told " + inMs(together - *mayLast) + " too late");
        }
    }

    /// Whether the promoted server, which granted the one hold, never had the grant of the other.
    [[nodiscard]] bool isLostBy(const Promotion& promotion, const Hold& lost, const Hold& kept) const
    {
        const auto old = servers_.grantOf(lost);
        const auto now = servers_.grantOf(kept);
        return promotion.before && old && now && now->server == promotion.server && old->server != promotion.server &&
               now->t >= promotion.before->end - 50 * millisecond && promotion.before->begin <= old->t &&
               !promotion.before->has(lost.holder, old->t);
    }

    void judgeSurvival(const Hold& hold)
    {
        if (!isDurable(hold.lock())) {
            return;
        }
        const auto granted = servers_.grantOf(hold);
        auto at = granted ? std::to_string(granted->server) : ""; // where the grant should be
        for (const auto& [server, named, before, replaced] : servers_.promotions()) {
            if (!before || !granted || before->begin > granted->t || before->end < hold.begin ||
                (!replaced.empty() && replaced != at) || servers_.wasMoved(hold.lock(), granted->t, named)) {
                continue;
            }
            at = std::to_string(server);
            report_.judge("F2");
            if (!before->has(hold.holder, granted->t)) {
                report_.add("F2", hold.lock(), hold.begin,
                            "server " + at + " was promoted without this grant, which was told " +
                                inMs(before->end - hold.begin) + " before; " + placeText(hold),
                            {hold.samples.front()});
            }
        }
    }

    [[nodiscard]] std::string placeText(const Hold& hold) const
    {
        const auto granted = servers_.grantOf(hold);
        return (hold.holder.empty() ? "an unknown holder" : hold.holder) +
               (granted ? " granted by server " + std::to_string(granted->server) + " at " +
                              inMs(granted->t - history_.begin)
                        : " granted nobody knows where");
    }

    const History& history_;
    const ServerLines& servers_;
    Report& report_;
    std::size_t unplaced_ = 0;
};

} // namespace

Judgement judge(std::vector<Record> records, const Limits& limits)
{
    const bool hasFailOvers =
        std::any_of(records.begin(), records.end(), [](const Record& record) { return record.op == Op::promoted; });
    if (!hasFailOvers) {
        Judgement plain{understand(std::move(records)), {}};
        plain.report = check(plain.history, limits);
        return plain;
    }
    const ServerLines servers(records);
    std::erase_if(records, isOfAServer); // three streams of one set of keys, with gaps: no truth for other checks
    nameHoldersByEvents(records);
    Judgement judged{understand(std::move(records)), {}};
    judged.report = check(judged.history, limits);
    auto& report = judged.report;
    std::erase_if(report.violations, [](const Violation& each) { return each.invariant == "S1"; }); // judged here
    report.judged.erase("S1");
    FailOverJudge judge(judged.history, servers, report);
    judge.judge();
    std::stable_sort(report.violations.begin(), report.violations.end(),
                     [](const Violation& a, const Violation& b) { return a.t < b.t; });
    std::ostringstream out;
    out << "fail-overs                " << servers.promotions().size() << "  ("
        << std::count_if(servers.promotions().begin(), servers.promotions().end(),
                         [](const Promotion& each) { return each.before.has_value(); })
        << " with the stream of the promoted server)\n"
        << "excused believers         " << report.excused << "  (two at the same time for at most "
        << inMs(report.longestExcused) << ")\n"
        << "granted nobody knows where " << judge.unplaced() << "\n";
    report.ofFailOvers = out.str();
    return judged;
}

} // namespace redislock::test::history
