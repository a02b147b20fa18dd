#include "core/renewing.hpp"

#include "core/core.hpp"
#include "link/request/calls.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

/// When the full lease of a hold is sent that another's release granted for less: not at once, since a short hold needs
/// no renewal and waking the client's thread for it delays its caller; but early in the time that was granted.
TimePoint whenOwed(const Hold& hold, TimePoint now) noexcept
{
    constexpr std::chrono::nanoseconds shortHold = std::chrono::milliseconds(2);
    return now + std::min(shortHold, (hold.validUntil() - now) / 20);
}

constexpr std::chrono::seconds lastingAfter{1};
constexpr std::chrono::seconds unsettledOncePer{1};
constexpr std::chrono::milliseconds toldUnconfirmedAfter{100}; ///< from when all were to be asked for
/// The time in which the first request for each hold is sent after unsettle(); the others are sent between them.
constexpr std::chrono::milliseconds confirmedWithin{300};

/// Whether the server answered, though it did not renew.
bool isAnswer(const Fault& fault) noexcept
{
    return fault.failure != Failure::notConnected && fault.failure != Failure::lostReply &&
           fault.failure != Failure::moved;
}

/// Whether one of several renewals may be why all of them were refused: a right to its key, or its slot is being moved.
bool mayBeOfOne(const Fault& fault) noexcept
{
    return fault.failure == Failure::fatal || fault == unknownRefusal || fault.error == Reason(Cause::clusterDown);
}

} // namespace

std::chrono::milliseconds renewalTimeout(std::chrono::nanoseconds lease,
                                         std::chrono::nanoseconds commandTimeout) noexcept
{
    using std::chrono::milliseconds;
    return std::clamp(std::chrono::duration_cast<milliseconds>(lease / 6), milliseconds(10),
                      std::chrono::duration_cast<milliseconds>(commandTimeout));
}

void Renewing::watch(Hold& hold, TimePoint sentAt)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::held);
    if (deadlines_.empty()) {
        lastingFrom_ = sentAt + lastingAfter;
        isLasting_ = false;
    }
    setDeadline(hold);
    hold.unconfirmed = hold.unconfirmed || sentAt < unsettledAt_;
    if (!mustRenew(hold, sentAt)) {
        renewals_.remove(hold);
        hold.renewal = RenewMachine();
    } else if (sentAt < unsettledAt_) { // perhaps granted by another server
        schedule(hold, core_.port.now());
    } else if (hold.renewal.state() == RenewMachine::State::idle) {
        owedLease(hold) > std::chrono::milliseconds(0)
            ? schedule(hold, whenOwed(hold, core_.port.now()))
            : apply(hold, hold.renewal.resume(Start{sentAt}, core_.config.watchdogTimeout, core_.random));
    }
}

bool Renewing::mustRenew(const Hold& hold, TimePoint now) const
{
    return hold.unconfirmed ||
           hold.levels.mustRenew(now, core_.config.watchdogTimeout, hold.lock->traits().sharesTime) ||
           owedLease(hold) > std::chrono::milliseconds(0);
}

/// The full lease of a hold that another's release granted for less, until it has been sent and answered; otherwise 0.
std::chrono::milliseconds Renewing::owedLease(const Hold& hold) const
{
    return hold.grantedLevel == 0 ? std::chrono::milliseconds(0)
                                  : hold.levels.leaseOf(hold.grantedLevel, core_.config.watchdogTimeout);
}

/// The lease that a renewal sends. A hold that is only asked about gets what its caller believes in and no more: a new
/// master may have an older, shorter grant of the same holder.
std::chrono::milliseconds Renewing::leaseFor(const Hold& hold, TimePoint now) const
{
    const bool isLong = hold.levels.mustRenew(now, core_.config.watchdogTimeout, hold.lock->traits().sharesTime);
    if ((!isLong && owedLease(hold) == std::chrono::milliseconds(0)) || overstays(hold, now)) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(hold.validUntil() - now);
        return std::max(minLease, left + driftOf(left));
    }
    const auto usual = hold.levels.leaseToRenew(now, core_.config.watchdogTimeout, hold.lock->traits().sharesTime);
    return std::max(usual, owedLease(hold));
}

void Renewing::forget(Hold& hold) noexcept
{
    renewals_.remove(hold);
    deadlines_.remove(hold);
}

bool Renewing::mayOutlive(const Hold& hold, LossReason reason) noexcept
{
    if (reason == LossReason::gone || reason == LossReason::forced || reason == LossReason::shutDown) {
        return false;
    }
    const bool isBeingRenewed = hold.renewal.state() == RenewMachine::State::asking;
    return isBeingRenewed || hold.unanswered || hold.grantedLevel != 0 || hold.levelHasEnded;
}

/// Sets the next moment at which the hold is to be reported, as at risk or as lost.
void Renewing::setDeadline(Hold& hold)
{
    const TimePoint validUntil = hold.validUntil();
    const bool isWhole = hold.levels.isRenewed() && owedLease(hold) == std::chrono::milliseconds(0);
    const auto lease = isWhole ? std::chrono::nanoseconds(core_.config.watchdogTimeout) : validUntil - hold.grantedAt;
    const TimePoint risk = validUntil - riskMarginOf(lease, core_.config.commandTimeout);
    hold.atRiskTold = hold.atRiskTold && core_.port.now() >= risk;
    deadlines_.set(hold, hold.atRiskTold ? validUntil : risk);
    core_.arm();
}

/// Does what the renewal machine asks for.
void Renewing::apply(Hold& hold, const RenewMachine::Action& action)
{
    if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
        schedule(hold, sleep->until);
    } else if (std::holds_alternative<Send>(action)) {
        schedule(hold, core_.port.now()); // together with others
    } else if (std::get<Done<RenewalEnd>>(action).result == RenewalEnd::lost) {
        core_.lose(hold, LossReason::gone);
    }
}

void Renewing::schedule(Hold& hold, TimePoint due)
{
    renewals_.set(hold, due);
    core_.arm();
}

/// There was no memory to go on with a renewal: tries again soon. The heap has room for it, so this takes no memory.
void Renewing::retrySoon(Hold& hold)
{
    schedule(hold, core_.port.now() + whileOutOfMemory);
}

/// When the next request is sent. While one is unanswered, a second one is sent only if its renewals are late.
TimePoint Renewing::nextRequest() const noexcept
{
    const TimePoint due = renewals_.earliest();
    return underWay_ == 0 || due == TimePoint::max() ? due : due + core_.config.watchdogTimeout / 100;
}

TimePoint Renewing::due() const noexcept
{
    return std::min({nextRequest(), deadlines_.earliest(), lastingFrom_, later_.at, unconfirmedAt_});
}

void Renewing::ring(TimePoint now)
{
    judge(now);
    if (now >= lastingFrom_) {
        lastingFrom_ = TimePoint::max();
        isLasting_ = true;
    }
    if (now >= later_.at) {
        const auto where = std::move(later_.where);
        unsettle(now, true, where.get());
    }
    if (now >= unconfirmedAt_) {
        tellUnconfirmed();
    }
    if (now >= nextRequest()) {
        send(now);
    }
}

/// Puts off what was asked about within the last second. @return what may be asked about now; null: nothing
std::unique_ptr<SlotSet> Renewing::putOff(const SlotSet* where)
{
    auto fresh =
        where != nullptr && asked_.where != nullptr ? std::make_unique<SlotSet>(*where & ~*asked_.where) : nullptr;
    if (fresh != nullptr) {
        *asked_.where |= *fresh;
        if (*fresh == *where) {
            return fresh;
        }
    }
    const bool isAll = where == nullptr || (later_.at != TimePoint::max() && later_.where == nullptr);
    auto all = isAll ? nullptr : std::make_unique<SlotSet>(*where);
    if (all != nullptr && later_.where != nullptr) {
        *all |= *later_.where;
    }
    later_ = {asked_.at + unsettledOncePer, std::move(all)};
    core_.arm();
    return fresh != nullptr && fresh->any() ? std::move(fresh) : nullptr;
}

void Renewing::unsettle(TimePoint now, bool isLikely, const SlotSet* where)
{
    if (now < saturatingAdd(asked_.at, unsettledOncePer)) {
        const auto fresh = putOff(where);
        return fresh != nullptr ? askAbout(now, isLikely, fresh.get()) : void();
    }
    News asked{now, where != nullptr ? std::make_unique<SlotSet>(*where) : nullptr};
    later_ = {TimePoint::max(), {}};
    askAbout(now, isLikely, where);
    asked_ = std::move(asked);
}

void Renewing::askAbout(TimePoint now, bool isLikely, const SlotSet* where)
{
    auto later = std::exchange(later_, News{now + whileOutOfMemory, {}}); // all, unless this gets to its end
    std::size_t index = 0;
    deadlines_.forEach([&](Hold& hold) {
        if (where != nullptr && !where->test(hold.lock->slot)) {
            return;
        }
        hold.unconfirmed = true;
        hold.setDurability({}); // the replicas may be others now
        if (hold.renewal.state() == RenewMachine::State::idle) {
            (void)hold.renewal.resume(Start{now}, core_.config.watchdogTimeout, core_.random);
        }
        const auto batch = static_cast<std::int64_t>(index++ / mostAtOnce);
        const auto batches = static_cast<std::int64_t>(deadlines_.size() / mostAtOnce) + 1;
        renewals_.set(hold, now + confirmedWithin * batch / batches);
    });
    unsettledAt_ = now;
    const auto spread = deadlines_.size() > mostAtOnce ? confirmedWithin : std::chrono::milliseconds(0);
    unconfirmedAt_ = deadlines_.empty() ? TimePoint::max()
                     : isLikely         ? now + spread + toldUnconfirmedAfter
                                        : unconfirmedAt_;
    later_ = std::move(later);
    core_.arm();
}

/// Reports the holds as at risk for which no answer has come.
void Renewing::tellUnconfirmed()
{
    unconfirmedAt_ = TimePoint::max();
    const TimePoint now = core_.port.now();
    deadlines_.forEach([&](Hold& hold) {
        if (hold.unconfirmed && !hold.atRiskTold) {
            tellRisk(hold, hold.validUntil() - now, LossReason::unconfirmed);
        }
    });
}

/// Sends requests for the renewals that are due, and those that will be soon: one for each script, in a cluster for
/// each script and slot.
void Renewing::send(TimePoint now)
{
    const auto lease = core_.config.watchdogTimeout;
    const bool isInCluster = !core_.config.cluster.empty();
    const bool isOneByOne = now < oneByOneUntil_;
    const std::size_t most = isOneByOne && !isInCluster ? 1 : std::min(mostAtOnce, renewals_.size());
    std::vector<std::shared_ptr<RenewalCall>> calls;
    try {
        for (std::size_t count = 0; count < most; ++count) {
            Hold* hold = renewals_.firstDue(count == 0 ? now : now + lease / 10);
            if (hold == nullptr) {
                break;
            }
            const KindTraits& kind = hold->lock->traits();
            const auto isFor = [&](const auto& each) {
                return each->use().script == kind.renew.script && each->asks == hold->asks &&
                       (!isInCluster || (!isOneByOne && each->slot() == hold->lock->slot));
            };
            auto call = std::ranges::find_if(calls, isFor);
            if (call == calls.end()) {
                calls.push_back(std::make_shared<RenewalCall>(kind.renew, isInCluster ? 1 : most));
                call = calls.end() - 1;
                (*call)->asks = hold->asks;
            }
            (*call)->makeRoom();
            REDISLOCK_ASSERT(hold->phase == Hold::Phase::held);
            const bool isSent = sends(*hold, now);
            renewals_.remove(*hold);
            if (isSent) {
                hold->asks = false;
                (*call)->add(*hold, leaseFor(*hold, now));
            } else if ((*call)->items().empty()) {
                calls.pop_back();
            }
        }
        for (const auto& call : calls) {
            if (core_.port.submit(Lane::background, call)) {
                ++underWay_;
            }
        }
    } catch (...) { // out of memory
        for (const auto& call : calls) {
            std::ranges::for_each(call->items(), [this](const auto& item) { retrySoon(*item.hold); });
        }
        throw;
    }
}

/// Whether a renewal that is due is to be sent.
bool Renewing::sends(Hold& hold, TimePoint now)
{
    if (!mustRenew(hold, now)) {
        hold.renewal = RenewMachine();
        return false;
    }
    if (overstays(hold, now)) {
        tellHeldTooLong(hold, now);
        if (!hold.unconfirmed) {
            return false;
        }
    }
    const auto action = hold.renewal.resume(TimerFired{now}, core_.config.watchdogTimeout, core_.random);
    return std::holds_alternative<Send>(action);
}

/// Whether a hold has reached its maximum, and is no longer renewed.
bool Renewing::overstays(const Hold& hold, TimePoint now) const
{
    const auto most = core_.config.maxHold;
    return most != most.zero() && now >= saturatingAdd(hold.grantedAt, most) && hold.levels.isRenewed();
}

void Renewing::tellHeldTooLong(Hold& hold, TimePoint now)
{
    if (!hold.heldTooLong) {
        hold.heldTooLong = true;
        core_.tellOf(hold, [held = now - hold.grantedAt](Observer& observer, const LockEvent& event) {
            observer.heldTooLong(event, held);
        });
    }
}

void Renewing::finished(RenewalCall& call) noexcept
{
    const auto items = call.takeItems(); // destroyed without the mutex, and last: they may keep the client alive
    const Inside lock(core_.port);
    REDISLOCK_ASSERT(underWay_ > 0);
    --underWay_;
    const TimePoint now = core_.port.now();
    const auto asked = static_cast<std::size_t>(std::ranges::count_if(items, &RenewalCall::Item::asked));
    std::size_t which = 0;
    for (const auto& item : items) {
        if (item.asked) {
            answered(item, call, asked, which++, now);
        }
    }
    if (call.outcome.replied && call.reply.isError() && asked > 1 && mayBeOfOne(classify(call.reply.text))) {
        oneByOneUntil_ = now + core_.config.watchdogTimeout;
    }
    core_.arm();
}

/// Handles the answer for one of several holds.
void Renewing::answered(const RenewalCall::Item& item, const RenewalCall& call, std::size_t count, std::size_t which,
                        TimePoint now) noexcept
{
    Hold& hold = *item.hold;
    try {
        judge(now);
        hold.note(call.outcome);
        hold.asks = call.asks;
        if (hold.phase == Hold::Phase::held) { // otherwise nothing revives the hold, and Redis ends it soon
            apply(hold, eventOf<RenewMachine::Event, RenewAnswer>(call, call.outcome, now, count, which), item.lease);
        }
    } catch (...) { // out of memory
        if (hold.phase == Hold::Phase::held && !hold.renewalSlot.scheduled()) {
            retrySoon(hold);
        }
    }
}

/// @param sent the lease of the request.
void Renewing::apply(Hold& hold, const RenewMachine::Event& event, std::chrono::milliseconds sent)
{
    const auto lease = core_.config.watchdogTimeout;
    const auto* replied = std::get_if<Replied<RenewAnswer>>(&event);
    if (replied != nullptr && replied->answer.kind == RenewAnswer::Kind::renewed) {
        hold.refused = false;
        hold.unconfirmed = hold.unconfirmed && replied->sentAt < unsettledAt_;
        hold.levels.granted(hold.grantedLevel, deadlineOf(replied->sentAt, std::min(owedLease(hold), sent)));
        hold.grantedLevel = 0;
        hold.levels.renewed(deadlineOf(replied->sentAt, std::min(lease, sent))); // a level may have joined since
        hold.updateDeadline();
        setDeadline(hold);
        if (hold.levels.isRenewed() && !overstays(hold, replied->sentAt)) {
            core_.tellOf(hold, [took = replied->now - replied->sentAt](Observer& observer, const LockEvent& told) {
                observer.renewed(told, took);
            });
        }
    }
    const auto* failed = std::get_if<Failed>(&event);
    const bool isOther = replied != nullptr && replied->answer.kind == RenewAnswer::Kind::wrongType;
    if (failed != nullptr || isOther) {
        const Reason error = isOther ? Errc::wrongType : failed->fault.error;
        hold.refused = hold.refused || (failed != nullptr && isAnswer(failed->fault));
        core_.tellOf(hold, [error](Observer& observer, const LockEvent& told) { observer.renewalFailed(told, error); });
    }
    apply(hold, hold.renewal.resume(event, lease, core_.random));
    if (replied != nullptr && hold.phase == Hold::Phase::held) {
        if (hold.unconfirmed) { // the answer is from before
            schedule(hold, replied->now);
        } else if (!mustRenew(hold, replied->now)) {
            renewals_.remove(hold);
            hold.renewal = RenewMachine();
        }
    }
}

/// Reports holds at risk, and ends holds whose time is over.
void Renewing::judge(TimePoint now)
{
    while (Hold* hold = deadlines_.popDue(now)) {
        REDISLOCK_ASSERT(hold->phase == Hold::Phase::held);
        const TimePoint validUntil = hold->validUntil();
        if (now >= validUntil) {
            core_.expire(*hold);
            continue;
        }
        deadlines_.set(*hold, validUntil);
        if (!hold->atRiskTold) { // for another reason
            tellRisk(*hold, validUntil - now, core_.reasonOfEnd(*hold));
        }
    }
}

void Renewing::tellRisk(Hold& hold, std::chrono::nanoseconds left, LossReason reason)
{
    hold.atRiskTold = true;
    if (hold.stopAtRisk.stop_possible()) {
        core_.port.post([stop = hold.stopAtRisk]() mutable { stop.request_stop(); });
    }
    core_.tellOfWhole(
        hold, [left, reason](Observer& observer, const LockEvent& event) { observer.atRisk(event, left, reason); });
}

} // namespace redislock::detail
