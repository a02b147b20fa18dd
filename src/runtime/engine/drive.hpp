/// @file
/// A wait on the calling thread.
#pragma once

#include "logic/flow/waiting.hpp"
#include "logic/lock/order.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/policy.hpp"

namespace redislock::detail {

/// Drives a flow on the calling thread, to its end. @param lock the engine's, locked. @param order of an acquire that
/// may have a policy
template <class Flow>
void drive(Engine& engine, Engine::Lock& lock, Flow& flow, [[maybe_unused]] const AcquireOrder* order = nullptr)
{
    for (auto next = flow.look(); next.kind != WaitStep::Kind::done;) {
        Call& call = flow.call();
        switch (next.kind) {
        case WaitStep::Kind::awaitAnswer: {
            lock.unlock();
            using First = BlockingConnection::First;
            const Outcome outcome =
                engine.commands().await(call, next.until, next.follows ? First::follow : First::lead);
            call.signal.clearDone();
            lock.lock();
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
            call.signal.waitUntil(next.until);
            lock.lock();
            next = flow.look();
        }
    }
}

} // namespace redislock::detail
