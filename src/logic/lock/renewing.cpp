#include "logic/lock/renewing.hpp"

#include "logic/call/event_of.hpp"
#include "logic/lock/core.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

std::chrono::milliseconds renewalTimeout(std::chrono::nanoseconds lease,
                                         std::chrono::nanoseconds commandTimeout) noexcept
{
    using std::chrono::milliseconds;
    return std::clamp(std::chrono::duration_cast<milliseconds>(lease / 6), milliseconds(10),
                      std::chrono::duration_cast<milliseconds>(commandTimeout));
}

void Renewing::watch(Hold& hold, TimePoint sentAt)
{
    setDeadline(hold);
    if (!mustRenew(hold, sentAt)) {
        renewals_.remove(hold);
        hold.renewal = RenewMachine();
    } else if (hold.renewal.state() == RenewMachine::State::idle) {
        apply(hold, hold.renewal.resume(Start{sentAt}, core_.config.watchdogTimeout, core_.random), nullptr);
    }
}

bool Renewing::mustRenew(const Hold& hold, TimePoint now) const
{
    return hold.levels.mustRenew(now, core_.config.watchdogTimeout, hold.lock->traits().sharesTime);
}

void Renewing::forget(Hold& hold) noexcept
{
    renewals_.remove(hold);
    deadlines_.remove(hold);
}

/// The next moment at which something is to be told of the hold: that it is at risk, or lost.
void Renewing::setDeadline(Hold& hold)
{
    const TimePoint validUntil = hold.validUntil();
    const auto lease =
        hold.levels.isRenewed() ? std::chrono::nanoseconds(core_.config.watchdogTimeout) : validUntil - hold.grantedAt;
    const TimePoint risk = validUntil - riskMarginOf(lease, core_.config.commandTimeout);
    hold.atRiskTold = hold.atRiskTold && core_.port.now() >= risk;
    deadlines_.set(hold, hold.atRiskTold ? validUntil : risk);
    arm();
}

/// Does what the renewal machine asks for. @param call of the renewal that was answered; null: none was
void Renewing::apply(Hold& hold, const RenewMachine::Action& action, std::shared_ptr<HoldCall> call)
{
    if (std::holds_alternative<Send>(action)) {
        if (call == nullptr) {
            call = core_.takeCall(hold);
        }
        const auto lease =
            hold.levels.leaseToRenew(core_.port.now(), core_.config.watchdogTimeout, hold.lock->traits().sharesTime);
        call->prepare(HoldCall::Verb::renew, lease, 0, Call::Mode::detached);
        core_.port.submit(Lane::background, std::move(call));
        return;
    }
    if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
        renewals_.set(hold, sleep->until);
        arm();
    } else if (std::get<Done<RenewalEnd>>(action).result == RenewalEnd::lost) {
        core_.lose(hold);
    }
    if (call != nullptr) {
        core_.putBack(std::move(call));
    }
}

/// An alarm that stays though its hold is gone is cheaper than one for each lock.
void Renewing::arm() noexcept
{
    const TimePoint earliest = std::min(renewals_.earliest(), deadlines_.earliest());
    if (earliest >= armed_) {
        return; // it goes off earlier, and then looks again
    }
    armed_ = earliest;
    core_.port.alarm(earliest);
}

void Renewing::ring()
{
    const TimePoint now = core_.port.now();
    armed_ = TimePoint::max();
    judge(now);
    for (std::size_t count = 0; count < batch; ++count) {
        Hold* hold = renewals_.popDue(now);
        if (hold == nullptr) {
            break;
        }
        if (!mustRenew(*hold, now)) {
            hold->renewal = RenewMachine();
        } else if (!overstays(*hold, now)) {
            try {
                apply(*hold, hold->renewal.resume(TimerFired{now}, core_.config.watchdogTimeout, core_.random),
                      nullptr);
            } catch (...) { // out of memory
                retrySoon(*hold);
                throw;
            }
        }
    }
    arm();
}

/// There was no memory to go on with a renewal: its place in the heap is free, so this takes none.
void Renewing::retrySoon(Hold& hold)
{
    renewals_.set(hold, core_.port.now() + std::chrono::milliseconds(10));
    arm();
}

/// A hold that reached its maximum is no longer renewed.
bool Renewing::overstays(Hold& hold, TimePoint now)
{
    const auto most = core_.config.maxHold;
    const auto held = now - hold.grantedAt;
    if (most == most.zero() || now < saturatingAdd(hold.grantedAt, most) || !hold.levels.isRenewed()) {
        return false;
    }
    if (!std::exchange(hold.heldTooLong, true)) {
        core_.tellOf(hold, [held](Observer& observer, const LockEvent& event) { observer.heldTooLong(event, held); });
    }
    return true;
}

void Renewing::answered(HoldCall& call)
{
    try {
        judgeRenewal(call.shared_from_this());
    } catch (...) { // out of memory
        Hold& hold = call.hold();
        if (hold.phase == Hold::Phase::held && !hold.renewalSlot.scheduled()) {
            retrySoon(hold);
        }
    }
}

void Renewing::judgeRenewal(const std::shared_ptr<HoldCall>& call)
{
    Hold& hold = call->hold();
    const TimePoint now = core_.port.now();
    judge(now);
    const auto event = eventOf<RenewMachine::Event, RenewAnswer>(*call, call->outcome, now);
    if (hold.phase != Hold::Phase::held) { // over meanwhile: nothing revives it, and Redis ends it soon
        return core_.putBack(call);
    }
    const auto lease = core_.config.watchdogTimeout;
    if (const auto* replied = std::get_if<Replied<RenewAnswer>>(&event);
        replied != nullptr && replied->answer.kind == RenewAnswer::Kind::renewed) {
        hold.levels.renewed(deadlineOf(replied->sentAt, lease));
        hold.updateDeadline();
        setDeadline(hold);
        if (hold.levels.isRenewed()) {
            core_.tellOf(hold, [took = replied->now - replied->sentAt](Observer& observer, const LockEvent& told) {
                observer.renewed(told, took);
            });
        }
    } else if (const auto* failed = std::get_if<Failed>(&event)) {
        core_.tellOf(hold, [error = failed->fault.error](Observer& observer, const LockEvent& told) {
            observer.renewalFailed(told, error);
        });
    }
    apply(hold, hold.renewal.resume(event, lease, core_.random), call);
}

void Renewing::recover() noexcept
{
    armed_ = TimePoint::max();
    arm();
}

/// Tells of holds at risk and ends those that are over.
void Renewing::judge(TimePoint now)
{
    while (Hold* hold = deadlines_.popDue(now)) {
        const TimePoint validUntil = hold->validUntil();
        if (now >= validUntil) {
            core_.lose(*hold);
            continue;
        }
        hold->atRiskTold = true;
        deadlines_.set(*hold, validUntil);
        if (hold->stopAtRisk.stop_possible()) {
            core_.port.post([stop = hold->stopAtRisk]() mutable { stop.request_stop(); });
        }
        core_.tellOf(*hold, [left = validUntil - now](Observer& observer, const LockEvent& event) {
            observer.atRisk(event, left);
        });
    }
}

} // namespace redislock::detail
