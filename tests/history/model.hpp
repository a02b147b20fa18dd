/// @file
/// Locks as sequential machines: what one operation after the other may do.
///
/// A model is a class with a `State` that can be ordered, a `start`, and a function
/// `std::optional<State> step(State, Operation)`: the state after the operation, or nothing where it is not possible.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace redislock::test::history {

/// What a model is asked about.
struct Operation {
    enum class Kind { acquire, release } kind = Kind::acquire;
    int owner = 0;
    std::int64_t fence = 0;   ///< FencedMutex: what the acquire returned
    std::int64_t permits = 1; ///< Permits: how many
};

/// One owner at a time, who cannot acquire twice.
struct OwnerMutex {
    using State = int; // the owner; 0: free
    State start = 0;

    std::optional<State> step(State owner, const Operation& operation) const
    {
        if (operation.kind == Operation::Kind::acquire) {
            return owner == 0 ? std::optional(operation.owner) : std::nullopt;
        }
        return owner == operation.owner ? std::optional(0) : std::nullopt;
    }
};

/// One owner at a time, who releases as often as it acquired.
struct ReentrantMutex {
    using State = std::pair<int, int>; // owner, count
    State start{0, 0};

    std::optional<State> step(State state, const Operation& operation) const
    {
        const auto [owner, count] = state;
        if (operation.kind == Operation::Kind::acquire) {
            return owner == 0 || owner == operation.owner ? std::optional(State{operation.owner, count + 1})
                                                          : std::nullopt;
        }
        if (owner != operation.owner) {
            return std::nullopt;
        }
        return count == 1 ? State{0, 0} : State{owner, count - 1};
    }
};

/// OwnerMutex whose every acquire returns a greater number than all before it.
struct FencedMutex {
    using State = std::pair<int, std::int64_t>; // owner, last fence
    State start{0, 0};

    std::optional<State> step(State state, const Operation& operation) const
    {
        const auto owner = OwnerMutex{}.step(state.first, operation);
        if (!owner || (operation.kind == Operation::Kind::acquire && operation.fence <= state.second)) {
            return std::nullopt;
        }
        return State{*owner, operation.kind == Operation::Kind::acquire ? operation.fence : state.second};
    }
};

/// As many permits as configured, over all owners.
struct Permits {
    using State = std::map<int, std::int64_t>; // held, by owner
    std::int64_t configured = 1;
    State start{};

    std::optional<State> step(State held, const Operation& operation) const
    {
        auto sum = operation.permits;
        for (const auto& [owner, permits] : held) {
            sum += permits;
        }
        auto& own = held[operation.owner];
        if (operation.kind == Operation::Kind::acquire) {
            own += operation.permits;
            return sum <= configured ? std::optional(held) : std::nullopt;
        }
        if (own < operation.permits) {
            return std::nullopt;
        }
        own -= operation.permits;
        if (own == 0) {
            held.erase(operation.owner);
        }
        return held;
    }
};

} // namespace redislock::test::history
