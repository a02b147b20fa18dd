#include "simulation/async_acquire.hpp"

#include "client/policy.hpp"

#include <utility>

namespace redislock::simulation {

using detail::WaitStep;

AsyncAcquire::AsyncAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order, End end)
    : client_(client), named_(named), order_(order), end_(std::move(end))
{
}

void AsyncAcquire::begin()
{
    self_ = shared_from_this();
    hold_ = client_.core().takeHold(named_, 0, detail::Lane::background);
    flow_.emplace(client_.core(), named_, hold_, order_, this);
    act(flow_->look());
    client_.observe();
}

void AsyncAcquire::cancel()
{
    if (flow_) {
        act(flow_->cancel());
        client_.observe();
    }
}

void AsyncAcquire::look() noexcept
{
    if (!std::exchange(looking_, true)) {
        client_.post([self = shared_from_this()] {
            self->looking_ = false;
            if (self->flow_) {
                self->act(self->flow_->look());
                self->client_.observe();
            }
        });
    }
}

void AsyncAcquire::answered(detail::Call& call)
{
    if (!flow_ || call.mode == detail::Call::Mode::abandoned) {
        return;
    }
    const auto self = shared_from_this();
    if (!awaits_) { // the answer to a request that another thread queued may come before look()
        act(flow_->look());
    }
    if (flow_ && awaits_) {
        act(flow_->answered(call.outcome));
    }
}

void AsyncAcquire::act(const WaitStep& next)
{
    awaits_ = next.kind == WaitStep::Kind::awaitAnswer;
    until_ = next.until;
    if (next.kind == WaitStep::Kind::done) {
        return finish();
    }
    if (next.kind == WaitStep::Kind::askPolicy) {
        return askPolicy(next.refusals);
    }
    client_.host().at(until_, [this, self = shared_from_this(), number = ++timers_] {
        if (number == timers_ && flow_) {
            timeOver();
            client_.observe();
        }
    });
}

/// Asks the policy soon, as `detail::AsyncAcquire` does.
void AsyncAcquire::askPolicy(std::uint32_t refusals)
{
    client_.post([this, self = shared_from_this(), refusals] {
        if (flow_) {
            act(flow_->paused(detail::pauseOf(*order_.retry, refusals, client_.core().random)));
            client_.observe();
        }
    });
}

void AsyncAcquire::drop()
{
    flow_.reset();
    hold_ = nullptr;
    end_ = nullptr;
    self_.reset();
}

void AsyncAcquire::timeOver()
{
    if (!awaits_) {
        return act(flow_->look());
    }
    const bool sent = flow_->withdraw();
    act(flow_->answered(
        {.fault = {sent ? detail::Failure::lostReply : detail::Failure::notConnected, Errc::unreachable}}));
}

void AsyncAcquire::finish()
{
    detail::Acquired acquired;
    const auto error = flow_->conclude(acquired);
    flow_.reset();
    if (acquired.hold != hold_) {
        (void)client_.core().recycle(hold_);
    }
    hold_ = nullptr;
    client_.post([self = std::move(self_), error, acquired] {
        if (acquired.hold != nullptr && acquired.hold->phase == Hold::Phase::held) {
            self->client_.expectGranted(acquired);
        }
        std::exchange(self->end_, nullptr)(error, acquired);
    });
}

std::optional<Situation> AsyncAcquire::situation() const
{
    if (!flow_) {
        return std::nullopt;
    }
    if (awaits_) {
        return Situation::acquireAsking;
    }
    if (flow_->state() == detail::AcquireMachine::State::waiting) {
        return Situation::acquireWaiting;
    }
    return flow_->state() == detail::AcquireMachine::State::backingOff ? std::optional(Situation::acquireBackingOff)
                                                                       : std::nullopt;
}

StartedAcquire::StartedAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order)
    : Awaiting(client.host(), client.commands()),
      client_(client),
      attempt_(std::make_shared<AsyncAcquire>(client, named, order,
                                              [this](std::error_code error, const detail::Acquired& acquired) {
                                                  error_ = error;
                                                  acquired_ = acquired;
                                                  ended_ = true;
                                                  wake();
                                              }))
{
}

void StartedAcquire::advance()
{
    if (!std::exchange(begun_, true)) {
        client_.post([attempt = attempt_] { attempt->begin(); });
    }
    if (ended_) {
        finishOperation();
    }
}

} // namespace redislock::simulation
