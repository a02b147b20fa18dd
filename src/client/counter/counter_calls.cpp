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

} // namespace redislock::detail
