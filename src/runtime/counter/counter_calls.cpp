#include "runtime/counter/counter_calls.hpp"

#include "logic/lock/underway.hpp"
#include "runtime/engine/drive.hpp"

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
    engine.start();
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
    auto ending = std::make_shared<CounterEnding>(flow_->takeEnding());
    auto underway = std::make_shared<Underway>(counter_->core); // until what is left to be done is done
    flow_.reset();
    engine_.post([this, self = shared_from_this(), ec = told(ending->error()), ending = std::move(ending),
                  underway = std::move(underway)] {
        counter_->conclude(*ending);
        std::exchange(end_, nullptr)(ec, ending->outcome);
    });
}

} // namespace redislock::detail
