#include "simulation/thread_call.hpp"

#include <utility>

namespace redislock::simulation {

using detail::AcquireMachine;

// --- Acquiring -----------------------------------------------------------------------------------------------------

Acquire::Acquire(SimClient& client, NamedLock& named, std::uint64_t owner, detail::AcquireOrder order)
    : Acquire(client, named, owner, std::make_shared<const detail::AcquireOrder>(std::move(order)))
{
}

Acquire::Acquire(SimClient& client, NamedLock& named, std::uint64_t owner,
                 std::shared_ptr<const detail::AcquireOrder> order)
    : FlowCall(client, client.core(), named, *order, owner), order_(std::move(order))
{
}

std::optional<Situation> Acquire::situation() const
{
    if (isAsking()) {
        return isNested() ? Situation::nestedAsking : Situation::acquireAsking;
    }
    if (isNested()) {
        return Situation::nestedBackingOff;
    }
    if (flow_.state() == AcquireMachine::State::waiting) {
        return Situation::acquireWaiting;
    }
    return flow_.state() == AcquireMachine::State::backingOff ? std::optional(Situation::acquireBackingOff)
                                                              : std::nullopt;
}

void Acquire::conclude()
{
    detail::ThreadAcquire::Rest rest;
    error_ = flow_.conclude(acquired_, rest);
    error_ = isCalledOff() ? std::error_code() : error_;
    if (acquired_.hold != nullptr) {
        client_.expectGranted(acquired_, order_->durability);
    }
}

std::shared_ptr<SimAcquire> acquireInBackground(SimClient& client, NamedLock& named, const detail::AcquireOrder& order,
                                                std::function<void(std::error_code, const detail::Acquired&)> end)
{
    return std::make_shared<SimAcquire>(
        client,
        [&named, order](std::optional<detail::AcquireFlow>& flow, detail::BackgroundRun* run) {
            flow.emplace(run->core(), named, run->core().takeHold(named, 0, detail::Lane::background), order, run);
        },
        [&client, asked = order.durability, end = std::move(end)](std::optional<detail::AcquireFlow>& flow) {
            detail::Acquired acquired;
            const auto error = flow->conclude(acquired);
            HoldRef hold = flow->hold;
            flow.reset();
            if (acquired.hold != hold) {
                (void)client.core().recycle(hold);
            }
            return [&client, asked, end, error, acquired] {
                if (acquired.hold != nullptr && acquired.hold->phase == Hold::Phase::held) {
                    client.expectGranted(acquired, asked);
                }
                end(error, acquired);
            };
        });
}

std::optional<Situation> situationOf(const SimAcquire& acquire)
{
    const auto& flow = acquire.flow();
    if (!flow) {
        return std::nullopt;
    }
    if (flow->call().pending) {
        return Situation::acquireAsking;
    }
    if (flow->state() == AcquireMachine::State::waiting) {
        return Situation::acquireWaiting;
    }
    return flow->state() == AcquireMachine::State::backingOff ? std::optional(Situation::acquireBackingOff)
                                                              : std::nullopt;
}

StartedAcquire::StartedAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order)
    : client_(client),
      attempt_(
          acquireInBackground(client, named, order, [this](std::error_code error, const detail::Acquired& acquired) {
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
        client_.post([attempt = attempt_] { attempt->start(); });
    }
    if (ended_) {
        finish();
    }
}

// --- Releasing -----------------------------------------------------------------------------------------------------

AwaitedRelease::AwaitedRelease(SimClient& client, const detail::Acquired& acquired)
    : AwaitedRelease(client, acquired, acquired.hold->validUntil())
{
}

AwaitedRelease::AwaitedRelease(SimClient& client, const detail::Acquired& acquired, TimePoint validUntil)
    : FlowCall(client, client.core(), *acquired.hold, acquired.level, detail::Asker::caller, nullptr),
      hold_(acquired.hold),
      validUntil_(validUntil)
{
}

std::optional<Situation> AwaitedRelease::situation() const
{
    return isAsking() ? Situation::releaseAsking : Situation::releaseBackingOff;
}

void AwaitedRelease::conclude()
{
    const auto holder = client_.holderOf(*hold_);
    if (how() == Unlocked::alreadyLost && hold_->phase == Hold::Phase::ended && now() < validUntil_) {
        client_.checker().toldGone(holder, "release");
    }
    if (how() == Unlocked::released) {
        client_.checker().expectGone(hold_->lock->name, holder, client_.trueTime());
    }
    (void)client_.core().recycle(hold_);
}

} // namespace redislock::simulation
