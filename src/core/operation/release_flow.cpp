#include "core/operation/release_flow.hpp"

#include "link/request/calls.hpp"
#include "wire/assert.hpp"

#include <utility>

namespace redislock::detail {

ReleaseFlow::ReleaseFlow(Core& core, Hold& hold, std::uint32_t level)
    : core_(core), hold_(hold), validUntil_(hold.validUntil())
{
    if (core.inheritance.letInherit(hold, level)) {
        result_ = Unlocked::passedOn;
        return;
    }
    hold.levels.remove(level);
    nested_ = hold.levels.count() > 0 && core.port.now() < hold.levels.validUntil();
    nested_ ? beginNested() : beginOutermost();
}

ReleaseMachine::Settings ReleaseFlow::settings() const noexcept
{
    return {.validUntil = validUntil_,
            .giveUpAfter = saturatingAdd(core_.port.now(), core_.config.unreachableAfter),
            .level = nested_ ? Level::nested : Level::outermost};
}

/// Sets the count in Redis to the levels that are left.
void ReleaseFlow::beginNested()
{
    core_.releasing.levelEnded(hold_);
    ++hold_.countsUnderWay;
    call_ = core_.takeCall(hold_);
    const auto lease = hold_.levels.leaseToLeave(core_.port.now(), core_.config.watchdogTimeout);
    call_->prepare(HoldCall::Verb::unlock, lease, hold_.levels.count(), Call::Mode::awaited);
    machine_ = ReleaseMachine(settings());
}

/// Frees the lock. From here on the hold does not count as held.
void ReleaseFlow::beginOutermost()
{
    core_.loseRest(hold_);
    core_.releasing.giveUp(hold_);
    call_ = core_.releasing.takeCall(hold_);
    if (call_ != nullptr) {
        call_->prepare(HoldCall::Verb::unlock, std::chrono::milliseconds(1), 0, Call::Mode::awaited);
        machine_ = ReleaseMachine(settings());
        behind_ = core_.waking.letFollow(hold_, Lane::commands);
    }
}

WaitStep ReleaseFlow::look()
{
    const TimePoint now = core_.port.now();
    if (result_ == Unlocked::passedOn) {
        return {};
    }
    if (call_ == nullptr) {
        core_.releasing.over(hold_, Unlocked::unconfirmed);
        return {};
    }
    if (!std::exchange(begun_, true)) {
        return step(Start{now});
    }
    return now < until_ ? WaitStep{.kind = WaitStep::Kind::sleep, .until = until_} : step(TimerFired{now});
}

WaitStep ReleaseFlow::answered(const Outcome& outcome)
{
    hold_.note(outcome);
    return step(eventOf<ReleaseMachine::Event, UnlockAnswer>(*call_, outcome, core_.port.now(), call_->level()));
}

WaitStep ReleaseFlow::step(const ReleaseMachine::Event& event)
{
    const auto action = machine_.resume(event, core_.random);
    if (const auto* done = std::get_if<Done<Unlocked>>(&action)) {
        return finish(done->result);
    }
    if (const auto* send = std::get_if<Send>(&action)) {
        auto next = std::exchange(behind_, {});
        const bool follows = next.call != nullptr;
        call_->mode = Call::Mode::awaited;
        call_->quiet = next.quiet;
        core_.port.submit(Lane::commands, call_, std::move(next.call)); // if it is refused, its outcome says so
        return {.kind = WaitStep::Kind::awaitAnswer, .until = send->until, .follows = follows};
    }
    until_ = std::get<SleepUntil>(action).until;
    return {.kind = WaitStep::Kind::sleep, .until = until_};
}

WaitStep ReleaseFlow::finish(Unlocked how)
{
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
    } else if (result_ == Unlocked::unconfirmed) {
        core_.releasing.correctCount(hold_, true);
    }
}

void ReleaseFlow::endOutermost()
{
    core_.waking.noteAudience(*call_);
    core_.putBack(std::move(call_));
    if (result_ == Unlocked::unconfirmed && core_.port.now() < validUntil_ && !core_.isClosing()) {
        core_.releasing.goOn(hold_, machine_);
    } else {
        core_.releasing.over(hold_, result_);
    }
}

} // namespace redislock::detail
