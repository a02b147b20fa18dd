#include "runtime/watchdog.hpp"

#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace redislock::detail {

Watchdog::Watchdog(boost::asio::io_context& io, Engine& engine) : engine_(engine), timer_(io)
{
    timer_.onRing([this] { doDue(); });
}

void Watchdog::watch(Hold& hold, TimePoint sentAt)
{
    setDeadline(hold);
    if (!mustRenew(hold, sentAt)) {
        renewals_.remove(hold);
        hold.renewal = RenewMachine();
    } else if (hold.renewal.state() == RenewMachine::State::idle) {
        std::shared_ptr<HoldCall> none;
        apply(hold, hold.renewal.resume(Start{sentAt}, engine_.config().watchdogTimeout, engine_.random()), none);
    }
}

bool Watchdog::mustRenew(const Hold& hold, TimePoint now) const
{
    return hold.levels.mustRenew(now, engine_.config().watchdogTimeout, hold.lock->traits().sharesTime);
}

void Watchdog::forget(Hold& hold) noexcept
{
    renewals_.remove(hold);
    deadlines_.remove(hold);
}

/// The next moment at which something is to be told of the hold: that it is at risk, or lost.
void Watchdog::setDeadline(Hold& hold)
{
    const TimePoint validUntil = hold.validUntil();
    const auto lease = hold.levels.isRenewed() ? std::chrono::nanoseconds(engine_.config().watchdogTimeout)
                                               : validUntil - hold.grantedAt;
    const TimePoint risk = validUntil - riskMarginOf(lease, engine_.config().commandTimeout);
    hold.atRiskTold = hold.atRiskTold && BootClock::now() >= risk;
    deadlines_.set(hold, hold.atRiskTold ? validUntil : risk);
    arm();
}

/// Does what the renewal machine asks for. @param send set when a renewal must be sent.
void Watchdog::apply(Hold& hold, const RenewMachine::Action& action, std::shared_ptr<HoldCall>& send)
{
    if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
        renewals_.set(hold, sleep->until);
        return arm();
    }
    if (const auto* done = std::get_if<Done<RenewalEnd>>(&action)) {
        if (done->result == RenewalEnd::lost) {
            engine_.lose(hold);
        }
        return;
    }
    if (send == nullptr) {
        send = engine_.takeCall(hold);
    }
    const auto lease =
        hold.levels.leaseToRenew(BootClock::now(), engine_.config().watchdogTimeout, hold.lock->traits().sharesTime);
    send->prepare(HoldCall::Verb::renew, lease, 0, Call::Mode::detached);
}

/// A timer that stays though its hold is gone is cheaper than one for each lock.
void Watchdog::arm() noexcept
{
    const TimePoint earliest = std::min(renewals_.earliest(), deadlines_.earliest());
    if (earliest >= armed_) {
        return; // the timer goes off earlier, and then looks again
    }
    armed_ = earliest;
    timer_.set(earliest);
}

/// Judges the deadlines that have come, then sends the renewals that are due, a batch at a time: whatever else is ready gets its
/// turn in between.
void Watchdog::doDue()
{
    std::array<std::shared_ptr<HoldCall>, batch> calls;
    std::size_t count = 0;
    {
        const std::lock_guard lock(engine_.mutex());
        const TimePoint now = BootClock::now();
        armed_ = TimePoint::max();
        judge(now);
        while (count < batch) {
            Hold* hold = renewals_.popDue(now);
            if (hold == nullptr) {
                break;
            }
            if (!mustRenew(*hold, now)) {
                hold->renewal = RenewMachine();
                continue;
            }
            if (overstays(*hold, now)) {
                continue;
            }
            try {
                apply(*hold, hold->renewal.resume(TimerFired{now}, engine_.config().watchdogTimeout, engine_.random()),
                      calls[count]);
            } catch (...) { // out of memory: its place in the heap is free, so this takes none
                renewals_.set(*hold, now + std::chrono::milliseconds(10));
                throw;
            }
            count += calls[count] ? 1 : 0;
        }
        arm();
    }
    std::size_t sent = 0;
    try {
        for (; sent < count; ++sent) {
            engine_.renewals().enqueue(calls[sent]);
        }
    } catch (...) { // out of memory: the rest is tried again
        const std::lock_guard lock(engine_.mutex());
        for (; sent < count; ++sent) {
            renewals_.set(calls[sent]->hold(), BootClock::now() + std::chrono::milliseconds(10));
        }
        throw;
    }
    engine_.renewals().flush();
}

/// A hold that reached its maximum is no longer renewed.
bool Watchdog::overstays(Hold& hold, TimePoint now)
{
    const auto most = engine_.config().maxHold;
    const auto held = now - hold.grantedAt;
    if (most == most.zero() || now < saturatingAdd(hold.grantedAt, most) || !hold.levels.isRenewed()) {
        return false;
    }
    if (!std::exchange(hold.heldTooLong, true)) {
        engine_.tellOf(hold, [held](Observer& observer, const LockEvent& event) { observer.heldTooLong(event, held); });
    }
    return true;
}

void Watchdog::renewed(HoldCall& call)
{
    try {
        judgeRenewal(call);
    } catch (...) { // out of memory: tried again
        const std::lock_guard lock(engine_.mutex());
        Hold& hold = call.hold();
        if (hold.phase == Hold::Phase::held && !hold.renewalSlot.scheduled()) {
            renewals_.set(hold, BootClock::now() + std::chrono::milliseconds(10));
            arm();
        }
    }
}

void Watchdog::judgeRenewal(HoldCall& call)
{
    auto again = call.shared_from_this();
    const HoldRef keep(&call.hold()); // let go of after the mutex
    bool send = false;
    {
        const std::lock_guard lock(engine_.mutex());
        Hold& hold = *keep;
        const TimePoint now = BootClock::now();
        judge(now);
        const auto event = eventOf<RenewMachine::Event, RenewAnswer>(call, call.outcome, now);
        if (hold.phase != Hold::Phase::held) { // over meanwhile: nothing revives it, and Redis ends it soon
            return engine_.putBack(std::move(again));
        }
        const auto lease = engine_.config().watchdogTimeout;
        if (const auto* replied = std::get_if<Replied<RenewAnswer>>(&event);
            replied != nullptr && replied->answer.kind == RenewAnswer::Kind::renewed) {
            hold.levels.renewed(deadlineOf(replied->sentAt, lease));
            hold.updateDeadline();
            setDeadline(hold);
            if (hold.levels.isRenewed()) {
                engine_.tellOf(hold, [took = replied->now - replied->sentAt](
                                         Observer& observer, const LockEvent& told) { observer.renewed(told, took); });
            }
        } else if (const auto* failed = std::get_if<Failed>(&event)) {
            engine_.tellOf(hold, [error = failed->fault.error](Observer& observer, const LockEvent& told) {
                observer.renewalFailed(told, error);
            });
        }
        const auto action = hold.renewal.resume(event, lease, engine_.random());
        send = std::holds_alternative<Send>(action);
        apply(hold, action, again);
        if (!send) {
            engine_.putBack(std::move(again));
        }
    }
    if (send) {
        engine_.renewals().enqueue(std::move(again));
        engine_.renewals().flush();
    }
}

/// A handler may have ended with an exception before it waited again.
void Watchdog::recover()
{
    {
        const std::lock_guard lock(engine_.mutex());
        armed_ = TimePoint::max();
        arm();
    }
    timer_.wait();
}

/// Tells of holds at risk and ends those that are over. Expects the mutex.
void Watchdog::judge(TimePoint now)
{
    while (Hold* hold = deadlines_.popDue(now)) {
        const TimePoint validUntil = hold->validUntil();
        if (now >= validUntil) {
            engine_.lose(*hold);
            continue;
        }
        hold->atRiskTold = true;
        deadlines_.set(*hold, validUntil);
        if (hold->stopAtRisk.stop_possible()) {
            engine_.post([stop = hold->stopAtRisk]() mutable { stop.request_stop(); });
        }
        engine_.tellOf(*hold, [left = validUntil - now](Observer& observer, const LockEvent& event) {
            observer.atRisk(event, left);
        });
    }
}

void Watchdog::close()
{
    timer_.close();
}

} // namespace redislock::detail
