#include "core/operation/acquire_flow.hpp"

#include "values/printable.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

AcquireFlow::AcquireFlow(Core& c, NamedLock& n, HoldRef h, const AcquireOrder& o, BackgroundRun* run)
    : Operation(c, run),
      named(n),
      hold(std::move(h)),
      order(o),
      waiter(hold.get(), c.takeCall(*hold), leaseTime(c.config, o.lease), c.port.now()),
      asksForItself(o.wait.isOneAttempt() || o.retry != nullptr),
      queue_(asksForItself ? n.askers : n.waiters),
      deadline_(saturatingAdd(waiter.joined, o.wait.span()))
{
    waiter.run = run;
    const Waiter* first = named.waiters.head();
    waiter.behindHold = waiter.joined < named.local.validUntil() || (first != nullptr && first->refused);
    waiter.comesBack = !o.wait.isOneAttempt();
    waiter.durability = o.durability;
    waiter.call->isHurried = isHurried(c.config, o.wait);
    if (!asksForItself && named.traits().keepsPlace) {
        waiter.call->place = std::max(placesKept * c.config.pollInterval, shortestPlace);
    }
    if (c.isClosing()) {
        waiter.ended = Errc::shutdown; // too late to be ended with the other waiters
    }
    hold->isMember = hold->isTentative = order.endedBy == EndedBy::group;
    level = hold->levels.add(order.lease, order.endedBy);
    waiter.answersBefore = named.answers;
    queue_.join(waiter);
}

AcquireFlow::~AcquireFlow()
{
    core_.confirming.withdraw(confirmation_);
    (stage_ == Stage::pausing ? named.askers : queue_).leave(waiter); // without memory it ends in any stage
    endPassed();
    if (run_ == nullptr) {
        (void)takesBack();
    }
    core_.ends(waiter);
    core_.putBack(std::move(waiter.call));
    core_.waking.unsubscribe(named, waiter);
    letNext();
}

/// The next waiter may try, now that this one has left.
void AcquireFlow::letNext() const noexcept
{
    const bool wakesNext = !named.waiters.empty() || waiter.comesBack; // nobody waits behind a single attempt
    if (wakesNext && named.traits().asking == Asking::first && core_.port.now() >= named.local.validUntil()) {
        Waking::wakeNext(named);
    }
}

// --- Stages ---------------------------------------------------------------------------------------------------------

WaitStep AcquireFlow::look()
{
    waiter.parked = waiter.aside = false;
    if (takesPassed()) {
        return finish({.kind = AcquireResult::Kind::granted});
    }
    switch (stage_) {
    case Stage::awaitingTurn:
        return judgeTurn();
    case Stage::asking:
        return judgeAsking();
    case Stage::behindReleases:
        return judgeReleases();
    case Stage::sleeping:
        return judgeSleep();
    case Stage::choosing:
        return sleep(TimePoint::max()); // until the policy answers
    case Stage::confirming:
        return judgeConfirmation();
    case Stage::pausing:
        return judgePause();
    case Stage::done:
        break;
    }
    return {};
}

/// Whether this waiter inherited a hold, which was not lost before the waiter knew.
bool AcquireFlow::takesPassed()
{
    if (waiter.inherited == nullptr || core_.isHeld({waiter.inherited, waiter.inheritedLevel})) {
        return waiter.inherited != nullptr;
    }
    endPassed();
    return false;
}

/// A caller that leaves had inherited a hold: gives it to the next caller, or back to Redis. If it was lost before
/// its caller knew of it, the caller owes no unlock() for it.
void AcquireFlow::endPassed() noexcept
{
    const HoldRef inherited = std::move(waiter.inherited);
    if (inherited == nullptr) {
        return;
    }
    try {
        if (core_.isHeld({inherited, waiter.inheritedLevel})) {
            core_.releasing.endLevel(*inherited, waiter.inheritedLevel);
        } else if (order.endedBy == EndedBy::thread) {
            named.local.countLateUnlock(hold->owner);
        }
    } catch (...) { // out of memory: the hold ends with its lease
        return;
    }
}

/// Goes on when this waiter is the first and no hold of this client keeps it from asking, or when its request is under
/// way.
WaitStep AcquireFlow::judgeTurn()
{
    stage_ = Stage::awaitingTurn;
    const TimePoint now = core_.port.now();
    if (waiter.ended && !waiter.submitted) {
        return machine_ ? step(Failed{now, {Failure::fatal, *waiter.ended}}) // its request was not sent
                        : finish({.kind = AcquireResult::Kind::failed, .error = *waiter.ended});
    }
    const bool first = named.waiters.head() == &waiter;
    const TimePoint heldUntil = named.local.validUntil();
    const bool alone = asksForItself || named.traits().asking != Asking::first;
    const TimePoint aside = alone ? gapUntil() : asideUntil(first);
    const TimePoint from = alone ? aside : std::max(heldUntil, aside);
    if (waiter.submitted || ((alone || first) && now >= from)) {
        if (machine_) {
            return send();
        }
        machine_.emplace(settings(now));
        return step(Start{now});
    }
    if (now >= waitEnd()) {
        AcquireResult over;
        if (machine_) {
            const auto end = machine_->resume(Cancelled{now, Errc::shutdown}, core_.random);
            over = std::get<Done<AcquireResult>>(end).result;
        }
        return finish(withoutTurn(over));
    }
    waiter.aside = first && now < aside;
    if (waiter.aside && named.turn->isAside(now)) {
        named.turn->standsAside();
        core_.waking.subscribe(named, waiter); // others count the subscription, and it hears whether they use the time
    }
    return sleepUntil(alone || first ? std::min(waitEnd(), from) : waitEnd());
}

/// Until when a waiter that asks for itself, more than once, leaves the lock free for everybody. A group makes single
/// attempts, but comes back.
TimePoint AcquireFlow::gapUntil() const noexcept
{
    const bool comesBack = waiter.comesBack || order.endedBy == EndedBy::group;
    if (named.turn == nullptr || !comesBack || waiter.call->writer != HolderId{}) { // who writes reads at once
        return {};
    }
    const bool isJoined = named.traits().asking == Asking::each && !named.local.holds().empty();
    const TimePoint until = isJoined ? named.turn->closedUntil(core_.port.now()) : named.turn->gapUntil();
    return until < waitEnd() ? until : TimePoint{};
}

/// Until when this waiter leaves the lock to other clients. If its wait would be over before that, it asks at once.
TimePoint AcquireFlow::asideUntil(bool isFirst) const noexcept
{
    const TimePoint until = isFirst && named.turn != nullptr ? named.turn->asideUntil() : TimePoint{};
    return until < deadline_ ? until : TimePoint{};
}

WaitStep AcquireFlow::judgeAsking()
{
    if (takesBackUnsent(waiter.ended)) {
        return step(Failed{core_.port.now(), {Failure::fatal, *waiter.ended}});
    }
    return awaitAnswer(until_);
}

WaitStep AcquireFlow::judgeReleases()
{
    stage_ = Stage::behindReleases;
    if (waiter.submitted) {
        return send();
    }
    if (waiter.ended || core_.port.now() >= until_) {
        return step(*refusal_);
    }
    if (!named.releases.underWay()) {
        return send();
    }
    named.releasesWatched = true;
    return sleepUntil(until_);
}

WaitStep AcquireFlow::judgeSleep()
{
    stage_ = Stage::sleeping;
    const TimePoint now = core_.port.now();
    const bool watches = waiter.refusals.isOpen();
    named.releasesWatched = named.releasesWatched || watches;
    if (waiter.submitted) {
        return step(Notified{now});
    }
    if (waiter.ended) {
        return step(Cancelled{now, *waiter.ended});
    }
    if (const auto grant = std::exchange(waiter.grant, std::nullopt)) {
        return step(eventOfGrant(*grant, now));
    }
    if (watches && !named.releases.underWay()) {
        waiter.notified = false;
        return step(Notified{now});
    }
    // a waiter that asks for itself is let in too, but not in the time of others
    const TimePoint aside =
        std::max(waiter.asksFrom, waiter.notified && asksForItself ? asideUntil(true) : TimePoint{});
    if (waiter.notified && now >= aside) {
        waiter.notified = false;
        waiter.asksFrom = TimePoint{};
        return step(Notified{now});
    }
    const TimePoint until = isUnheard(named.listening, machine_->attempts()) ? std::min(until_, unheardUntil_) : until_;
    if (now >= until) {
        return step(TimerFired{now});
    }
    return sleepUntil(waiter.notified ? std::min(until, aside) : until);
}

/// What a message about a grant means. The grant counts from the sending of the request only if that is the waiter's
/// last one, which was refused: a message about an earlier request may be of a hold that is over.
AcquireFlow::Event AcquireFlow::eventOfGrant(const Grant& grant, TimePoint now) const noexcept
{
    const HoldCall& call = *waiter.call;
    if (!isQueued() || grant.request != call.sends || grant.lasts == grant.lasts.zero()) {
        return Notified{now};
    }
    return GrantHeard{now, call.sentAt, std::min({grant.lasts, waiter.lease, call.place})};
}

/// Does what the machine asks for.
WaitStep AcquireFlow::step(const Event& event)
{
    const auto action = machine_->resume(event, core_.random);
    if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
        if (done->result.kind == AcquireResult::Kind::failed && done->result.error == Errc::unreachable) {
            core_.silentSince = machine_->lastAnswer(); // for the next waiter: since when the server has been silent
        }
        return done->result.kind == AcquireResult::Kind::granted ? granted(done->result) : finish(done->result);
    }
    if (const auto* ask = std::get_if<Send>(&action)) {
        until_ = ask->until;
        waiter.refusals.start();
        return judgeTurn();
    }
    if (!machine_->mayBeHeld() && !hasPlace()) {
        core_.ends(waiter); // about to sleep: the client's end need not wait for it
    }
    if (const auto* policy = std::get_if<AskPolicy>(&action)) {
        stage_ = Stage::choosing;
        return {.kind = WaitStep::Kind::askPolicy, .refusals = policy->attempt, .order = &order};
    }
    if (const auto* subscription = std::get_if<Subscribe>(&action)) {
        core_.waking.subscribe(named, waiter);
        until_ = subscription->until;
    } else {
        until_ = std::get<SleepUntil>(action).until;
    }
    const bool waits = machine_->state() == AcquireMachine::State::waiting && !asksForItself;
    unheardUntil_ = waits ? core_.port.now() + pollPause(machine_->attempts(), core_.random) : TimePoint::max();
    return judgeSleep();
}

/// Sends the acquire, unless another thread has queued it already.
WaitStep AcquireFlow::send()
{
    stage_ = Stage::asking;
    core_.begins(waiter);
    ++waiter.attempts;
    if (!std::exchange(waiter.submitted, false)) {
        if (named.releases.underWay() && named.traits().asking == Asking::first) {
            (void)named.takeTurns(); // the release and this request may arrive together
        }
        waiter.call->prepare(HoldCall::Verb::lock, waiter.lease, 1);
        waiter.call->isHeard = core_.waking.hearsOfGrants(named, waiter);
        waiter.refusals.queued(named.releases);
        if (!submit(waiter.call)) {
            return step(Failed{core_.port.now(), {Failure::fatal, Errc::shutdown}});
        }
    }
    return awaitAnswer(until_);
}

WaitStep AcquireFlow::answered(const Outcome& outcome)
{
    const auto event = noting(core_.port, lockEventOf(*waiter.call, outcome, core_.port.now()), waiter.call->reply);
    noteAnswer(event);
    const LockAnswer* busy = busyAnswer(event);
    if (busy != nullptr && core_.config.observer) {
        noteBlocker(*busy);
    }
    if (busy != nullptr && busy->others && hasPlace()) {
        core_.waking.subscribeOwn(named, waiter);
    }
    if (busy == nullptr || isQueued() || !waiter.refusals.passesOver(named.releases)) {
        if (Turn* const turn = busy != nullptr ? named.takeTurns() : nullptr) {
            turn->refused(core_.port.now());
        }
        return step(event);
    }
    refusal_ = event;
    return judgeReleases();
}

WaitStep AcquireFlow::paused(const std::variant<Pause, Cancelled>& answer)
{
    if (stage_ != Stage::choosing) { // cancelled meanwhile
        return {};
    }
    const auto* pause = std::get_if<Pause>(&answer);
    const std::chrono::milliseconds place = placesKept * core_.config.pollInterval;
    if (named.kind == LockKind::writeLock && pause != nullptr && pause->span && *pause->span <= place / 2) {
        waiter.call->place = place; // keeps readers out as a writer does that waits: else they might never let it in
    }
    return std::visit(
        [this](auto event) {
            event.now = core_.port.now();
            return step(event);
        },
        answer);
}

WaitStep AcquireFlow::cancel()
{
    if (waiter.inherited != nullptr && stage_ != Stage::done) {
        queue_.leave(waiter); // so that it is not the next one to get the hold
        endPassed();
    }
    if (stage_ != Stage::done && waiter.submitted) {
        (void)look(); // another thread queued its request: it is under way
    }
    if (stage_ == Stage::done) {
        return {};
    }
    if (stage_ == Stage::confirming || stage_ == Stage::pausing) {
        return giveUpGrant(Errc::shutdown);
    }
    const bool unsent = takesBack();
    if (!machine_) {
        return finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown});
    }
    const TimePoint now = core_.port.now();
    return unsent ? step(Failed{now, {Failure::fatal, Errc::shutdown}}) : step(Cancelled{now, Errc::shutdown});
}

WaitStep AcquireFlow::sleepUntil(TimePoint until) noexcept
{
    waiter.parked = true;
    return sleep(until);
}

WaitStep AcquireFlow::finish(const AcquireResult& result) noexcept
{
    stage_ = Stage::done;
    result_ = result;
    return {};
}

std::error_code AcquireFlow::conclude(Acquired& acquired)
{
    using Kind = AcquireResult::Kind;
    const TimePoint now = core_.port.now();
    const auto waited = now - waiter.joined;
    const auto attempts = result_.attempts;
    if (waiter.inherited != nullptr) { // the observer was told when the hold was inherited
        acquired = {std::move(waiter.inherited), waiter.inheritedLevel, 0};
        return {};
    }
    const bool granted = result_.kind == Kind::granted && !core_.isClosing();
    if (granted) {
        hold->unanswered = machine_->mayBeHeld();
        hold->setDurability(confirmation_.wanted);
        core_.grant(*hold, level, result_);
        acquired = {hold, level, result_.token};
        core_.tellOfWhole(*hold, [waited, attempts](Observer& observer, const LockEvent& event) {
            observer.acquired(event, waited, attempts);
        });
        if (result_.pushMissed) {
            core_.tellOf(*hold, [](Observer& observer, const LockEvent& event) { observer.pushMissed(event); });
        }
        return {};
    }
    if (result_.mayBeHeld || result_.kind == Kind::granted || waiter.mustNotify || (attempts > 0 && hasPlace())) {
        core_.releasing.giveBack(*hold, saturatingAdd(now, waiter.lease));
    }
    if (result_.kind == Kind::contended) {
        if (core_.config.observer && !hold->isMember) {
            tellContended();
        }
        return {};
    }
    return result_.kind == Kind::granted ? Errc::shutdown : result_.error;
}

// --- What is known of the others ------------------------------------------------------------------------------------

/// Notes who has the lock, and until when at least.
void AcquireFlow::noteBlocker(const LockAnswer& busy)
{
    waiter.blocker = printable(LockAnswer::holderIn(waiter.call->reply));
    waiter.blockedUntil = busy.timeToLive ? saturatingAdd(core_.port.now(), *busy.timeToLive) : TimePoint{};
    if (!busy.timeToLive) {
        core_.tellOf(*hold, waiter.blocker,
                     [](Observer& observer, const LockEvent& event) { observer.keyWithoutTtl(event); });
    }
}

/// Tells the observer who keeps this waiter out. If it never asked Redis, that is a hold of its own client, or the
/// holder that the first waiter was told.
void AcquireFlow::tellContended() const
{
    const TimePoint now = core_.port.now();
    const Waiter* first = named.waiters.head();
    const Waiter& asked = waiter.blockedUntil == TimePoint{} && first != nullptr ? *first : waiter;
    std::string blocker = asked.blocker;
    TimePoint until = asked.blockedUntil;
    for (const auto& own : named.local.holds()) {
        if (now < own->validUntil()) {
            blocker = core_.holderText(*own);
            until = own->validUntil();
        }
    }
    core_.tellOf(*hold, blocker,
                 [left = leftUntil(until, now), waited = now - waiter.joined,
                  attempts = result_.attempts](Observer& observer, const LockEvent& event) {
                     observer.contended(event, left, waited, attempts);
                 });
}

/// Made when the turn comes: what is left of the wait counts.
AcquireMachine::Settings AcquireFlow::settings(TimePoint now) const noexcept
{
    const bool bounded = !order.wait.isOneAttempt() && deadline_ != TimePoint::max();
    const auto left = std::max<std::chrono::nanoseconds>(deadline_ - now, std::chrono::milliseconds(1));
    auto settings = core_.settingsFor(bounded ? Wait(left) : order.wait, waiter.lease);
    settings.byPolicy = order.retry != nullptr;
    settings.contended = !asksForItself && wasContended(now);
    if (core_.silentSince != TimePoint{}) {
        settings.silentSince = std::max(core_.silentSince, waiter.joined);
    }
    return settings;
}

/// Whether somebody is known to have had the lock since this waiter came: a hold of this client, or a holder that Redis
/// named to another waiter.
bool AcquireFlow::wasContended(TimePoint now) const noexcept
{
    const Waiter* first = named.waiters.head();
    const bool isBehindRefused = first != nullptr && first != &waiter && first->refused;
    return waiter.behindHold || isBehindRefused || named.answers != waiter.answersBefore ||
           now < named.local.validUntil();
}

/// The result of a wait that was over before its turn came. Contended: behind a hold of this client, or behind a waiter
/// to which Redis said that another holds the lock. Failed: behind a waiter that had no answer either.
AcquireResult AcquireFlow::withoutTurn(AcquireResult result) const noexcept
{
    const bool contended = wasContended(core_.port.now());
    result.kind = contended ? AcquireResult::Kind::contended : AcquireResult::Kind::failed;
    result.error = core_.silence;
    return result;
}

void AcquireFlow::noteAnswer(const Event& event) noexcept
{
    waiter.refused = busyAnswer(event) != nullptr;
    if (const auto* replied = std::get_if<Replied<LockAnswer>>(&event)) {
        ++named.answers;
        core_.silentSince = TimePoint{};
        if (named.turn != nullptr) {
            named.turn->answered(replied->now - replied->sentAt);
        }
    } else if (const auto* failed = std::get_if<Failed>(&event); failed && failed->fault.error == Errc::unreachable) {
        core_.silence = failed->fault.error;
    }
}

} // namespace redislock::detail
