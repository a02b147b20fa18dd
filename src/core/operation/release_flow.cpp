#include "core/operation/release_flow.hpp"

#include "link/request/calls.hpp"
#include "wire/assert.hpp"

#include <utility>

namespace redislock::detail {

ReleaseFlow::ReleaseFlow(Core& core, Hold& hold, std::uint32_t level, Asker asker, BackgroundRun* run)
    : Operation(core, run, run == nullptr ? Lane::commands : hold.lane),
      hold_(hold),
      validUntil_(hold.validUntil()),
      asker_(asker)
{
    if (asker == Asker::caller && core.inheritance.letInherit(hold, level)) {
        result_ = Unlocked::passedOn;
        isOver_ = true;
        return;
    }
    const TimePoint now = core.port.now();
    const TimePoint patience =
        asker == Asker::caller ? saturatingAdd(now, core.config.unreachableAfter) : TimePoint::max();
    hold.levels.remove(level);
    if (hold.levels.count() > 0 && now < hold.levels.validUntil()) {
        result_ = Unlocked::stillHeld;
        core.releasing.levelEnded(hold);
        // in the background as long as the hold is held, and renewals prolong that
        beginNested({.validUntil = asker == Asker::caller ? validUntil_ : TimePoint::max(),
                     .giveUpAfter = patience,
                     .level = Level::nested,
                     .asker = asker});
        return;
    }
    core.loseRest(hold);
    core.releasing.giveUp(hold);
    beginOutermost(ReleaseMachine({.validUntil = validUntil_, .giveUpAfter = patience, .asker = asker}), true);
}

ReleaseFlow::ReleaseFlow(Core& core, Hold& hold, Count /*count*/, BackgroundRun* run)
    : Operation(core, run, hold.lane), hold_(hold), validUntil_(TimePoint::max()), asker_(Asker::background)
{
    beginNested({.validUntil = TimePoint::max(),
                 .giveUpAfter = TimePoint::max(),
                 .level = Level::nested,
                 .asker = Asker::background});
}

ReleaseFlow::ReleaseFlow(Core& core, Hold& hold, const Rest& rest, BackgroundRun* run)
    : Operation(core, run, hold.lane), hold_(hold), validUntil_(TimePoint::max()), asker_(Asker::background)
{
    beginOutermost(rest.machine, rest.letsFollow);
}

/// Sets the count in Redis to the levels that are left.
void ReleaseFlow::beginNested(const ReleaseMachine::Settings& settings)
{
    nested_ = true;
    call_ = core_.takeCall(hold_);
    ++hold_.countsUnderWay;
    machine_ = ReleaseMachine(settings);
}

/// Frees the lock, which does not count as held any more.
void ReleaseFlow::beginOutermost(const ReleaseMachine& machine, bool letsFollow)
{
    call_ = core_.releasing.takeCall(hold_);
    if (call_ != nullptr) {
        call_->prepare(HoldCall::Verb::unlock, std::chrono::milliseconds(1), 0);
        machine_ = machine;
        behind_ = letsFollow ? core_.waking.letFollow(hold_, lane_) : Waking::Next{};
    }
}

WaitStep ReleaseFlow::look()
{
    if (isOver_) {
        return {};
    }
    if (call_ == nullptr) {
        return finish(Unlocked::unconfirmed);
    }
    const TimePoint now = core_.port.now();
    switch (machine_.state()) {
    case ReleaseMachine::State::idle:
        return step(Start{now});
    case ReleaseMachine::State::asking:
        return awaitAnswer(until_);
    default:
        if (now < until_) {
            return sleep(until_);
        }
        return isVoid() ? finish(Unlocked::unconfirmed) : step(TimerFired{now});
    }
}

/// Whether another try would not help: Redis was sent another count since, or the hold is over.
bool ReleaseFlow::isVoid() const noexcept
{
    return nested_ && asker_ == Asker::background &&
           (hold_.levels.count() != call_->count() || core_.port.now() >= hold_.validUntil());
}

WaitStep ReleaseFlow::answered(const Outcome& outcome)
{
    const auto event = eventOf<ReleaseMachine::Event, UnlockAnswer>(*call_, outcome, core_.port.now(), call_->level());
    const auto* failed = std::get_if<Failed>(&event);
    hold_.note(outcome);
    hold_.unanswered = hold_.unanswered || (nested_ && failed != nullptr);
    if (failed != nullptr && failed->fault.error != Errc::wrongType && isVoid()) {
        return finish(Unlocked::unconfirmed);
    }
    return step(event);
}

WaitStep ReleaseFlow::cancel()
{
    if (isOver_) {
        return {};
    }
    if (call_ != nullptr) {
        (void)takesBack();
    }
    return finish(Unlocked::unconfirmed);
}

WaitStep ReleaseFlow::step(const ReleaseMachine::Event& event)
{
    const auto action = machine_.resume(event, core_.random);
    if (const auto* done = std::get_if<Done<Unlocked>>(&action)) {
        return finish(done->result);
    }
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        until_ = pause->until;
        return sleep(until_);
    }
    if (nested_ && hold_.phase == Hold::Phase::held) {
        const auto lease = hold_.levels.leaseToLeave(core_.port.now(), core_.config.watchdogTimeout);
        call_->prepare(HoldCall::Verb::unlock, lease, hold_.levels.count());
    }
    auto next = std::exchange(behind_, {});
    const bool follows = next.call != nullptr;
    call_->quiet = next.quiet;
    until_ = std::get<Send>(action).until;
    if (!submit(call_, std::move(next.call)) && run_ != nullptr) {
        return finish(Unlocked::unconfirmed); // the client has ended: the lease ends the hold
    }
    auto await = awaitAnswer(until_);
    await.follows = follows;
    return await;
}

WaitStep ReleaseFlow::finish(Unlocked how)
{
    isOver_ = true;
    result_ = how;
    nested_ ? endNested() : endOutermost();
    return {};
}

void ReleaseFlow::endNested()
{
    core_.putBack(std::move(call_));
    REDISLOCK_ASSERT(hold_.countsUnderWay > 0);
    --hold_.countsUnderWay;
    hold_.unanswered = hold_.unanswered || result_ != Unlocked::stillHeld;
    if (hold_.phase != Hold::Phase::held) {
        return;
    }
    if (result_ == Unlocked::alreadyLost) {
        core_.lose(hold_, LossReason::gone);
    } else if (result_ == Unlocked::unconfirmed && asker_ == Asker::caller) {
        core_.releasing.correctCount(hold_, true);
    }
}

void ReleaseFlow::endOutermost()
{
    if (call_ != nullptr) {
        core_.waking.noteAudience(*call_);
        core_.putBack(std::move(call_));
    }
    const bool goesOn = result_ == Unlocked::unconfirmed && asker_ == Asker::caller && core_.port.now() < validUntil_ &&
                        !core_.isClosing();
    goesOn ? core_.releasing.goOn(hold_, machine_) : core_.releasing.over(hold_, result_);
}

} // namespace redislock::detail
