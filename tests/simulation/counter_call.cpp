#include "simulation/counter_call.hpp"

#include "simulation/safety_checker.hpp"

namespace redislock::simulation {

using detail::AcquireMachine;

CounterWait::CounterWait(SimClient& client, std::shared_ptr<NamedCounter> counter, detail::CounterOrder order)
    : FlowCall(client, *counter, std::move(order), nullptr),
      counter_(std::move(counter)),
      isLatch_(counter_->kind == CounterKind::countDownLatch),
      began_(now())
{
}

std::optional<Situation> CounterWait::situation() const
{
    if (isAsking()) {
        return isLatch_ ? Situation::queryAsking : Situation::acquireAsking;
    }
    if (flow_.state() == AcquireMachine::State::waiting) {
        return Situation::acquireWaiting;
    }
    return flow_.state() == AcquireMachine::State::backingOff ? std::optional(Situation::acquireBackingOff)
                                                              : std::nullopt;
}

void CounterWait::cancel()
{
    flow_.waiter.ended = Errc::shutdown;
    client_.fail(flow_.waiter.call, Errc::shutdown);
    flow_.waiter.look();
}

bool CounterWait::waitsFor(const std::string& name) const noexcept
{
    return flow_.waiter.queued && !flow_.waiter.ended && counter_->name == name;
}

void CounterWait::conclude()
{
    const auto ending = flow_.takeEnding();
    counter_->conclude(ending);
    if (ending.isOpen() && now() >= ending.rememberedUntil) {
        client_.giveUp();
    }
    end_ = ending.outcome;
    if (ending.error() == Errc::badReply) {
        throw Violation("replies", "a script gave an answer that it cannot give");
    }
}

} // namespace redislock::simulation
