/// @file
/// What a wait and its driver tell each other.
#pragma once

#include "core/port.hpp"
#include "link/request/call.hpp"
#include "redislock/clock.hpp"

#include <cstdint>

namespace redislock::detail {

/// What the driver of a flow does next. A flow is a wait under way, step by step: a thread drives it in a loop, an
/// asynchronous operation by completions. Each function of a flow expects the core's mutex and returns one of these:
///
///     WaitStep look();                   // something changed, or its time has come; the first step too
///     WaitStep answered(const Outcome&); // the request ended
///     WaitStep cancel();                 // ends at once; of a wait that may be called off
///
/// A thread sleeps on the signal of its request, `call()`. The driver writes what a step has queued: it waits for the
/// answer, or flushes the connection.
struct WaitStep {
    enum class Kind : std::uint8_t {
        awaitAnswer, ///< for the end of the request, at most until `until`: then answered()
        sleep,       ///< until it is told to look, at most until `until`: then look()
        askPolicy,   ///< under no mutex: then paused()
        done,        ///< the flow says how
    };
    Kind kind = Kind::done;
    TimePoint until{};
    std::uint32_t refusals = 0; ///< for askPolicy: how many refusals there were
    bool follows = false;       ///< for awaitAnswer: the thread of the request behind this one may read both answers
};

/// An asynchronous operation that waits, as others see it.
class AsyncWaiter {
public:
    virtual ~AsyncWaiter() = default;
    /// Something changed: the operation judges again, soon, on the background thread. Expects the core's mutex.
    virtual void look() noexcept = 0;
    /// Its request was answered, or failed. Called on the background thread, without the mutex.
    virtual void answered(Call& call) = 0;
};

/// Takes back the request of an asynchronous wait that has to end, if it was not sent: the client's end does not wait
/// for a connection. @return whether it was taken back.
template <class Waiting>
bool takesBack(Waiting& waiter, Port& port)
{
    return waiter.ended && waiter.operation != nullptr && waiter.call->pending && port.withdraw(*waiter.call);
}

} // namespace redislock::detail
