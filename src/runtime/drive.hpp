/// @file
/// A wait on the calling thread.
#pragma once

#include "runtime/engine.hpp"
#include "runtime/policy.hpp"
#include "runtime/waiting.hpp"

namespace redislock::detail {

/// Drives a flow on the calling thread, to its end.
template <class Flow>
void Engine::drive(Lock& lock, Flow& flow)
{
    for (auto next = flow.look(); next.kind != WaitStep::Kind::done;) {
        Call& call = *flow.waiter.call;
        switch (next.kind) {
        case WaitStep::Kind::awaitAnswer: {
            lock.unlock();
            const Outcome outcome = commands_->await(call, next.until);
            call.signal.clearDone();
            lock.lock();
            next = flow.answered(outcome);
            break;
        }
        case WaitStep::Kind::askPolicy:
            if constexpr (requires { flow.order.retry; }) {
                Random random(random_.next());
                lock.unlock();
                const auto answer = pauseOf(*flow.order.retry, next.refusals, random, flow.order.thrown);
                lock.lock();
                next = flow.paused(answer);
            }
            break;
        default:
            lock.unlock();
            call.signal.waitUntil(next.until);
            lock.lock();
            next = flow.look();
        }
    }
}

} // namespace redislock::detail
