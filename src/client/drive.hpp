/// @file
/// A wait on the calling thread.
#pragma once

#include "client/engine.hpp"
#include "client/policy.hpp"
#include "core/operation/waiting.hpp"
#include "core/order.hpp"
#include "values/system/process.hpp"

#include <stop_token>

namespace redislock::detail {

/// Ends a flow that was called off, if that is possible.
template <class Flow>
void callOff(Flow& flow)
{
    if constexpr (requires { flow.cancel(); }) {
        (void)flow.cancel();
    }
}

/// Drives a flow on the calling thread, to its end. @param lock the engine's, locked. @param stop calls the wait off;
/// stopping it only wakes this thread. @param order needed for an acquire that may have a policy. @return whether the
/// wait was called off
template <class Flow>
bool drive(Engine& engine, Engine::Lock& lock, Flow& flow, const std::stop_token& stop = {},
           [[maybe_unused]] const AcquireOrder* order = nullptr)
{
    const Uncancelled held;
    for (auto next = flow.look(); next.kind != WaitStep::Kind::done;) {
        Call& call = flow.call();
        const auto wake = [&call] { call.signal.notify(Signal::look); };
        switch (next.kind) {
        case WaitStep::Kind::awaitAnswer: {
            lock.unlock();
            const Outcome outcome = [&] {
                using First = ThreadLink::First;
                const std::stop_callback wakes(stop, wake);
                return engine.commands().await(call, next.until, next.follows ? First::follow : First::lead, stop);
            }();
            call.signal.clearDone();
            lock.lock();
            if (outcome.calledOff) {
                callOff(flow);
                return true;
            }
            next = flow.answered(outcome);
            break;
        }
        case WaitStep::Kind::askPolicy:
            if constexpr (requires { flow.paused(Pause{}); }) {
                Random random(engine.core(lock).random.next());
                lock.unlock();
                const auto answer = pauseOf(*order->retry, next.refusals, random, order->thrown);
                lock.lock();
                next = flow.paused(answer);
            }
            break;
        default:
            lock.unlock();
            {
                const std::stop_callback wakes(stop, wake);
                call.signal.waitUntil(next.until);
            }
            lock.lock();
            if (stop.stop_requested()) {
                callOff(flow);
                return true;
            }
            next = flow.look();
        }
    }
    return false;
}

} // namespace redislock::detail
