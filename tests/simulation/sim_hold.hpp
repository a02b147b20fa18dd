/// @file
/// What a client knows of its locks. Named and ordered as in `src/runtime/hold.hpp`.
#pragma once

#include "redislock/detail/logic/due_heap.hpp"
#include "redislock/detail/logic/hand_over.hpp"
#include "redislock/detail/logic/hold_levels.hpp"
#include "redislock/detail/logic/local_lock.hpp"
#include "redislock/detail/logic/own_releases.hpp"
#include "redislock/detail/logic/release_machine.hpp"
#include "redislock/detail/logic/renew_machine.hpp"
#include "redislock/detail/logic/waiter_queue.hpp"
#include "runtime/lock_kind.hpp"
#include "simulation/call.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace redislock::simulation {

class Operation;
struct NamedLock;

/// A lock of a run; of a read/write lock, one of its halves.
struct View {
    std::string name;
    detail::LockKind kind;
};

/// An outermost hold with its nested levels.
struct Hold : std::enable_shared_from_this<Hold> {
    enum class Phase : std::uint8_t { acquiring, held, ended, lost };

    [[nodiscard]] TimePoint validUntil() const noexcept { return phase == Phase::held ? deadline : TimePoint{}; }

    NamedLock* lock = nullptr;
    std::uint64_t id = 0;
    std::string holder; ///< in Redis
    std::uint64_t owner = 0;
    Phase phase = Phase::acquiring;
    TimePoint deadline{};
    detail::HoldLevels levels;
    TimePoint grantedAt{};
    std::uint64_t token = 0; ///< of a fenced lock

    std::function<void()> whenLost; ///< of a member of a group

    detail::RenewMachine renewal;
    detail::DueSlot renewalSlot;
    detail::DueSlot deadlineSlot;
    TimePoint renewedAt{}; ///< when the grant or renewal that counts was sent

    Call command;
    bool commandTaken = false;
    detail::ReleaseMachine release; ///< of an unawaited release
    std::weak_ptr<Call> releaseCall;
};

/// A thread that waits for a lock.
struct Waiter : detail::WaiterLink<Waiter> {
    void wake() const;

    Operation* operation = nullptr;
    std::shared_ptr<Hold> hold;
    std::chrono::milliseconds lease{};
    TimePoint joined{};
    bool parked = false;
    bool submitted = false;
    bool notified = false;
    bool comesBack = true;   ///< asks more than once
    bool subscribed = false; ///< to a channel of its own
    detail::Refusals refusals;
};

/// Everything about one name.
struct NamedLock {
    explicit NamedLock(const View& view, std::size_t at) : name(view.name), kind(view.kind), index(at) {}

    [[nodiscard]] const detail::KindTraits& traits() const noexcept { return detail::KindTraits::of(kind); }
    /// On which Redis tells that it is free, or what the channels of a queue begin with; empty if it tells nobody.
    [[nodiscard]] std::string channel() const;

    const std::string name;
    const detail::LockKind kind;
    const std::size_t index; ///< among those of the run

    detail::LocalLock<Hold> local;
    detail::WaiterQueue<Waiter> waiters;
    detail::WaiterQueue<Waiter> askers;
    detail::OwnReleases releases; ///< of all kinds of this name
    std::uint32_t releaseWatchers = 0;
    detail::HandOver handOver;
    bool subscribed = false;
    std::optional<TimePoint> answeredAt;
    std::optional<TimePoint> silentSince;
};

} // namespace redislock::simulation
