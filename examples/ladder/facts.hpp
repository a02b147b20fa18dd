/// @file
/// The facts of a sale, from its journal.
#pragma once

#include "ladder/journal.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace ladder {

constexpr int buyers = 4;

struct Span {
    Time from{};
    Time to{};

    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(to - from).count(); }
};

struct Facts {
    Time end{};
    std::array<std::vector<Span>, buyers> holds;   ///< when each buyer believed that it held the lock
    std::array<std::vector<Span>, buyers> stopped; ///< when it stood still
    std::vector<Span> overlaps;                    ///< when more than one buyer believed that it held the lock
    std::vector<Span> dead; ///< when no buyer that could work held the lock, for a tenth of a second or more
    std::vector<Entry> entries;
    int foreignReleases = 0;
    int refusals = 0;

    [[nodiscard]] double stuckSeconds() const
    {
        double longest = 0;
        for (const auto& span : dead) {
            longest = std::max(longest, span.seconds());
        }
        return longest;
    }
};

/// Follows the journal entry by entry.
class FactFinder {
public:
    FactFinder(std::vector<Entry> entries, Time end)
    {
        facts_.entries = std::move(entries);
        facts_.end = end;
        for (const auto& entry : facts_.entries) {
            follow(entry);
            judge(entry.at);
        }
        for (int buyer = 0; buyer < buyers; ++buyer) {
            endHold(of(buyer), buyer, end);
        }
        for (auto& each : state_) {
            each.believes = false;
        }
        judge(end);
        close(facts_.dead, deadSince_, isDead_, end);
        std::erase_if(facts_.dead, [](const Span& span) { return span.seconds() < 0.1; });
    }

    [[nodiscard]] Facts take() { return std::move(facts_); }

private:
    struct State {
        bool believes = false;
        bool runs = true;
        Time since{};
        Time stoppedAt{};
    };

    State& of(int buyer) { return state_.at(static_cast<std::size_t>(buyer)); }

    void endHold(State& state, int buyer, Time at)
    {
        if (state.believes) {
            facts_.holds.at(static_cast<std::size_t>(buyer)).push_back({state.since, at});
        }
        state.believes = false;
    }

    void follow(const Entry& entry)
    {
        State& state = of(entry.buyer);
        switch (entry.kind) {
        case Kind::holds:
            state.believes = true;
            state.since = entry.at;
            break;
        case Kind::killed:
        case Kind::ends:
            endHold(state, entry.buyer, entry.at);
            break;
        case Kind::stopped:
            state.runs = false;
            state.stoppedAt = entry.at;
            break;
        case Kind::resumed:
            state.runs = true;
            facts_.stopped.at(static_cast<std::size_t>(entry.buyer)).push_back({state.stoppedAt, entry.at});
            break;
        case Kind::deletesAnothers:
            ++facts_.foreignReleases;
            break;
        case Kind::refused:
            ++facts_.refusals;
            break;
        default:
            break;
        }
    }

    void judge(Time at)
    {
        const auto believers = std::ranges::count_if(state_, [](const State& each) { return each.believes; });
        const bool works = std::ranges::any_of(state_, [](const State& each) { return each.believes && each.runs; });
        turn(facts_.overlaps, overlapsSince_, overlaps_, believers > 1, at);
        turn(facts_.dead, deadSince_, isDead_, !works, at);
    }

    static void turn(std::vector<Span>& spans, Time& since, bool& is, bool willBe, Time at)
    {
        if (!is && willBe) {
            since = at;
        } else if (!willBe) {
            close(spans, since, is, at);
        }
        is = willBe;
    }
    static void close(std::vector<Span>& spans, Time since, bool is, Time at)
    {
        if (is) {
            spans.push_back({since, at});
        }
    }

    Facts facts_;
    std::array<State, buyers> state_;
    bool overlaps_ = false;
    bool isDead_ = false;
    Time overlapsSince_{};
    Time deadSince_{};
};

} // namespace ladder
