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

/// An acquire of an outermost hold under way: the waiter and its place in a queue. Who makes it has another reference to
/// the hold.
struct Engine::Attempt {
    Attempt(Engine& e, NamedLock& n, HoldRef h, Wait wait, Lease l)
        : engine(e),
          named(n),
          hold(std::move(h)),
          lease(l),
          waiter(*hold, e.takeCall(*hold), e.leaseTime(l)),
          queue(wait.isOneAttempt() ? n.oneShots : n.waiters),
          isOneAttempt(wait.isOneAttempt()),
          deadline(saturatingAdd(waiter.joined, wait.span()))
    {
        queue.join(waiter);
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Leaves, and hands on. Expects the engine's mutex.
    ~Attempt()
    {
        queue.leave(waiter);
        engine.putBack(std::move(waiter.call));
        if (named.waiters.empty()) {
            engine.unsubscribe(named);
        } else if (BootClock::now() >= named.local.validUntil()) {
            engine.wakeHead(named);
        }
    }

    Engine& engine;
    NamedLock& named;
    HoldRef hold;
    Lease lease;
    Waiter waiter;
    WaiterQueue<Waiter>& queue;
    bool isOneAttempt;
    TimePoint deadline;
    std::uint32_t level = 0;
};

} // namespace redislock::detail
