/// @file
/// Calls about semaphores and latches, blocking and asynchronous.
#pragma once

#include "client/async_query.hpp"
#include "client/async_wait.hpp"
#include "client/engine.hpp"
#include "client/lock/thread_calls.hpp"
#include "core/core.hpp"
#include "core/counter/counter.hpp"
#include "core/counter/counter_flow.hpp"
#include "core/counter/permit_requests.hpp"
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
        QueryMachine machine(counter.core.config.unreachableAfter);
        const TimePoint begin = BootClock::now();
        ec = request.refused           ? std::error_code(*request.refused)
             : request.call == nullptr ? std::error_code()
                                       : ThreadCalls::query(engineOf(counter), request.call, machine);
        return counter.conclude(request, begin, machine.repeated(), ec);
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

private:
    class AsyncFlow;
    using End = std::function<void(boost::system::error_code, const CounterOutcome&)>;
};

/// A wait's flow, driven on the background thread.
class CounterCalls::AsyncFlow final : public AsyncWait<CounterFlow> {
public:
    AsyncFlow(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end);

    /// Background thread.
    void begin();

private:
    void finish() override;
    void failed() override;

    const std::shared_ptr<NamedCounter> counter_;
    CounterOrder order_; ///< until it begins
    End end_;
    CounterEnding ending_;
    std::optional<Underway> underway_; ///< until what is left to be done is done
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
    asyncQuery<Result>(engine, call, std::move(handler),
                       [counter, request = std::move(request), begin = BootClock::now(),
                        giving](const auto& asked, std::error_code ec, const QueryMachine& machine, const Reply&) {
                           auto result = counter->conclude(request, begin, machine.repeated(), ec);
                           Undo undo;
                           if (request.untold && !ec) {
                               undo = Undo([untold = request.untold, result] { untold(result); });
                           }
                           asked->completion(codeOf(ec), std::move(result), std::move(undo));
                       });
}

template <class Result>
void CounterCalls::asyncAcquire(const std::shared_ptr<NamedCounter>& counter, CounterOrder order,
                                Handler<Result> handler, std::function<Result(const CounterOutcome&)> make)
{
    Engine& engine = engineOf(*counter);
    const auto completion = std::make_shared<Completion<Result>>(completionOf(engine, std::move(handler)));
    auto refused = order.script == nullptr ? std::optional<Reason>(Errc::invalidArgument) : engine.asyncRefusal();
    if (!refused) {
        End end = [completion, make = std::move(make), untold = order.untold](boost::system::error_code ec,
                                                                              const CounterOutcome& outcome) {
            (*completion)(ec, make(outcome), Undo(outcome.granted ? untold : nullptr));
        };
        const auto operation = std::make_shared<AsyncFlow>(counter, std::move(order), std::move(end));
        completion->onCancellation([weak = std::weak_ptr(operation)] {
            if (const auto self = weak.lock()) { // the slot may outlive the operation
                self->cancel();
            }
        });
        if (engine.tryPost([operation] { operation->begin(); })) {
            return;
        }
        refused = Errc::shutdown;
    }
    (*completion)(std::error_code(*refused), Result());
}

} // namespace redislock::detail
