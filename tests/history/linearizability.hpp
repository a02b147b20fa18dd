/// @file
/// Whether operations that overlapped can be put in an order that a sequential model allows.
#pragma once

#include "history/history.hpp"
#include "history/model.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace redislock::test::history {

/// An operation that took effect at some moment between two, both included. An operation that may not have had an
/// effect never returns.
struct TimedOperation {
    Operation operation;
    Nanoseconds invoked = 0;
    Nanoseconds returned = never;
};

/// The answer of linearize().
struct Linearization {
    enum class Verdict { possible, impossible, undecided } verdict = Verdict::possible;
    std::size_t failedAt = 0; ///< impossible: the operation that has no place at its return
};

/// The states in which a model may be, each with the operations under way that have already taken effect.
template <class Model>
class Configurations {
public:
    Configurations(const Model& model, const std::vector<TimedOperation>& operations, std::size_t most)
        : model_(model), operations_(operations), most_(most), possible_{{model.start, {}}}
    {
    }

    void invoked(std::size_t operation) { pending_.push_back(operation); }

    /// Everything under way may have happened before this operation; only orders that end with it matter.
    Linearization::Verdict returned(std::size_t operation)
    {
        std::set<Configuration> after;
        std::set<Configuration> seen = possible_;
        std::vector<Configuration> open(possible_.begin(), possible_.end());
        while (!open.empty()) {
            auto [state, done] = std::move(open.back());
            open.pop_back();
            if (std::binary_search(done.begin(), done.end(), operation)) {
                done.erase(std::lower_bound(done.begin(), done.end(), operation));
                after.insert({std::move(state), std::move(done)});
            } else {
                stepAll(state, done, seen, open);
            }
            if (seen.size() > most_) {
                return Linearization::Verdict::undecided;
            }
        }
        possible_ = std::move(after);
        pending_.erase(std::find(pending_.begin(), pending_.end(), operation));
        return possible_.empty() ? Linearization::Verdict::impossible : Linearization::Verdict::possible;
    }

private:
    using Done = std::vector<std::size_t>; // sorted
    using Configuration = std::pair<typename Model::State, Done>;

    void stepAll(const typename Model::State& state, const Done& done, std::set<Configuration>& seen,
                 std::vector<Configuration>& open) const
    {
        for (const auto next : pending_) {
            const auto at = std::lower_bound(done.begin(), done.end(), next);
            if (at != done.end() && *at == next) {
                continue;
            }
            if (auto stepped = model_.step(state, operations_[next].operation)) {
                auto more = done;
                more.insert(more.begin() + (at - done.begin()), next);
                Configuration configuration{std::move(*stepped), std::move(more)};
                if (seen.insert(configuration).second) {
                    open.push_back(std::move(configuration));
                }
            }
        }
    }

    const Model& model_;
    const std::vector<TimedOperation>& operations_;
    std::size_t most_;
    std::set<Configuration> possible_;
    std::vector<std::size_t> pending_;
};

/// Goes through time and keeps all configurations ("just-in-time linearization"). An operation takes effect at the
/// latest when it returns. An operation that never returns may take effect at any time, or not at all. Undecided when
/// there are more than @p most configurations at a time.
///
/// Locks are independent of each other: call this function for each lock.
template <class Model>
Linearization linearize(const Model& model, const std::vector<TimedOperation>& operations, std::size_t most = 100'000)
{
    struct Event {
        Nanoseconds t;
        bool isReturn;
        std::size_t operation;
    };
    std::vector<Event> events;
    for (std::size_t i = 0; i < operations.size(); ++i) {
        events.push_back({operations[i].invoked, false, i});
        if (operations[i].returned != never) {
            events.push_back({operations[i].returned, true, i});
        }
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
        return std::pair(a.t, a.isReturn) < std::pair(b.t, b.isReturn); // those of one moment overlap
    });
    Configurations<Model> configurations(model, operations, most);
    for (const auto& event : events) {
        if (!event.isReturn) {
            configurations.invoked(event.operation);
        } else if (const auto verdict = configurations.returned(event.operation);
                   verdict != Linearization::Verdict::possible) {
            return {verdict, event.operation};
        }
    }
    return {};
}

} // namespace redislock::test::history
