#include "simulation/operation.hpp"

#include "client/policy.hpp"
#include "core/name_call.hpp"

namespace redislock::simulation {

using detail::AcquireMachine;

// --- Acquiring
// ---------------------------------------------------------------------------------------------------------

Acquire::Acquire(SimClient& client, NamedLock& named, std::uint64_t owner, detail::AcquireOrder order)
    : Acquire(client, named, owner, std::make_shared<const detail::AcquireOrder>(std::move(order)))
{
}

Acquire::Acquire(SimClient& client, NamedLock& named, std::uint64_t owner,
                 std::shared_ptr<const detail::AcquireOrder> order)
    : Operation(client, client.core(), named, *order, owner), order_(std::move(order))
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

detail::WaitStep Acquire::askPolicy(std::uint32_t refusals)
{
    return flow_.paused(detail::pauseOf(*order_->retry, refusals, client_.core().random));
}

void Acquire::conclude()
{
    detail::ThreadAcquire::Rest rest;
    error_ = flow_.conclude(acquired_, rest);
    error_ = isCalledOff() ? std::error_code() : error_;
    if (acquired_.hold != nullptr) {
        client_.expectGranted(acquired_);
    }
}

// --- Releasing
// ---------------------------------------------------------------------------------------------------------

AwaitedRelease::AwaitedRelease(SimClient& client, const detail::Acquired& acquired)
    : AwaitedRelease(client, acquired, acquired.hold->validUntil())
{
}

AwaitedRelease::AwaitedRelease(SimClient& client, const detail::Acquired& acquired, TimePoint validUntil)
    : Operation(client, client.core(), *acquired.hold, acquired.level), hold_(acquired.hold), validUntil_(validUntil)
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

// --- Asking
// ------------------------------------------------------------------------------------------------------------

Question::Question(SimClient& client, NamedLock& named, detail::ScriptUse detail::KindTraits::*use,
                   std::vector<std::string> arguments)
    : Question(client, detail::nameCall(named, named.traits().*use, std::move(arguments)))
{
}

Question::Question(SimClient& client, std::shared_ptr<detail::Call> call)
    : Question(client,
               std::make_unique<Asked>(Asked{std::move(call), detail::QueryMachine(client.config().unreachableAfter)}))
{
}

Question::Question(SimClient& client, std::unique_ptr<Asked> asked)
    : Operation(client, client, client.core().random, asked->call, asked->machine), asked_(std::move(asked))
{
}

bool Question::freed() const
{
    std::error_code ec;
    return !error() && detail::wasFreed(reply(), asked_->machine, ec) && !ec;
}

std::optional<Situation> Question::situation() const
{
    return isAsking() ? Situation::queryAsking : Situation::queryBackingOff;
}

} // namespace redislock::simulation
