/// @file
/// Questions and waits about counters that no thread waits for.
#pragma once

#include "runtime/counter/counter_flow.hpp"
#include "runtime/engine/async_query.hpp"
#include "runtime/engine/async_wait.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

/// A wait's flow, driven on the background thread.
class NamedCounter::AsyncFlow final : public Engine::AsyncWait<Flow> {
public:
    AsyncFlow(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end);

    /// Background thread.
    void begin();

private:
    void finish() override;

    const std::shared_ptr<NamedCounter> counter_;
    CounterOrder order_; ///< until it begins
    End end_;
};

template <class Result>
void NamedCounter::asyncAsk(CounterRequest<Result> request, Handler<Result> handler)
{
    if (request.call == nullptr) {
        const auto ec = request.refused ? std::error_code(*request.refused) : std::error_code();
        return engine->completionOf(std::move(handler))(ec, std::move(request.known));
    }
    const auto call = request.call;
    const auto giving = request.afterwards ? std::make_shared<Giving>(shared_from_this()) : nullptr;
    engine->asyncQuery<Result>(
        call, std::move(handler),
        [self = shared_from_this(), request = std::move(request), begin = BootClock::now(),
         giving](const auto& asked, std::error_code ec, const QueryMachine& machine, const Reply&) {
            auto result = ec ? request.known : request.meaning(*request.call, machine.repeated(), ec);
            ec = self->conclude(request, begin, machine.repeated(), ec);
            Undo undo;
            if (request.untold && !ec) {
                undo = Undo([untold = request.untold, result] { untold(result); });
            }
            asked->completion(codeOf(ec), std::move(result), std::move(undo));
        });
}

template <class Result>
void NamedCounter::asyncAcquire(CounterOrder order, Handler<Result> handler,
                                std::function<Result(const CounterOutcome&)> make)
{
    const auto completion = std::make_shared<Completion<Result>>(engine->completionOf(std::move(handler)));
    auto refused =
        order.script == nullptr ? std::optional(Errc::invalidArgument) : whyNot(isForked(), engine->closing_);
    if (!refused) {
        End end = [completion, make = std::move(make), untold = order.untold](boost::system::error_code ec,
                                                                              const CounterOutcome& outcome) {
            (*completion)(ec, make(outcome), Undo(outcome.granted ? untold : nullptr));
        };
        const auto operation = std::make_shared<AsyncFlow>(shared_from_this(), std::move(order), std::move(end));
        completion->onCancellation([weak = std::weak_ptr(operation)] {
            if (const auto self = weak.lock()) { // the slot may outlive everything
                self->cancel();
            }
        });
        const Lock lock(engine->mutex_);
        if (!engine->closing_) {
            return engine->post([operation] { operation->begin(); });
        }
        refused = Errc::shutdown;
    }
    (*completion)(std::error_code(*refused), Result());
}

} // namespace redislock::detail
