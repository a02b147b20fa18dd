#include "runtime/counter/counter_async.hpp"

#include "runtime/engine/underway.hpp"

#include <utility>

namespace redislock::detail {

NamedCounter::AsyncFlow::AsyncFlow(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end)
    : AsyncWait(*counter->engine), counter_(std::move(counter)), order_(std::move(order)), end_(std::move(end))
{
}

void NamedCounter::AsyncFlow::begin()
{
    const Lock lock(engine_.mutex_);
    AsyncWait::begin(*counter_, std::move(order_));
}

void NamedCounter::AsyncFlow::finish()
{
    auto ending = std::make_shared<Ending>(flow_->takeEnding());
    auto underway = std::make_shared<Underway>(engine_); // until what the end leaves is done
    flow_.reset();
    engine_.post([this, self = shared_from_this(), ec = told(ending->error()), ending = std::move(ending),
                  underway = std::move(underway)] {
        counter_->conclude(*ending);
        std::exchange(end_, nullptr)(ec, ending->outcome);
    });
}

} // namespace redislock::detail
