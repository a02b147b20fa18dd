#include "core/core.hpp"

#include "core/operation/shutdown_flow.hpp"
#include "values/immortal.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace redislock::detail {

Core::Core(Port& outside, const Config& settings, std::string client, std::uint64_t seed)
    : port(outside), config(settings), id(std::move(client)), channelMark(channelMarkOf(settings)), random(seed)
{
    idleHolds_.reserve(maxIdle);
    idleCalls_.reserve(maxIdle);
    (void)stoppedToken(); // takes memory the first time
}

// --- Names ----------------------------------------------------------------------------------------------------------

std::shared_ptr<NamedLock> Core::knownOrAdd(NamedLock& fresh)
{
    const auto found = names_.find(keyOf(fresh));
    if (found != names_.end()) {
        if (auto known = (*found)->weak_from_this().lock()) { // null while its destructor waits for the mutex
            return known;
        }
        fresh.local = std::exchange((*found)->local, {});
        names_.erase(found);
    }
    const auto debt = std::ranges::find_if(
        debts_, [&](const OwedUnlocks& each) { return each.kind == fresh.kind && each.name == fresh.name; });
    if (debt != debts_.end()) {
        fresh.local = std::move(debt->owed);
        debts_.erase(debt);
    }
    joinOtherKinds(fresh);
    names_.insert(&fresh);
    return nullptr;
}

void Core::joinOtherKinds(NamedLock& named)
{
    for (std::size_t kind = 0; kind < lockKinds; ++kind) {
        const auto found = names_.find(NameKey{static_cast<LockKind>(kind), named.name});
        if (found != names_.end()) {
            return named.join(**found); // all other kinds of the name are in its ring
        }
    }
}

void Core::forget(NamedLock& named) noexcept
{
    named.leaveOtherKinds();
    const auto found = names_.find(keyOf(named));
    if (found != names_.end() && *found == &named) {
        names_.erase(found);
    }
    try {
        if (named.local.isOwed()) {
            debts_.push_back({named.kind, named.name, std::move(named.local)});
        }
        if (debts_.size() > maxDebts) {
            debts_.pop_front();
        }
    } catch (...) { // out of memory: a late unlock() finds nothing
        return;
    }
}

void Core::remember(NamedLock& named) noexcept
{
    if (closing_) {
        return;
    }
    try {
        sharedNames_.push_back(named.shared_from_this());
        if (sharedNames_.size() > maxSharedNames) {
            port.post([forgotten = std::move(sharedNames_.front())]() mutable { forgotten.reset(); });
            sharedNames_.pop_front();
        }
    } catch (...) { // out of memory: the name is known while an object of it lives
        return;
    }
}

// --- Holds, and requests about them ---------------------------------------------------------------------------------

HoldRef Core::takeHold(NamedLock& named, std::uint64_t caller, Lane lane)
{
    HoldRef hold;
    if (idleHolds_.empty()) {
        hold = new Hold;
    } else {
        hold = std::move(idleHolds_.back());
        idleHolds_.pop_back();
    }
    hold->id = port.nextHolder();
    hold->owner = caller;
    hold->lane = lane;
    hold->lock = named.shared_from_this();
    hold->phase.store(Hold::Phase::acquiring, std::memory_order_relaxed);
    return hold;
}

std::shared_ptr<NamedLock> Core::recycle(HoldRef& hold) noexcept
{
    if (hold == nullptr || hold->references.load(std::memory_order_acquire) != 1 || idleHolds_.size() == maxIdle) {
        return nullptr;
    }
    REDISLOCK_ASSERT(hold->phase != Hold::Phase::held);
    REDISLOCK_ASSERT(!hold->renewalSlot.scheduled() && !hold->deadlineSlot.scheduled());
    auto named = std::move(hold->lock);
    hold->levels.clear();
    hold->stopAtRisk = hold->stopLost = std::stop_source(std::nostopstate);
    hold->atRiskTold = hold->heldTooLong = hold->refused = hold->levelHasEnded = false;
    hold->isMember = hold->isTentative = false;
    hold->grantedLevel = 0;
    hold->renewal = RenewMachine();
    hold->unanswered = hold->unconfirmed = false;
    hold->countsUnderWay = 0;
    hold->setDurability({});
    hold->grantedAt = hold->holderSince = TimePoint{};
    idleHolds_.push_back(std::move(hold)); // does not throw: the capacity is reserved
    return named;
}

std::shared_ptr<HoldCall> Core::takeCall(Hold& hold)
{
    std::shared_ptr<HoldCall> call;
    if (idleCalls_.empty()) {
        call = patiently([] { return std::make_shared<HoldCall>(); });
    } else {
        call = std::move(idleCalls_.back());
        idleCalls_.pop_back();
    }
    REDISLOCK_ASSERT(!call->pending);
    call->attach(&hold);
    call->outcome = {};
    call->isHurried = false;
    call->quiet = call->echoes = false;
    call->place = {};
    call->writer = {};
    call->isHeard = false;
    call->sends = 0;
    call->asks = false;
    return call;
}

/// Returns the call to the pool unless a connection still owns it.
void Core::putBack(std::shared_ptr<HoldCall> call) noexcept
{
    if (!call->pending && call->mode != Call::Mode::abandoned && idleCalls_.size() < maxIdle) {
        call->detach();
        idleCalls_.push_back(std::move(call)); // does not throw: the capacity is reserved
    }
}

// --- Acquiring ------------------------------------------------------------------------------------------------------

AcquireMachine::Settings Core::settingsFor(Wait wait, std::chrono::milliseconds lease) const noexcept
{
    AcquireMachine::Settings settings;
    settings.lease = lease;
    settings.wait = wait;
    settings.pollInterval = config.pollInterval;
    settings.commandTimeout = config.commandTimeout;
    settings.unreachableAfter = config.unreachableAfter;
    return settings;
}

Hold* Core::validHold(NamedLock& named, std::uint64_t caller)
{
    Hold* own = named.local.of(caller);
    if (own != nullptr && port.now() >= own->validUntil()) {
        expire(*own);
        own = nullptr;
    }
    return own;
}

Hold* Core::holdOfOtherKind(NamedLock& named, std::uint64_t caller)
{
    const auto isHalf = [](LockKind kind) { return kind == LockKind::readLock || kind == LockKind::writeLock; };
    Hold* own = nullptr;
    named.forEachKind([&](NamedLock& other) {
        if (own == nullptr && &other != &named && isHalf(other.kind) == isHalf(named.kind)) {
            own = validHold(other, caller); // a hold keeps its name alive
        }
    });
    return own;
}

void Core::grant(Hold& hold, std::uint32_t level, const AcquireResult& result)
{
    try {
        hold.levels.granted(level, result.validUntil);
        REDISLOCK_ASSERT(hold.phase == Hold::Phase::acquiring || hold.phase == Hold::Phase::held);
        if (hold.phase.load(std::memory_order_relaxed) == Hold::Phase::acquiring) {
            hold.grantedAt = hold.holderSince = port.now();
            hold.lock->local.add(&hold);
            const bool joins = hold.lock->traits().asking == Asking::each && hold.lock->local.holds().size() > 1;
            if (hold.lock->turn != nullptr && !joins) {
                hold.lock->turn->granted(hold.grantedAt, result.sentAt);
            }
        }
        hold.phase.store(Hold::Phase::held, std::memory_order_release);
        hold.updateDeadline();
        hold.grantedLevel = result.isGiven ? level : hold.grantedLevel;
        renewing.watch(hold, result.sentAt);
    } catch (...) { // out of memory: a hold that cannot be watched must not be held
        hold.phase.store(Hold::Phase::ended, std::memory_order_release);
        renewing.forget(hold);
        const auto removed = hold.lock->local.remove(hold);
        releasing.giveBack(hold, result.validUntil);
        throw;
    }
}

// --- Ending and losing ----------------------------------------------------------------------------------------------

Acquired Core::innermostOf(NamedLock& named, std::uint64_t caller, bool& unlockOwed)
{
    if (Hold* own = validHold(named, caller)) {
        if (const auto level = own->levels.innermostOfThread(); level != 0) {
            return {own, level, 0};
        }
    }
    unlockOwed = named.local.countLateUnlock(caller);
    return {};
}

bool Core::isHeld(const Acquired& acquired)
{
    Hold& hold = *acquired.hold;
    if (hold.phase == Hold::Phase::held && port.now() >= hold.validUntil()) {
        expire(hold);
    }
    return hold.phase == Hold::Phase::held;
}

/// Ends a hold that was not given up; `lost` is its final state.
void Core::lose(Hold& hold, LossReason reason)
{
    hold.reason = reason;
    hold.phase.store(Hold::Phase::lost, std::memory_order_release);
    NamedLock& named = *hold.lock;
    const bool isInRedis = Renewing::mayOutlive(hold, reason);
    renewing.forget(hold);
    tellLoss(hold, reason);
    auto removed = named.local.remove(hold); // perhaps the last reference: destroyed outside the mutex
    if (isInRedis) {
        releasing.takeBack(hold, saturatingAdd(port.now(), config.watchdogTimeout));
    }
    port.post([removed = std::move(removed)]() mutable { removed.reset(); });
    Waking::wakeNext(named);
}

void Core::loseRest(Hold& hold)
{
    if (hold.levels.count() > 0) {
        tellLoss(hold, reasonOfEnd(hold));
    }
}

/// A hold that ends without having been reported as at risk ends because this process stood still: nothing else delays
/// the alarm for that report.
LossReason Core::reasonOfEnd(const Hold& hold) const noexcept
{
    if (!hold.levels.isRenewed()) {
        return LossReason::leaseEnded;
    }
    return hold.heldTooLong                                             ? LossReason::heldTooLong
           : !hold.atRiskTold && port.now() >= hold.levels.validUntil() ? LossReason::paused
           : hold.refused                                               ? LossReason::refused
                                                                        : LossReason::unrenewed;
}

/// Remembers the unlock() calls that the thread still owes, and stops the stop tokens; their callbacks run on the
/// background thread.
void Core::tellLoss(Hold& hold, LossReason reason)
{
    hold.lock->local.owe(hold.owner, hold.levels.countOfThread());
    tellOfWhole(hold, [reason](Observer& observer, const LockEvent& event) { observer.lost(event, reason); });
    port.post([atRisk = hold.stopAtRisk, lost = hold.stopLost]() mutable {
        atRisk.request_stop();
        lost.request_stop();
    });
}

void Core::forces(NamedLock& named, std::string_view holder)
{
    named.forEachKind([&](NamedLock& each) {
        for (const auto& hold : each.local.holds()) {
            hold->unanswered = hold->unanswered || holderText(*hold) == holder;
        }
    });
}

void Core::loseForced(NamedLock& named, std::string_view holder, const Call& call)
{
    const bool endsAll = named.kind == LockKind::readLock && call.reply.integer == 1;
    for (std::size_t i = named.local.holds().size(); i-- > 0;) {
        const HoldRef hold = named.local.holds()[i];
        if ((endsAll && hold->grantedAt < call.sentAt) || holderText(*hold) == holder) {
            lose(*hold, LossReason::forced); // takes it out
        }
    }
}

std::stop_token Core::stoppedToken()
{
    static const Immortal<std::stop_token> stopped([] {
        std::stop_source source;
        source.request_stop();
        return source.get_token();
    }());
    return stopped.get();
}

std::stop_token Core::stopToken(Hold& hold, StopAt when)
{
    const bool isOver = hold.phase != Hold::Phase::held || port.now() >= hold.validUntil();
    if (isOver || (when == StopAt::atRisk && hold.atRiskTold)) {
        return stoppedToken();
    }
    auto& source = when == StopAt::lost ? hold.stopLost : hold.stopAtRisk;
    if (!source.stop_possible()) {
        try {
            source = patiently([] { return std::stop_source(); });
        } catch (const std::bad_alloc&) { // who could not be told of the loss must not go on
            return stoppedToken();
        }
    }
    return source.get_token();
}

// --- What is told ---------------------------------------------------------------------------------------------------

std::string Core::holderText(const Hold& hold) const
{
    return (id + ":" + std::to_string(static_cast<std::uint64_t>(hold.id))).append(hold.lock->traits().holderSuffix);
}

void Core::tellObserverOf(const Hold& hold, const std::string& holder,
                          const std::function<void(Observer&, const LockEvent&)>& what)
{
    port.tell(patiently([&] {
        return std::function<void(Observer&)>(
            [what, name = hold.lock->name, holder, kind = objectKind(hold.lock->kind)](Observer& observer) {
                what(observer, LockEvent{name, holder, kind});
            });
    }));
}

// --- The alarm ------------------------------------------------------------------------------------------------------

void Core::wakeAt(TimePoint when, BackgroundRun& run)
{
    patiently([&] { runs.set(run, when); });
    arm();
}

void Core::arm() noexcept
{
    const TimePoint earliest = std::min(renewing.due(), runs.earliest());
    if (earliest < armed_) { // else the alarm goes off before, and is then set again
        armed_ = earliest;
        port.alarm(earliest);
    }
}

void Core::ring()
{
    const TimePoint now = port.now();
    armed_ = TimePoint::max();
    while (BackgroundRun* const run = runs.popDue(now)) {
        run->timeIsOver();
    }
    renewing.ring(now);
    arm();
}

void Core::unsettle(const SlotSet* where)
{
    if (closing_) {
        return;
    }
    renewing.unsettle(port.now(), true, where);
    for (NamedLock* named : names_) {
        if (where == nullptr || where->test(named->slot)) {
            waking.letFirstTry(*named);
        }
    }
}

void Core::recover() noexcept
{
    armed_ = port.now() + whileOutOfMemory;
    port.alarm(armed_);
}

// --- The client's end -----------------------------------------------------------------------------------------------

void Core::ends() noexcept
{
    REDISLOCK_ASSERT(underWay_ > 0);
    --underWay_;
    if (shutdown != nullptr && underWay_ == 0) {
        shutdown->wake();
    }
}

void Core::endRuns()
{
    std::vector<std::shared_ptr<BackgroundRun>> all; // a run that ends may end others
    while (BackgroundRun* const run = runs.popDue(TimePoint::max())) {
        all.push_back(run->keep());
    }
    std::ranges::for_each(all, [](const auto& run) { run->endSleep(); });
    port.post([all = std::move(all)]() mutable { all.clear(); }); // without the mutex
}

void Core::begins(Waiter& waiter) noexcept
{
    if (!std::exchange(waiter.underWay, true)) {
        begins();
    }
}

void Core::ends(Waiter& waiter) noexcept
{
    if (std::exchange(waiter.underWay, false)) {
        ends();
    }
}

std::vector<std::shared_ptr<NamedLock>> Core::close()
{
    std::vector<std::shared_ptr<NamedLock>> names;
    patiently([&] { names.reserve(names_.size() + sharedNames_.size()); });
    closing_ = true;
    for (NamedLock* each : names_) {
        if (auto named = each->weak_from_this().lock()) {
            names.push_back(std::move(named));
        }
    }
    for (const auto& named : names) {
        const auto takeBack = [this](Waiter& waiter) {
            const HoldRef inherited = std::move(waiter.inherited);
            if (inherited != nullptr && isHeld({inherited, waiter.inheritedLevel})) {
                releasing.giveBack(*inherited, inherited->validUntil()); // the waiter does not know yet that it has it
            }
        };
        named->waiters.forEach(takeBack);
        named->askers.forEach(takeBack);
        while (!named->local.holds().empty()) {
            const HoldRef hold = named->local.holds()[0];
            if (hold->isTentative) { // the caller of its group does not know of it yet either
                tellLoss(*hold, LossReason::shutDown);
                releasing.giveBack(*hold, hold->validUntil());
            } else {
                lose(*hold, LossReason::shutDown);
            }
        }
        const auto end = [this](Waiter& waiter) {
            waiter.ended = Errc::shutdown;
            if (waiter.run == nullptr) {
                port.fail(waiter.call, Errc::shutdown);
            }
            waiter.look();
        };
        named->waiters.forEach(end);
        named->askers.forEach(end);
    }
    counters.close();
    std::ranges::move(sharedNames_, std::back_inserter(names));
    sharedNames_.clear();
    return names;
}

} // namespace redislock::detail
