#include "runtime/async_acquire.hpp"

#include "redislock/lock_guard.hpp"
#include "runtime/policy.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace redislock::detail {

Engine::AsyncAcquire::AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                                   Completion<LockGuard> completion)
    : engine_(engine),
      named_(std::move(named)),
      order_(std::move(order)),
      completion_(std::move(completion)),
      timer_(engine.background_->io)
{
}

Engine::AsyncAcquire::~AsyncAcquire() = default;

void Engine::AsyncAcquire::cancelWhenToldTo()
{
    completion_.onCancellation([weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->engine_.post([self] { self->cancel(); });
        }
    });
}

/// Joins the queue. Background thread.
void Engine::AsyncAcquire::begin()
{
    const Lock lock(engine_.mutex_);
    hold_ = engine_.takeHold(*named_);
    hold_->owner = 0;
    hold_->lane = Lane::background;
    flow_.emplace(engine_, *named_, hold_, order_, this);
    engine_.acquiring_.insert(shared_from_this());
    act(cancelled_ ? flow_->cancel() : flow_->look());
}

/// Ends the operation as soon as it can be ended. Background thread.
void Engine::AsyncAcquire::cancel()
{
    const Lock lock(engine_.mutex_);
    cancelled_ = true;
    if (flow_) {
        act(flow_->cancel());
    }
}

void Engine::AsyncAcquire::look() noexcept
{
    if (!std::exchange(looking_, true)) {
        engine_.post([self = shared_from_this()] {
            const Lock lock(self->engine_.mutex_);
            self->looking_ = false;
            if (self->flow_) {
                self->act(self->flow_->look());
            }
        });
    }
}

/// Does what comes next.
void Engine::AsyncAcquire::act(const AcquireFlow::Next& next)
{
    using Kind = AcquireFlow::Next::Kind;
    awaits_ = next.kind == Kind::awaitAnswer;
    until_ = next.until;
    switch (next.kind) {
    case Kind::awaitAnswer:
    case Kind::sleep:
        return wakeAt(next.until);
    case Kind::askPolicy:
        return engine_.post([self = shared_from_this(), refusals = next.refusals] { self->askPolicy(refusals); });
    case Kind::done:
        return finish();
    }
}

/// Asks the policy. Background thread, without the mutex.
void Engine::AsyncAcquire::askPolicy(std::uint32_t refusals)
{
    const auto answer = pauseOf(*order_.retry, refusals, engine_.background_->random);
    const Lock lock(engine_.mutex_);
    if (flow_) { // not cancelled meanwhile
        act(flow_->paused(answer));
    }
}

void Engine::AsyncAcquire::answered(HoldCall& call)
{
    const auto self = shared_from_this();
    const Lock lock(engine_.mutex_);
    if (!flow_ || call.mode == Call::Mode::abandoned) {
        return;
    }
    if (flow_->waiter.submitted) { // the answer to a request that somebody else queued may come before look()
        act(flow_->look());
    }
    if (flow_ && awaits_) {
        timer_.cancel();
        act(flow_->answered(call.outcome));
    }
}

void Engine::AsyncAcquire::timeOver()
{
    if (!awaits_) {
        return act(flow_->look());
    }
    if (BootClock::now() < until_) {
        return wakeAt(until_); // the timer of the stage before went off together with its end
    }
    act(flow_->answered({.replied = false, .fault = engine_.background_->renewals.overdue(flow_->withdraw())}));
}

void Engine::AsyncAcquire::wakeAt(TimePoint when)
{
    if (when == TimePoint::max()) {
        return;
    }
    timer_.expires_after(when - BootClock::now());
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
        if (ec) {
            return;
        }
        const Lock lock(self->engine_.mutex_);
        if (self->flow_) {
            self->timeOver();
        }
    });
}

void Engine::AsyncAcquire::finish()
{
    const auto self = shared_from_this();
    timer_.cancel();
    Acquired acquired;
    std::error_code error = engine_.conclude(*flow_, acquired);
    flow_.reset();
    boost::system::error_code ec = error;
    if (error && cancelled_) {
        ec = boost::asio::error::operation_aborted;
    }
    std::shared_ptr<NamedLock> rest;
    if (acquired.hold == nullptr) {
        rest = engine_.recycle(std::move(hold_));
    }
    // told, and let go of, outside the mutex
    engine_.post([self, rest = std::move(rest), ec,
                  guard = std::make_shared<LockGuard>(LockGuard(std::move(acquired)))]() mutable {
        self->completion_(ec, std::move(*guard));
    });
    engine_.acquiring_.erase(self);
}

} // namespace redislock::detail
