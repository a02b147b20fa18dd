/// @file
/// An acquire and its place among those of its client.
#pragma once

#include "runtime/engine.hpp"

#include <memory>
#include <utility>
#include <variant>

namespace redislock::detail {

/// The answer that another holds the lock; null for any other event.
inline const LockAnswer* busyAnswer(const AcquireMachine::Event& event)
{
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    return replied != nullptr && replied->answer.kind == LockAnswer::Kind::busy ? &replied->answer : nullptr;
}

/// An acquire of an outermost hold under way: the waiter and its place in a queue. Who makes it keeps the order, and has another
/// reference to the hold.
struct Engine::Attempt {
    Attempt(Engine& e, NamedLock& n, HoldRef h, const AcquireOrder& o)
        : engine(e),
          named(n),
          hold(std::move(h)),
          order(o),
          waiter(*hold, e.takeCall(*hold), e.leaseTime(o.lease)),
          queue(o.wait.isOneAttempt() ? n.oneShots : n.waiters),
          isOneAttempt(o.wait.isOneAttempt()),
          deadline(saturatingAdd(waiter.joined, o.wait.span()))
    {
        if (!isOneAttempt && named.traits().keepsPlace) {
            waiter.call->place = placesKept * e.config_.pollInterval;
        }
        queue.join(waiter);
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Leaves, and hands on. Expects the engine's mutex.
    ~Attempt()
    {
        queue.leave(waiter);
        engine.putBack(std::move(waiter.call));
        engine.unsubscribe(named, waiter);
        if (named.waiters.empty()) {
            engine.unsubscribe(named);
        } else if (named.traits().asking == Asking::first && BootClock::now() >= named.local.validUntil()) {
            engine.wakeHead(named);
        }
    }

    /// Whether a waiter that asked gives up a place if it is not granted.
    [[nodiscard]] bool hasPlace() const noexcept { return waiter.call->place.count() > 0; }

    static constexpr int placesKept = 5; ///< polls that may fail before a waiter loses its place

    Engine& engine;
    NamedLock& named;
    HoldRef hold;
    const AcquireOrder& order;
    Waiter waiter;
    WaiterQueue<Waiter>& queue;
    bool isOneAttempt;
    TimePoint deadline;
    std::uint32_t level = 0;
};

} // namespace redislock::detail
