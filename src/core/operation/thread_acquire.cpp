#include "core/operation/thread_acquire.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

namespace {

AcquireMachine machineFor(const Core& core, const Hold& hold, const AcquireOrder& order)
{
    auto settings = core.settingsFor(order.wait, leaseTime(core.config, order.lease));
    settings.holdDeadline = hold.validUntil();
    return AcquireMachine(settings);
}

} // namespace

NestedFlow::NestedFlow(Core& core, Hold& hold, const AcquireOrder& order)
    : Operation(core, nullptr),
      order_(order),
      hold_(&hold),
      call_(core.takeCall(hold)),
      level_(hold.levels.add(order.lease, order.endedBy)),
      machine_(machineFor(core, hold, order))
{
    ++hold.countsUnderWay;
}

WaitStep NestedFlow::look()
{
    const TimePoint now = core_.port.now();
    if (!std::exchange(begun_, true)) {
        return step(Start{now});
    }
    if (confirmation_.state != Confirmation::State::none) {
        return granted();
    }
    return now < until_ ? sleep(until_) : step(TimerFired{now});
}

WaitStep NestedFlow::answered(const Outcome& outcome)
{
    return step(noting(core_.port, lockEventOf(*call_, outcome, core_.port.now()), call_->reply));
}

WaitStep NestedFlow::cancel()
{
    const TimePoint now = core_.port.now();
    if (confirmation_.state != Confirmation::State::none) { // an answer that is there counts
        confirmation_.until = now;
        return granted();
    }
    const bool unsent = takesBack();
    return unsent ? step(Failed{now, {Failure::fatal, Errc::shutdown}}) : step(Cancelled{now, Errc::shutdown});
}

WaitStep NestedFlow::step(const AcquireMachine::Event& event)
{
    const auto action = machine_.resume(event, core_.random);
    if (const auto* end = std::get_if<Done<AcquireResult>>(&action)) {
        result_ = end->result;
        return result_.kind == AcquireResult::Kind::granted ? granted() : WaitStep{};
    }
    if (const auto* send = std::get_if<Send>(&action)) {
        // Redis keeps the longer of two leases, unless the key's time to live was taken away
        const auto outer = hold_->levels.leaseToLeave(core_.port.now(), core_.config.watchdogTimeout);
        call_->prepare(HoldCall::Verb::lock, std::max(leaseTime(core_.config, order_.lease), outer),
                       hold_->levels.count());
        (void)submit(call_);
        return awaitAnswer(send->until);
    }
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        until_ = pause->until;
        return sleep(until_);
    }
    return step(Cancelled{core_.port.now(), Errc::badReply}); // a nested acquire is never refused for another holder
}

/// Redis has the new level. If that asks for more than those before it, the replicas are asked about the hold, once.
WaitStep NestedFlow::granted()
{
    using State = Confirmation::State;
    const TimePoint now = core_.port.now();
    if (confirmation_.state == State::none) {
        if (hold_->durability().covers(order_.durability)) {
            return {};
        }
        confirmation_ = {.until = std::min(saturatingAdd(now, order_.durability.within), result_.validUntil),
                         .wanted = order_.durability,
                         .lease = leaseTime(core_.config, order_.lease), // a master of before may have granted it
                         .hold = hold_,
                         .call = call_.get()};
        core_.confirming.ask(confirmation_);
    }
    if (confirmation_.state == State::asked && now < confirmation_.until) {
        return sleep(confirmation_.until);
    }
    if (confirmation_.state == State::confirmed) {
        hold_->setDurability(order_.durability);
    } else {
        result_.kind = AcquireResult::Kind::failed;
        result_.error = confirmation_.state == State::refused ? confirmation_.why : Reason(Errc::notDurable);
        result_.mayBeHeld = true;
    }
    core_.confirming.withdraw(confirmation_);
    return {};
}

std::error_code NestedFlow::conclude(Acquired& acquired)
{
    Hold& hold = *hold_;
    --hold.countsUnderWay;
    hold.unanswered = hold.unanswered || machine_.mayBeHeld();
    core_.putBack(std::move(call_));
    if (hold.phase == Hold::Phase::held &&
        (result_.kind == AcquireResult::Kind::lost || core_.port.now() >= hold.validUntil())) {
        hold.levels.remove(level_);
        core_.lose(hold, result_.kind == AcquireResult::Kind::lost ? LossReason::gone : core_.reasonOfEnd(hold));
    }
    if (hold.phase != Hold::Phase::held) {
        if (order_.endedBy == EndedBy::thread && hold.levels.remove(level_)) {
            hold.lock->local.countLateUnlock(hold.owner); // the loss counted this level too, as one to unlock
        }
        return core_.isClosing() ? Errc::shutdown : Errc::lost;
    }
    if (result_.kind == AcquireResult::Kind::granted) {
        core_.grant(hold, level_, result_);
        acquired = {hold_, level_, result_.token};
        return {};
    }
    hold.levels.remove(level_);
    core_.releasing.correctCount(hold, result_.mayBeHeld);
    return result_.kind == AcquireResult::Kind::failed ? std::error_code(result_.error) : std::error_code();
}

ThreadAcquire::ThreadAcquire(Core& core, NamedLock& named, const AcquireOrder& order, std::uint64_t caller)
    : Operation(core, nullptr)
{
    if (Hold* own = core.validHold(named, caller)) {
        if (named.traits().isReentrant) {
            nested_.emplace(core, *own, order);
        }
        inTheWay_ = Cause::heldAlready;
        return;
    }
    const Hold* other = core.holdOfOtherKind(named, caller);
    if (other != nullptr && named.kind != LockKind::readLock) {
        inTheWay_ = named.kind == LockKind::writeLock ? Cause::noUpgrade : Cause::heldByOtherKind;
        return; // would wait for its own hold to end; with several such readers, each for the others
    }
    outermost_.emplace(core, named, core.takeHold(named, caller, Lane::commands), order, nullptr);
    outermost_->call().writer = other != nullptr ? other->id : HolderId{};
}

std::error_code ThreadAcquire::conclude(Acquired& acquired, Rest& rest)
{
    if (nested_) {
        return nested_->conclude(acquired);
    }
    if (!outermost_) {
        return inTheWay_;
    }
    const auto error = outermost_->conclude(acquired);
    auto hold = outermost_->hold;
    outermost_.reset();
    if (acquired.hold != hold) { // nothing, or a hold that this thread inherited
        rest.named = core_.recycle(hold);
        rest.hold = std::move(hold);
    }
    return error;
}

} // namespace redislock::detail
