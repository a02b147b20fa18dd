/// @file
/// Calls about semaphores and latches, blocking and asynchronous.
#pragma once

#include "client/async_operation.hpp"
#include "client/engine.hpp"
#include "client/lock/thread_calls.hpp"
#include "core/core.hpp"
#include "core/counter/counter.hpp"
#include "core/counter/counter_flow.hpp"
#include "core/counter/permit_requests.hpp"
#include "core/operation/query_flow.hpp"
#include "redislock/permit.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// What the public objects ask of the engine.
struct CounterCalls {
    /// Sends a request and waits for the answer.
    template <class Result>
    static Result ask(NamedCounter& counter, const CounterRequest<Result>& request, std::error_code& ec)
    {
        bool repeated = false;
        const TimePoint begin = BootClock::now();
        ec = request.refused           ? std::error_code(*request.refused)
             : request.call == nullptr ? std::error_code()
                                       : ThreadCalls::query(engineOf(counter), request.call, repeated);
        return counter.conclude(request, begin, repeated, ec);
    }
    template <class Result>
    static void asyncAsk(const std::shared_ptr<NamedCounter>& counter, CounterRequest<Result> request,
                         Handler<Result> handler);

    /// Waits until granted, or called off, on the calling thread.
    static std::error_code acquire(NamedCounter& counter, const CounterOrder& order, const std::stop_token& stop,
                                   CounterOutcome& outcome);
    /// Waits until granted, without blocking a thread. @param make makes the result from the outcome.
    template <class Result>
    static void asyncAcquire(const std::shared_ptr<NamedCounter>& counter, CounterOrder order, Handler<Result> handler,
                             std::function<Result(const CounterOutcome&)> make);

    /// The guard of a granted permit.
    static Permit guardOf(std::shared_ptr<PermitHold> hold) { return Permit(std::move(hold)); }
};

template <class Result>
void CounterCalls::asyncAsk(const std::shared_ptr<NamedCounter>& counter, CounterRequest<Result> request,
                            Handler<Result> handler)
{
    Engine& engine = engineOf(*counter);
    if (request.call == nullptr) {
        const auto ec = request.refused ? std::error_code(*request.refused) : std::error_code();
        return completionOf(engine, std::move(handler))(ec, std::move(request.known));
    }
    const auto call = request.call;
    const auto giving = request.afterwards ? std::make_shared<UnawaitedRelease>(counter) : nullptr;
    launch<QueryFlow>(
        engine, {}, std::move(handler),
        [call](std::optional<QueryFlow>& flow, BackgroundRun* run) { flow.emplace(run->core(), call, run); },
        [counter, request = std::move(request), begin = BootClock::now(), giving](std::optional<QueryFlow>& flow,
                                                                                  bool cancelled) {
            auto ec = cancelled && flow->error() ? std::make_error_code(std::errc::operation_canceled) : flow->error();
            return [=, repeated = flow->repeated()](auto& completion) mutable {
                auto result = counter->conclude(request, begin, repeated, ec);
                Undo undo;
                if (request.untold && !ec) {
                    undo = Undo([untold = request.untold, result] { untold(result); });
                }
                completion(handlersCode(ec, cancelled), std::move(result), std::move(undo));
            };
        });
}

template <class Result>
void CounterCalls::asyncAcquire(const std::shared_ptr<NamedCounter>& counter, CounterOrder order,
                                Handler<Result> handler, std::function<Result(const CounterOutcome&)> make)
{
    const auto refused = order.script == nullptr ? std::optional<Reason>(Errc::invalidArgument) : std::nullopt;
    const auto untold = order.untold;
    launch<CounterFlow>(
        engineOf(*counter), refused, std::move(handler),
        [counter, order = std::move(order)](std::optional<CounterFlow>& flow, BackgroundRun* run) mutable {
            flow.emplace(*counter, std::move(order), run);
        },
        [counter, make = std::move(make), untold](std::optional<CounterFlow>& flow, bool cancelled) {
            const auto ending = std::make_shared<const CounterEnding>(flow->takeEnding());
            return [=](auto& completion) {
                counter->conclude(*ending);
                const auto& outcome = ending->outcome;
                completion(handlersCode(ending->error(), cancelled), make(outcome),
                           Undo(outcome.granted ? untold : nullptr));
            };
        });
}

} // namespace redislock::detail
