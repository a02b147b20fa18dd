/// @file
/// The ladder as a page: verdicts, and a time line for each rung. One file, without scripts, which loads nothing.
#pragma once

#include "ladder/facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ladder {

/// A rung as the page shows it.
struct Shown {
    std::string_view name;
    std::string_view trouble;
    std::string_view lesson;
    std::string verdict;
    bool isExact; ///< sold exactly the stock
    long long stock;
    long long sold;
    Facts facts;
};

class Page {
public:
    explicit Page(const std::vector<Shown>& rungs)
    {
        for (const auto& rung : rungs) {
            end_ = std::max(end_, rung.facts.end);
        }
        const Time half = std::chrono::milliseconds(500);
        end_ = (end_ / half + 1) * half; // a round number
        text_ = head;
        addVerdicts(rungs);
        addKey();
        for (const auto& rung : rungs) {
            add(rung);
        }
        text_ += "</main></body></html>\n";
    }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
    static constexpr std::string_view head = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The ladder of locks</title>
<style>
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fff; --faint: #596170; --rule: #dde1e8; --holds: #2f6fde;
  --overlap: #c9241a; --dead: #7b8494; --good: #177245; --lane: #f1f3f6 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --paper: #14171d; --faint: #a3abb9; --rule: #2c323d;
  --holds: #6ea1ff; --overlap: #ff6f65; --dead: #78818f; --good: #4cc38a; --lane: #1f242d } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
main { max-width: 64rem; margin: 0 auto; padding: 1.2rem }
h1 { font-size: 1.7rem; margin: .2rem 0 .4rem } h2 { font-size: 1.15rem; margin: 1.4rem 0 .4rem }
h3 { font-size: 1.1rem; margin: 0 } h3, th a { font-family: ui-monospace, monospace } a { color: inherit }
section { border-top: 1px solid var(--rule); padding: 1.1rem 0 .5rem }
p { margin: .25rem 0; max-width: 46rem } ul { margin: .3rem 0; padding-left: 1.2rem; max-width: 46rem }
.faint { color: var(--faint) } .bad, .good { font-weight: 600 }
.bad { color: var(--overlap) } .good { color: var(--good) }
table { border-collapse: collapse; width: 100%; margin: .8rem 0 } caption { text-align: left; color: var(--faint) }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--rule) }
thead th { font-weight: 400; color: var(--faint) } tbody th { font-weight: 600 }
td.number { font-variant-numeric: tabular-nums; text-align: right } thead th + th:nth-child(2) { text-align: right }
td small { display: block; font-size: .85rem; color: var(--faint) }
i { background: var(--holds) } i.overlap, i.wrong { background: var(--overlap) } i.dead { background: var(--dead) }
i.stopped { background: repeating-linear-gradient(90deg, var(--ink) 0 3px, var(--paper) 3px 6px) }
.line { margin-top: .7rem; padding-left: 4.2rem }
.lane, .axis { position: relative; height: 1.2rem; margin-bottom: 3px }
.lane.flagged { margin-top: 1.35rem }
.lane::before { content: ""; position: absolute; inset: 0; width: var(--end); background: var(--lane) }
.lane b { position: absolute; left: -4.2rem; font: .85rem/1.2rem system-ui, sans-serif; color: var(--faint) }
.lane i { position: absolute; top: 0; bottom: 0; min-width: 1px } .lane i.stopped { top: 38%; bottom: 38% }
.lane i.overlap { min-width: 3px } .lane i.wrong { top: auto; bottom: -3px; height: 5px; min-width: 3px }
.lane em { position: absolute; top: -1.3rem; height: 1.3rem; border-left: 2px solid var(--ink);
  font: 700 .75rem/1.1rem system-ui, sans-serif }
.lane em.left { border-left: 0; border-right: 2px solid var(--ink) }
.lane span, .events b { display: inline-block; padding: 0 .28rem; background: var(--ink); color: var(--paper) }
.axis { font-size: .75rem; color: var(--faint); margin: 0; white-space: nowrap }
.axis span { position: absolute; border-left: 1px solid var(--faint); padding-left: .25rem }
.events { list-style: none; padding: 0 0 0 1.7rem; margin: .4rem 0 0; font-size: .9rem; text-indent: -1.7rem }
.events b { font: 700 .75rem/1.1rem system-ui, sans-serif; margin-right: .4rem; text-indent: 0 }
.key { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; max-width: none }
.key i { display: inline-block; vertical-align: middle; width: 1.4rem; height: .8rem; margin-right: .4rem }
.key i.stopped { height: .3rem } .key i.wrong { width: 3px; height: 5px }
@media (min-width: 54rem) { section { display: grid; grid-template: auto 1fr / 19rem 1fr; gap: 0 1.5rem }
  .line { grid-area: 1 / 2 / span 2; margin: .2rem 0 0 } .events { grid-area: 2 / 1 } }
@media (max-width: 34rem) { main { padding: 1rem .8rem } .line { padding-left: 3.4rem }
  .lane b { left: -3.4rem; font-size: .8rem } th, td { padding-right: .6rem } }
</style></head><body><main>
<h1>The ladder of locks</h1>
<p>Four buyers, each a process of its own, sell one stock. A buyer reads the number of pieces, works for a moment, and
writes back one less. Each rung keeps the buyers apart with another lock, and causes the failure that this lock handles
worst.</p>
)html";
    static constexpr std::string_view advice = R"html(<h2>What to use</h2>
<ul>
<li><b>FencedLock</b>, where a late write would do harm. Send its token with each write, and let the store refuse a
token that is smaller than the greatest it has seen.</li>
<li><b>RedisLock</b>, where doing the work twice costs time and nothing else. It renews its lease while the work goes
on, and is free again soon after a crash. It cannot stop a process that goes on after its lease has ended.</li>
<li>None of the other locks: each of them fails when a process is killed, slow or stopped.</li>
</ul>
)html";

    static double secondsOf(Time time) { return std::chrono::duration<double>(time).count(); }

    /// The facts of a rung, in a line.
    static std::string factsOf(const Shown& rung)
    {
        std::vector<std::string> facts;
        if (rung.sold != rung.stock) {
            facts.push_back(rung.sold > rung.stock ? fmt::format("{} too many", rung.sold - rung.stock)
                                                   : fmt::format("{} never sold", rung.stock - rung.sold));
        }
        double overlap = 0;
        for (const auto& span : rung.facts.overlaps) {
            overlap += span.seconds();
        }
        if (overlap > 0) {
            facts.push_back("two or more at once for " + (overlap < 0.1 ? fmt::format("{:.0f} ms", 1000 * overlap)
                                                                        : fmt::format("{:.1f} s", overlap)));
        }
        if (const double stuck = rung.facts.stuckSeconds(); stuck > 0 && rung.sold >= rung.stock) {
            facts.push_back(fmt::format("nobody for {:.1f} s", stuck));
        }
        if (rung.facts.foreignReleases > 0) {
            facts.push_back(fmt::format("others' locks deleted: {}", rung.facts.foreignReleases));
        }
        if (rung.facts.refusals > 0) {
            facts.push_back(fmt::format("late sales refused: {}", rung.facts.refusals));
        }
        return fmt::format("{}", fmt::join(facts, "; "));
    }
    static std::string verdictOf(const Shown& rung, std::string_view more = {})
    {
        return rung.verdict.empty() ? std::string("<span class=\"faint\">not shown this time</span>")
                                    : fmt::format("<span class=\"{}\">{} {}{}</span>", rung.isExact ? "good" : "bad",
                                                  rung.isExact ? "&#10003;" : "&#10007;", rung.verdict, more);
    }

    void addVerdicts(const std::vector<Shown>& rungs)
    {
        text_ += fmt::format("<table><caption>What each lock did with a stock of {}</caption>\n<thead><tr>"
                             "<th scope=\"col\">Lock</th><th scope=\"col\">Sold</th><th scope=\"col\">Verdict</th>"
                             "</tr></thead><tbody>\n",
                             rungs.empty() ? 0 : rungs.front().stock);
        for (std::size_t index = 0; index < rungs.size(); ++index) {
            const auto& rung = rungs[index];
            text_ += fmt::format("<tr><th scope=\"row\"><a href=\"#rung{}\">{}</a></th><td class=\"number\">{}</td>"
                                 "<td>{}<small>{}</small></td></tr>\n",
                                 index + 1, rung.name, rung.sold, verdictOf(rung), factsOf(rung));
        }
        text_ += "</tbody></table>\n";
        text_ += advice;
    }

    void addKey()
    {
        text_ += fmt::format(
            "<h2>Which buyer believed that it held the lock, and when</h2>\n<p>All time lines have the same "
            "scale, from 0 to {:.1f} s.</p>\n<ul class=\"key\">",
            secondsOf(end_));
        constexpr std::pair<std::string_view, std::string_view> names[] = {
            {"holds", "a buyer believes that it holds the lock"},
            {"overlap", "two or more believe it at once"},
            {"dead", "nobody can sell"},
            {"stopped", "the buyer is stopped"},
            {"wrong", "the buyer deletes a lock that is not its own"}};
        for (const auto& [kind, name] : names) {
            text_ += fmt::format("<li><i class=\"{}\"></i>{}</li>\n", kind, name);
        }
        text_ += "</ul>\n";
    }

    void add(const Shown& rung)
    {
        const auto& facts = rung.facts;
        findEvents(facts.entries);
        text_ +=
            fmt::format("<section id=\"rung{}\"><div><h3>{}</h3>\n<p>{}</p>\n<p>{} <span "
                        "class=\"faint\">{}</span></p></div>\n",
                        ++number_, rung.name, verdictOf(rung, fmt::format(": {} of {} sold", rung.sold, rung.stock)),
                        rung.trouble, rung.lesson);
        text_ += fmt::format("<div class=\"line\" role=\"img\" style=\"--end:{:.2f}%\" aria-label=\"Time line of {}, "
                             "which ended after {:.1f} s: {} of {} sold. {}\">\n<div class=\"lane\"><b>all</b>",
                             percent(facts.end), rung.name, secondsOf(facts.end), rung.sold, rung.stock, factsOf(rung));
        for (const auto& span : facts.dead) {
            bar(span, "dead");
        }
        for (const auto& span : facts.overlaps) {
            bar(span, "overlap");
        }
        text_ += "</div>\n";
        for (int buyer = 0; buyer < buyers; ++buyer) {
            addLane(facts, buyer);
        }
        addAxis();
        text_ += "</div>\n<ul class=\"events\">";
        for (std::size_t event = 0; event < events_.size(); ++event) {
            const auto& [at, buyer, words] = events_[event];
            text_ += fmt::format("<li><b>{}</b> {:.2f} s: buyer {} {}</li>\n", signOf(event), secondsOf(at), buyer + 1,
                                 words);
        }
        text_ += "</ul></section>\n";
    }

    [[nodiscard]] double percent(Time at) const { return 100 * secondsOf(at) / secondsOf(end_); }
    void bar(const Span& span, std::string_view kind)
    {
        text_ += fmt::format("<i class=\"{}\" style=\"left:{:.2f}%;width:{:.3f}%\"></i>", kind, percent(span.from),
                             percent(span.to) - percent(span.from));
    }

    /// What a flag on a time line stands for.
    struct Event {
        Time at;
        int buyer;
        std::string words;
    };
    /// Of many deletions the first is an event. Events of a buyer whose flags would touch on a phone share one.
    void findEvents(const std::vector<Entry>& entries)
    {
        events_.clear();
        bool isDeletionNamed = false;
        for (const auto& entry : entries) {
            const auto words = wordsOf(entry.kind);
            if (words.empty() || (entry.kind == Kind::deletesAnothers && std::exchange(isDeletionNamed, true))) {
                continue;
            }
            const auto near = std::ranges::find_if(events_, [&](const Event& event) {
                return event.buyer == entry.buyer && percent(entry.at) - percent(event.at) < 6;
            });
            if (near == events_.end()) {
                events_.push_back({entry.at, entry.buyer, std::string(words)});
            } else {
                near->words += fmt::format(", {}", words);
            }
        }
    }
    static std::string_view wordsOf(Kind kind)
    {
        switch (kind) {
        case Kind::killed:
            return "is killed";
        case Kind::stopped:
            return "is stopped";
        case Kind::resumed:
            return "goes on";
        case Kind::slow:
            return "works for longer than usual";
        case Kind::refused:
            return "has its late sale refused";
        case Kind::deletesAnothers:
            return "deletes another's lock";
        default:
            return {};
        }
    }
    static char signOf(std::size_t event) { return static_cast<char>('A' + event % 26); }

    void addLane(const Facts& facts, int buyer)
    {
        const auto index = static_cast<std::size_t>(buyer);
        const bool isFlagged = std::ranges::count(events_, buyer, &Event::buyer) > 0;
        text_ += fmt::format("<div class=\"lane{}\"><b>buyer {}</b>", isFlagged ? " flagged" : "", buyer + 1);
        for (const auto& span : facts.holds.at(index)) {
            bar(span, "holds");
        }
        for (const auto& span : facts.stopped.at(index)) {
            bar(span, "stopped");
        }
        for (const auto& entry : facts.entries) {
            if (entry.buyer == buyer && entry.kind == Kind::deletesAnothers) {
                bar({entry.at, entry.at}, "wrong");
            }
        }
        for (std::size_t event = 0; event < events_.size(); ++event) {
            const double left = percent(events_[event].at);
            if (events_[event].buyer == buyer) {
                text_ += fmt::format("<em{}{:.2f}%\"><span>{}</span></em>",
                                     left > 90 ? " class=\"left\" style=\"right:" : " style=\"left:",
                                     left > 90 ? 100 - left : left, signOf(event));
            }
        }
        text_ += "</div>\n";
    }

    void addAxis()
    {
        using std::chrono::seconds;
        seconds step{1};
        while (end_ / step > 8) {
            step *= step.count() % 3 == 2 ? 5 : 2; // 1, 2, 10, 20, 100 …
        }
        text_ += "<div class=\"axis\">";
        for (seconds at{0}; percent(at) < 93; at += step) { // a later label would not fit
            text_ += fmt::format("<span style=\"left:{:.2f}%\">{} s</span>", percent(at), at.count());
        }
        text_ += "</div>\n";
    }

    std::string text_;
    std::vector<Event> events_; ///< of the rung that is being added, in order of time
    Time end_{1};               ///< of every time line
    int number_ = 0;            ///< of the rung
};

} // namespace ladder
