/// @file
/// What whoever waits, and whoever drives that, say to each other.
#pragma once

#include "logic/call/call.hpp"
#include "logic/call/port.hpp"
#include "redislock/clock.hpp"

#include <cstdint>

namespace redislock::detail {

/// What the driver of a flow does next. A flow is a wait under way, step by step: a thread drives it in a loop, an
/// asynchronous operation by completions. Each function of a flow expects the logic's mutex and returns one of these:
///
///     WaitStep look();                   // something changed, or its time has come; the first step too
///     WaitStep answered(const Outcome&); // the request ended
///     WaitStep cancel();                 // ends at once; of a wait that may be called off
///
/// A thread sleeps on the signal of its request, `call()`. What a step has queued is written by the driver: it waits
/// for the answer, or flushes the connection.
struct WaitStep {
    enum class Kind : std::uint8_t {
        awaitAnswer, ///< waits for the end of the request until then, then answered()
        sleep,       ///< until it is told to look, or until then, then look()
        askPolicy,   ///< under no mutex, then paused()
        done,        ///< the flow says how
    };
    Kind kind = Kind::done;
    TimePoint until{};
    std::uint32_t refusals = 0; ///< of askPolicy
    bool follows = false;       ///< of awaitAnswer: the thread of the request behind this one may read both answers
};

/// An asynchronous operation that waits, as others see it.
class AsyncWaiter {
public:
    virtual ~AsyncWaiter() = default;
    /// Something changed: it judges again, soon, on the background thread. Expects the logic's mutex.
    virtual void look() noexcept = 0;
    /// Its request was answered, or not. On the background thread, without the mutex.
    virtual void answered(Call& call) = 0;
};

/// Takes back the request of an asynchronous wait that is told to end, if it was not sent: the client's end does not
/// wait for a connection. @return whether it did.
template <class Waiting>
bool takesBack(Waiting& waiter, Port& port)
{
    return waiter.ended && waiter.operation != nullptr && waiter.call->pending && port.withdraw(*waiter.call);
}

} // namespace redislock::detail
