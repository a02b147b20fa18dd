#include "client/counter/counter_calls.hpp"

#include "client/drive.hpp"

#include <utility>

namespace redislock::detail {

std::error_code CounterCalls::acquire(NamedCounter& counter, const CounterOrder& order, const std::stop_token& stop,
                                      CounterOutcome& outcome)
{
    Engine& engine = engineOf(counter);
    if (order.script == nullptr) {
        return Errc::invalidArgument;
    }
    if (stop.stop_requested()) {
        return {};
    }
    if (const auto refused = engine.refusal()) {
        return *refused;
    }
    bool calledOff = false;
    CounterEnding ending;
    std::optional<Underway> underway;
    {
        auto lock = engine.lock();
        CounterFlow flow(counter, order, nullptr);
        calledOff = drive(engine, lock, flow, stop);
        ending = flow.takeEnding();
        if (ending.isOpen() || !ending.order.record.empty()) {
            underway.emplace(counter.core); // until the background work that it leaves counts itself
        }
    }
    counter.conclude(ending);
    outcome = ending.outcome;
    return calledOff ? std::error_code() : ending.error();
}

CounterCalls::AsyncFlow::AsyncFlow(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end)
    : AsyncWait(engineOf(*counter)), counter_(std::move(counter)), order_(std::move(order)), end_(std::move(end))
{
}

void CounterCalls::AsyncFlow::begin()
{
    const auto lock = engine_.lock();
    AsyncWait::begin(*counter_, std::move(order_));
}

void CounterCalls::AsyncFlow::finish()
{
    ending_ = flow_->takeEnding();
    underway_.emplace(counter_->core);
    flow_.reset();
    engine_.post([this, self = shared_from_this()] {
        counter_->conclude(ending_);
        std::exchange(end_, nullptr)(codeForHandler(ending_.error()), ending_.outcome);
        underway_.reset();
    });
}

void CounterCalls::AsyncFlow::failed()
{
    engine_.post([this, self = shared_from_this()] { std::exchange(end_, nullptr)(noMemory(), CounterOutcome()); });
}

} // namespace redislock::detail
