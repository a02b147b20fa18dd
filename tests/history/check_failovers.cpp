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

/// A part of a server's stream without a gap, and the holders that it wrote.
struct Stretch {
    Nanoseconds begin = 0;
    Nanoseconds end = never;
    std::set<std::string> holders{};
};

/// A fail-over: what the promoted server had until then.
struct Promotion {
    std::int64_t server = 0;
    Nanoseconds named = 0; ///< when a Sentinel first named it
    std::optional<Stretch> before{};
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
        return std::stoll(record.source.substr(record.source.rfind('-') + 1));
    }

    void take(const Record& record)
    {
        if (record.op == Op::promoted && record.phase == Phase::invoke) {
            becameMaster_[*record.count].push_back(record.t);
        } else if (record.op == Op::promoted) {
            const auto stream = streams_.find(*record.count);
            promotions_.push_back(
                {*record.count, record.t, stream == streams_.end() ? std::nullopt : std::optional(stream->second)});
        } else if (record.op == Op::request && record.error == "lock") {
            requests_[record.holder].push_back({record.t, serverOf(record)});
        } else if (record.op == Op::attached) {
            streams_[serverOf(record)] = {.begin = record.t};
        } else if (record.op == Op::detached) {
            streams_[serverOf(record)].end = record.t;
        } else if (record.op == Op::hset) {
            streams_[serverOf(record)].holders.insert(record.holder);
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
        if (isDurable(first.lock())) {
            return complain("S1", "with a durability; " + placeText(first) + ", " + placeText(second));
        }
        std::optional<Nanoseconds> mayLast; // the two together
        for (const auto& promotion : servers_.promotions()) {
            for (const auto& [lost, kept] : {std::pair(&first, &second), std::pair(&second, &first)}) {
                if (isLostBy(promotion, *lost, *kept)) {
                    const auto from = std::max(promotion.named, lost->begin);
                    const auto until = from + history_.stopped(lost->first().pid, from, together);
                    mayLast = std::max(mayLast.value_or(0), until + report_.limits.toldWithin);
                }
            }
        }
        if (!mayLast) {
            return complain("S1", "no fail-over lost a grant; " + placeText(first) + ", " + placeText(second));
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
               !promotion.before->holders.contains(lost.holder);
    }

    void judgeSurvival(const Hold& hold)
    {
        if (!isDurable(hold.lock())) {
            return;
        }
        const auto granted = servers_.grantOf(hold);
        for (const auto& [server, named, before] : servers_.promotions()) {
            if (!before || !granted || before->begin > granted->t || before->end < hold.begin) {
                continue;
            }
            report_.judge("F2");
            if (!before->holders.contains(hold.holder)) {
                report_.add("F2", hold.lock(), hold.begin,
                            "server " + std::to_string(server) + " was promoted without this grant, which was told " +
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
