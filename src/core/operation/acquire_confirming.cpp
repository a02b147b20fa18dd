// The part of an acquire that follows the grant, where replicas must have it too.
#include "core/operation/acquire_flow.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

namespace {

/// Between two grants of one acquire, while there are too few replicas.
constexpr std::chrono::milliseconds longestPause{1000};

} // namespace

/// Redis has granted the lock: tells the caller, or asks the replicas first.
WaitStep AcquireFlow::granted(const AcquireResult& result)
{
    if (order.durability.level == Durability::Level::none || core_.isClosing()) {
        return finish(result);
    }
    result_ = result;
    stage_ = Stage::confirming;
    waiter.parked = false; // it takes no other grant
    const TimePoint end = saturatingAdd(core_.port.now(), order.durability.within);
    confirmation_ = {.until = std::min(end, result.validUntil),
                     .wanted = order.durability,
                     .lease = waiter.lease, // the grant may have been made by a master of before
                     .hold = hold,
                     .call = waiter.call.get(),
                     .run = run_};
    core_.confirming.ask(confirmation_);
    return judgeConfirmation();
}

WaitStep AcquireFlow::judgeConfirmation()
{
    using State = Confirmation::State;
    const TimePoint now = core_.port.now();
    if (confirmation_.state == State::confirmed) {
        if (std::exchange(result_.isGiven, false)) { // the renewal asked for the whole lease
            result_.sentAt = confirmation_.renewedAt;
            result_.validUntil = deadlineOf(result_.sentAt, waiter.lease);
        }
        return now < result_.validUntil ? finish(result_) : notDurable(Errc::notDurable);
    }
    if (confirmation_.state == State::refused) {
        return notDurable(confirmation_.why);
    }
    if (waiter.ended) {
        return giveUpGrant(*waiter.ended);
    }
    if (now >= confirmation_.until) {
        return notDurable(Errc::notDurable);
    }
    return sleep(confirmation_.until);
}

/// Gives the grant back; within a wait, tries again after a pause, but not for ever: while the replicas are away, each
/// try takes the lock from others for nothing.
WaitStep AcquireFlow::notDurable(Reason why)
{
    const TimePoint now = core_.port.now();
    if (notDurableSince_ == TimePoint{}) {
        notDurableSince_ = now;
    }
    const TimePoint again = now + std::min(order.durability.within, longestPause);
    const bool isOver = order.wait.isOneAttempt() || again >= deadline_ ||
                        now >= saturatingAdd(notDurableSince_, core_.config.unreachableAfter);
    if (why != Errc::notDurable || waiter.ended || isOver) {
        return giveUpGrant(waiter.ended ? Reason(*waiter.ended) : why);
    }
    beginAgain();
    until_ = again;
    return judgePause();
}

/// Gives the grant back, and takes another hold for the next try: a late copy of a request of this one must not end
/// that.
void AcquireFlow::beginAgain()
{
    HoldRef next = core_.takeHold(named, hold->owner, hold->lane);
    auto call = core_.takeCall(*next);
    call->isHurried = waiter.call->isHurried;
    call->place = waiter.call->place;
    call->writer = waiter.call->writer;
    next->isMember = hold->isMember;
    next->isTentative = hold->isTentative;
    level = next->levels.add(order.lease, order.endedBy);
    core_.confirming.withdraw(confirmation_);
    confirmation_ = {};
    queue_.leave(waiter);
    core_.waking.unsubscribe(named, waiter);
    core_.releasing.giveBack(*hold, saturatingAdd(core_.port.now(), waiter.lease));
    hold = std::move(next);
    waiter.hold = hold.get();
    core_.putBack(std::exchange(waiter.call, std::move(call)));
    core_.ends(waiter);
    waiter.notified = false;
    waiter.grant.reset();
    machine_.reset();
    stage_ = Stage::pausing;
    named.askers.join(waiter);
    letNext();
}

WaitStep AcquireFlow::judgePause()
{
    if (waiter.ended) {
        return giveUpGrant(*waiter.ended);
    }
    if (core_.port.now() < until_) {
        return sleep(until_);
    }
    named.askers.leave(waiter);
    stage_ = Stage::awaitingTurn;
    queue_.join(waiter);
    return judgeTurn();
}

/// Ends the acquire. What was granted is given back when it is concluded.
WaitStep AcquireFlow::giveUpGrant(Reason why) noexcept
{
    core_.confirming.withdraw(confirmation_);
    const bool isGranted = stage_ == Stage::confirming;
    if (stage_ == Stage::pausing) {
        named.askers.leave(waiter);
    }
    return finish({.error = why, .mayBeHeld = isGranted, .attempts = result_.attempts});
}

} // namespace redislock::detail
