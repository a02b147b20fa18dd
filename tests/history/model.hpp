/// @file
/// Locks as sequential machines, which execute one operation after the other.
///
/// A model is a class with a `State` that can be ordered, a `start`, and a function `std::optional<State> step(State,
/// Operation)`: the state after the operation, or nothing if the operation is not possible.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace redislock::test::history {

/// An operation of a model.
struct Operation {
    enum class Kind { acquire, release } kind = Kind::acquire;
    int owner = 0;
    std::int64_t fence = 0;   ///< FencedMutex: what the acquire returned
    std::int64_t permits = 1; ///< Permits: how many
    bool shares = false;      ///< SharedMutex: with others that do
};

/// One owner at a time, which cannot acquire twice.
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

/// One owner at a time, or many that share; each releases as often as it acquired. The owner may share as well, and
/// goes on sharing when it has released the rest.
struct SharedMutex {
    using State = std::tuple<int, int, std::map<int, int>>; // owner, count; count by sharer
    State start{};

    std::optional<State> step(State state, const Operation& operation) const
    {
        const bool isAcquire = operation.kind == Operation::Kind::acquire;
        return operation.shares ? share(std::move(state), operation.owner, isAcquire)
                                : own(std::move(state), operation.owner, isAcquire);
    }

private:
    static std::optional<State> own(State state, int asker, bool isAcquire)
    {
        auto& [owner, count, sharers] = state;
        const bool isFree = owner == 0 && sharers.empty();
        if (owner != asker && !(isAcquire && isFree)) {
            return std::nullopt;
        }
        count += isAcquire ? 1 : -1;
        owner = count > 0 ? asker : 0;
        return state;
    }

    static std::optional<State> share(State state, int asker, bool isAcquire)
    {
        auto& [owner, count, sharers] = state;
        auto& own = sharers[asker];
        if (isAcquire ? owner != 0 && owner != asker : own == 0) {
            return std::nullopt;
        }
        own += isAcquire ? 1 : -1;
        if (own == 0) {
            sharers.erase(asker);
        }
        return state;
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
