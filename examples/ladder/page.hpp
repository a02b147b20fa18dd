/// @file
/// The ladder as a page: a time line for each rung. One file, without scripts, which loads nothing.
#pragma once

#include "ladder/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
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
        text_ += head;
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
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fff; --faint: #667; --rule: #dde1e8; --holds: #2f6fde;
  --overlap: #d92d20; --dead: #9aa1ad; --good: #177245; --lane: #f3f5f8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --paper: #14171d; --faint: #9aa3b2; --rule: #2c323d;
  --holds: #6ea1ff; --overlap: #ff6257; --dead: #646c7a; --good: #4cc38a; --lane: #1c2129 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1.2rem }
h1 { font-size: 1.6rem; margin: .2rem 0 }
h2 { font-size: 1.1rem; margin: 0; font-family: ui-monospace, monospace }
section { border-top: 1px solid var(--rule); padding: 1rem 0 .4rem }
p { margin: .25rem 0 } .faint { color: var(--faint) }
.top { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; justify-content: space-between }
.bad { color: var(--overlap); font-weight: 600 } .good { color: var(--good); font-weight: 600 }
.line { position: relative; margin: .6rem 0 0; padding-left: 4.6rem; overflow: hidden }
.lane { position: relative; height: 1.5rem; margin-bottom: 3px; background: var(--lane) }
.lane > b { position: absolute; left: -4.6rem; width: 4.4rem; font-weight: 400; font-size: .85rem; color: var(--faint) }
.lane i { position: absolute; top: 0; bottom: 0; min-width: 1px; background: var(--holds) }
.lane i.stopped { top: 35%; bottom: 35%;
  background: repeating-linear-gradient(90deg, var(--ink) 0 3px, transparent 3px 6px) }
.lane em { position: absolute; z-index: 2; top: .1rem; font: 600 .75rem/1.3rem system-ui, sans-serif;
  white-space: nowrap; padding: 0 .3rem; border-radius: .2rem; background: var(--paper); border: 1px solid var(--ink) }
.lane em.mark { border: 0; padding: 0; background: none; color: var(--overlap); transform: translateX(-50%);
  font-size: 1rem }
.over { height: 1.1rem; background: none }
.over i.overlap { background: var(--overlap) } .over i.dead { background: var(--dead) }
.over em { border: 0; background: none; color: var(--paper); top: -.1rem }
.axis { position: relative; height: 1.2rem; font-size: .75rem; color: var(--faint) }
.axis span { position: absolute; border-left: 1px solid var(--rule); padding-left: .2rem }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .9rem }
.key i { display: inline-block; width: 1.4rem; height: .8rem; margin-right: .3rem; vertical-align: -.05rem }
@media (max-width: 34rem) { .line { padding-left: 2rem } .lane > b { left: -2rem; width: 1.8rem }
  .lane > b span { display: none } }
</style></head><body><main>
<h1>The ladder of locks</h1>
<p>Four buyers, each a process of its own, sell one stock: read it, think, write it less one. Each rung keeps them
apart in another way, and meets the trouble that it was not made for.</p>
<p class="key"><span><i style="background: var(--holds)"></i>believes that it alone sells</span>
<span><i style="background: var(--overlap)"></i>more than one believes it</span>
<span><i style="background: var(--dead)"></i>nobody can sell</span></p>
)html";

    void add(const Shown& rung)
    {
        end_ = std::max(rung.facts.end, Time(1));
        const auto more = rung.sold - rung.stock;
        const auto count = more > 0   ? fmt::format("{} of {} sold: {} too many", rung.sold, rung.stock, more)
                           : more < 0 ? fmt::format("{} of {} sold, then nothing", rung.sold, rung.stock)
                                      : fmt::format("{} of {} sold", rung.sold, rung.stock);
        text_ += fmt::format("<section><div class=\"top\"><h2>{}</h2><span class=\"{}\">{}</span></div>\n<p>{} "
                             "<span class=\"faint\">{}</span></p>\n<div class=\"line\">\n",
                             rung.name, rung.isExact ? "good" : "bad", count, rung.trouble, rung.lesson);
        addSummary(rung.facts, rung.sold < rung.stock);
        for (int buyer = 0; buyer < buyers; ++buyer) {
            addLane(rung.facts, buyer);
        }
        addAxis();
        text_ += "</div></section>\n";
    }

    [[nodiscard]] double percent(Time at) const
    {
        return 100.0 * static_cast<double>(at.count()) / static_cast<double>(end_.count());
    }
    void bar(const Span& span, std::string_view kind)
    {
        text_ += fmt::format("<i class=\"{}\" style=\"left:{:.2f}%;width:{:.2f}%\"></i>", kind, percent(span.from),
                             percent(span.to) - percent(span.from));
    }
    /// A mark in the middle of a moment.
    void mark(Time at, std::string_view sign)
    {
        text_ += fmt::format("<em class=\"mark\" style=\"left:{:.2f}%\">{}</em>", percent(at), sign);
    }
    /// Words beside a moment, on the side where there is room.
    void label(Time at, std::string_view words)
    {
        const double left = percent(at);
        const auto place = left > 60 ? fmt::format("right:{:.2f}%", 100 - left) : fmt::format("left:{:.2f}%", left);
        text_ += fmt::format("<em style=\"{}\">{}</em>", place, words);
    }

    void addSummary(const Facts& facts, bool forEver)
    {
        text_ += "<div class=\"lane over\">";
        for (const auto& span : facts.dead) {
            bar(span, "dead");
            label(span.from, forEver ? "nobody sells any more" : fmt::format("nobody sells: {:.1f} s", span.seconds()));
        }
        for (const auto& span : facts.overlaps) {
            bar(span, "overlap");
        }
        text_ += "</div>\n";
    }

    void addLane(const Facts& facts, int buyer)
    {
        const auto index = static_cast<std::size_t>(buyer);
        text_ += fmt::format("<div class=\"lane\"><b><span>buyer </span>{}</b>", buyer + 1);
        for (const auto& span : facts.holds.at(index)) {
            bar(span, "holds");
        }
        for (const auto& span : facts.stopped.at(index)) {
            bar(span, "stopped");
        }
        bool isNamed = false;
        for (const auto& entry : facts.entries) {
            const bool isDeletion = entry.kind == Kind::deletesAnothers;
            const auto words = entry.buyer == buyer ? wordsOf(entry.kind) : std::string_view();
            if (isDeletion && !words.empty() && std::exchange(isNamed, true)) {
                mark(entry.at, "&#10005;");
            } else if (!words.empty()) {
                label(entry.at, words);
            }
        }
        text_ += "</div>\n";
    }
    static std::string_view wordsOf(Kind kind)
    {
        switch (kind) {
        case Kind::killed:
            return "&#10005; killed";
        case Kind::stopped:
            return "&#8214; stopped";
        case Kind::slow:
            return "slow work";
        case Kind::refused:
            return "late sale refused";
        case Kind::deletesAnothers:
            return "&#10005; deletes another's lock";
        default:
            return {};
        }
    }

    void addAxis()
    {
        using std::chrono::milliseconds;
        text_ += "<div class=\"axis\">";
        const milliseconds step = end_ > std::chrono::seconds(2) ? milliseconds(1000) : milliseconds(200);
        for (milliseconds at{0}; at + step / 2 < end_; at += step) {
            text_ += fmt::format("<span style=\"left:{:.2f}%\">{} s</span>", percent(at),
                                 static_cast<double>(at.count()) / 1000);
        }
        text_ += "</div>\n";
    }

    std::string text_;
    Time end_{1};
};

} // namespace ladder
