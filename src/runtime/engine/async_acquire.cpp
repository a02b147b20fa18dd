#include "runtime/engine/async_acquire.hpp"

#include "redislock/lock_guard.hpp"
#include "runtime/engine/policy.hpp"

#include <utility>

namespace redislock::detail {

AsyncAcquire::AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                           Completion<LockGuard> completion)
    : AsyncWait(engine), named_(std::move(named)), order_(std::move(order)), completion_(std::move(completion))
{
}

AsyncAcquire::~AsyncAcquire() = default;

void AsyncAcquire::cancelWhenToldTo()
{
    completion_.onCancellation([weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->cancel();
        }
    });
}

void AsyncAcquire::begin()
{
    const auto lock = engine_.lock();
    Core& core = engine_.core(lock);
    hold_ = core.takeHold(*named_, 0, Lane::background);
    AsyncWait::begin(core, *named_, hold_, order_);
}

/// Asks the policy soon, without the mutex.
void AsyncAcquire::askPolicy(std::uint32_t refusals)
{
    engine_.post([this, self = shared_from_this(), refusals] {
        const auto answer = pauseOf(*order_.retry, refusals, engine_.background().random);
        const auto lock = engine_.lock();
        if (flow_) { // not cancelled meanwhile
            act(flow_->paused(answer));
        }
    });
}

void AsyncAcquire::finish()
{
    Acquired acquired;
    const auto ec = told(flow_->conclude(acquired));
    flow_.reset();
    std::shared_ptr<NamedLock> rest;
    if (acquired.hold != hold_) { // nothing, or a hold that was passed on to this call
        rest = named_->core->recycle(std::move(hold_));
    }
    // outside the mutex, the handler runs and the rest is destroyed
    engine_.post([this, self = shared_from_this(), rest = std::move(rest), ec,
                  guard = std::make_shared<LockGuard>(LockGuard(std::move(acquired)))]() mutable {
        completion_(ec, std::move(*guard));
    });
}

} // namespace redislock::detail
