/// @file
/// An acquire and its place among those of its client.
#pragma once

#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"

#include <memory>
#include <utility>

namespace redislock::detail {

/// The answer to an acquire. @param outcome as of eventOf().
inline AcquireMachine::Event lockEventOf(const HoldCall& call, const Outcome& outcome, TimePoint now)
{
    return eventOf<AcquireMachine::Event, LockAnswer>(call, outcome, now, call.hold().lock->traits().tokens,
                                                      call.level());
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
          asksForItself(o.wait.isOneAttempt() || o.retry != nullptr),
          queue(asksForItself ? n.askers : n.waiters),
          deadline(saturatingAdd(waiter.joined, o.wait.span()))
    {
        waiter.behindHold = waiter.joined < named.local.validUntil();
        waiter.comesBack = !o.wait.isOneAttempt();
        waiter.call->hurried = o.wait.isOneAttempt();
        if (!asksForItself && named.traits().keepsPlace) {
            waiter.call->place = placesKept * e.config_.pollInterval;
        }
        if (e.closing_) {
            waiter.ended = Errc::shutdown; // too late to be told with the others
        }
        const Waiter* first = named.waiters.head();
        waiter.behindHold = waiter.behindHold || (first != nullptr && first->refused);
        queue.join(waiter);
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Leaves, and hands on. Expects the engine's mutex.
    ~Attempt()
    {
        queue.leave(waiter);
        if (waiter.call->pending && waiter.operation == nullptr) {
            (void)engine.commands_->leave(*waiter.call);
        }
        engine.ends(waiter);
        engine.putBack(std::move(waiter.call));
        engine.unsubscribe(named, waiter);
        if (named.waiters.empty()) {
            engine.unsubscribe(named);
        }
        const bool handsOn =
            !named.waiters.empty() || waiter.comesBack; // a single attempt was given nothing to hand on
        if (handsOn && named.traits().asking == Asking::first && BootClock::now() >= named.local.validUntil()) {
            engine.wakeNext(named);
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
    const bool asksForItself; ///< stands behind nobody and before nobody: neither here nor in Redis
    WaiterQueue<Waiter>& queue;
    TimePoint deadline;
    std::uint32_t level = 0;
};

} // namespace redislock::detail
