/// @file
/// A wait on the calling thread.
#pragma once

#include "client/engine.hpp"
#include "core/operation/thread_run.hpp"
#include "values/system/process.hpp"

#include <stop_token>

namespace redislock::detail {

/// Runs an operation on the calling thread, to its end. @param lock the engine's, locked. @param stop calls the wait
/// off; stopping it only wakes this thread. @return whether the wait was called off
template <class Flow>
bool drive(Engine& engine, Engine::Lock& lock, Flow& flow, const std::stop_token& stop = {})
{
    const Uncancelled held;
    ThreadRun run(flow);
    while (!run.isDone()) {
        const WaitStep next = run.next();
        if (next.kind == WaitStep::Kind::askPolicy) {
            Random random(engine.core(lock).random.next());
            lock.unlock();
            const auto answer = pauseOf(*next.order->retry, next.refusals, random, next.order->thrown);
            lock.lock();
            run.paused(answer);
            continue;
        }
        Call& call = flow.call();
        const bool awaits = next.kind == WaitStep::Kind::awaitAnswer;
        const auto wake = [&call] { call.signal.notify(Signal::look); };
        lock.unlock();
        Outcome outcome;
        {
            using First = ThreadLink::First;
            const std::stop_callback wakes(stop, wake);
            if (awaits) {
                outcome =
                    engine.commandsFor(call).await(call, next.until, next.follows ? First::follow : First::lead, stop);
            } else {
                call.signal.waitUntil(next.until);
            }
        }
        lock.lock();
        awaits ? run.answered(outcome) : run.woke(stop.stop_requested());
    }
    return run.isCalledOff();
}

} // namespace redislock::detail
