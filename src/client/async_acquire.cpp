#include "client/async_acquire.hpp"

#include "client/async_query.hpp"
#include "client/policy.hpp"

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
    hold_ = patiently([&] { return core.takeHold(*named_, 0, Lane::background); });
    AsyncWait::begin(core, *named_, hold_, order_);
}

/// Asks the policy soon, without the mutex.
void AsyncAcquire::askPolicy(std::uint32_t refusals)
{
    engine_.post([this, self = shared_from_this(), refusals] {
        const auto answer = pauseOf(*order_.retry, refusals, engine_.background().random);
        const auto lock = engine_.lock();
        step([&answer](AcquireFlow& flow) { return flow.paused(answer); }); // unless it was cancelled meanwhile
    });
}

void AsyncAcquire::finish()
{
    Acquired acquired;
    ec_ = codeForHandler(flow_->conclude(acquired));
    flow_.reset();
    if (acquired.hold != hold_) { // nothing, or a hold that this call inherited
        rest_ = named_->core->recycle(hold_);
    }
    guard_ = LockGuard(std::move(acquired));
    tell();
}

void AsyncAcquire::failed()
{
    ec_ = noMemory();
    tell();
}

/// Outside the mutex, the handler runs and the rest is destroyed.
void AsyncAcquire::tell()
{
    engine_.post([this, self = shared_from_this()] { completion_(ec_, std::move(guard_)); });
}

} // namespace redislock::detail
