// Keeping leases alive and judging when they are over, as in src/runtime/watchdog.cpp.
#include "simulation/loss_checker.hpp"
#include "simulation/sim_client.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::RenewAnswer;
using detail::RenewMachine;
using detail::Replied;

namespace {

RenewMachine::Event renewEvent(const Call& call, TimePoint now)
{
    return eventOf<RenewMachine::Event>(call, now, [&](const Reply& reply) -> RenewMachine::Event {
        const auto answer = RenewAnswer::from(reply);
        if (!answer) {
            throw Violation("replies", "renew.lua gave an answer that it cannot give");
        }
        return Replied<RenewAnswer>{now, call.sentAt, *answer};
    });
}

} // namespace

void SimClient::watch(Hold& hold, TimePoint sentAt)
{
    setDeadline(hold);
    if (!mustRenew(hold, sentAt)) {
        renewals_.remove(hold);
        hold.renewal = RenewMachine();
    } else if (hold.renewal.state() == RenewMachine::State::idle) {
        apply(hold, hold.renewal.resume(detail::Start{sentAt}, config_.watchdogTimeout, random_));
    }
}

bool SimClient::mustRenew(const Hold& hold, TimePoint now) const
{
    return hold.levels.mustRenew(now, config_.watchdogTimeout, hold.lock->traits().sharesTime);
}

void SimClient::forget(Hold& hold)
{
    renewals_.remove(hold);
    deadlines_.remove(hold);
}

void SimClient::setDeadline(Hold& hold)
{
    deadlines_.set(hold, hold.validUntil());
    armDeadlines();
}

void SimClient::apply(Hold& hold, const RenewMachine::Action& action)
{
    if (const auto* sleep = std::get_if<detail::SleepUntil>(&action)) {
        renewals_.set(hold, sleep->until);
        return armRenewals();
    }
    if (const auto* done = std::get_if<detail::Done<detail::RenewalEnd>>(&action)) {
        if (done->result == detail::RenewalEnd::lost) {
            lose(hold, "renewal");
        }
        return;
    }
    world_.checker.renews(hold.holder);
    const auto lease = hold.levels.leaseToRenew(host_->now(), config_.watchdogTimeout, hold.lock->traits().sharesTime);
    auto call = std::shared_ptr<Call>(new Call(), [keep = hold.shared_from_this()](Call* c) { delete c; });
    call->hold = &hold;
    call->situation = Situation::renewalAsking;
    call->request.run(hold.lock->traits(), &detail::KindTraits::renew, hold.lock->name,
                      {hold.holder, std::to_string(lease.count())});
    call->request.number = nextRequest();
    call->finished = [this](Call& c) { renewed(c); };
    renewalConnection_.enqueue(std::move(call));
}

void SimClient::armRenewals()
{
    const TimePoint earliest = renewals_.earliest();
    if (earliest >= renewalsArmed_) {
        return; // the timer goes off earlier, and then looks again
    }
    renewalsArmed_ = earliest;
    host_->at(earliest, [this] { renewDue(); });
}

void SimClient::renewDue()
{
    judge();
    renewalsArmed_ = TimePoint::max();
    while (Hold* hold = renewals_.popDue(host_->now())) {
        if (!mustRenew(*hold, host_->now())) {
            hold->renewal = RenewMachine();
            continue;
        }
        apply(*hold, hold->renewal.resume(detail::TimerFired{host_->now()}, config_.watchdogTimeout, random_));
    }
    armRenewals();
}

void SimClient::renewed(Call& call)
{
    const auto keep = call.hold->shared_from_this();
    Hold& hold = *call.hold;
    judge();
    if (hold.phase != Hold::Phase::held) {
        return; // over meanwhile: nothing revives it, and Redis ends it soon
    }
    const auto lease = config_.watchdogTimeout;
    const auto event = renewEvent(call, host_->now());
    if (const auto* replied = std::get_if<Replied<RenewAnswer>>(&event);
        replied != nullptr && replied->answer.kind == RenewAnswer::Kind::renewed) {
        hold.levels.renewed(detail::deadlineOf(replied->sentAt, lease));
        hold.deadline = hold.levels.validUntil();
        hold.renewedAt = replied->sentAt;
        setDeadline(hold);
        tellBelief(hold);
    }
    apply(hold, hold.renewal.resume(event, lease, random_));
}

void SimClient::armDeadlines()
{
    const TimePoint earliest = deadlines_.earliest();
    if (earliest >= deadlinesArmed_) {
        return; // the timer goes off earlier, and then looks again
    }
    deadlinesArmed_ = earliest;
    host_->at(earliest, [this] {
        deadlinesArmed_ = TimePoint::max();
        judge();
        armDeadlines();
    });
}

/// Ends the holds that are over.
void SimClient::judge()
{
    while (Hold* hold = deadlines_.popDue(host_->now())) {
        if (host_->now() >= hold->validUntil()) {
            lose(*hold, nullptr);
        } else {
            deadlines_.set(*hold, hold->validUntil());
        }
    }
}

void SimClient::checkResilience(const Hold& hold) const
{
    if (!hold.levels.isRenewed() || hold.renewal.state() == RenewMachine::State::idle) {
        return; // not renewed, or not yet: the level that asks for it is being acquired
    }
    expectNoChance({.holder = hold.holder,
                    .lease = config_.watchdogTimeout,
                    .commandTimeout = config_.commandTimeout,
                    .renewedAt = hold.renewedAt,
                    .deadline = hold.deadline},
                   *host_, lastTrouble);
}

} // namespace redislock::simulation
