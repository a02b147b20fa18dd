// Acquiring: the calling thread drives an AcquireMachine.
#include "runtime/attempt.hpp"
#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"
#include "runtime/policy.hpp"
#include "runtime/process.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

namespace {

std::atomic<std::uint64_t> lastHolder{0};

} // namespace

std::error_code Engine::acquire(NamedLock& named, const AcquireOrder& order, Acquired& acquired)
{
    if (!order.lease.isValid()) {
        return Errc::invalidArgument;
    }
    if (const auto refused = refusal()) {
        return *refused;
    }
    start();
    Lock lock(mutex_);
    if (Hold* own = validHold(named)) {
        return named.traits().isReentrant ? acquireNested(lock, *own, order, acquired) : Errc::wouldDeadlock;
    }
    HolderId writer{};
    if (const Hold* other = otherHalf(named)) {
        if (named.kind == LockKind::writeLock) {
            return Errc::
                wouldDeadlock; // it would wait for its own end of reading, and so would everybody who tries that
        }
        writer = other->id;
    }
    return acquireOutermost(lock, named, order, writer, acquired);
}

/// This thread's valid hold of the other half of a read/write lock; null without one.
Hold* Engine::otherHalf(const NamedLock& named)
{
    if (named.kind != LockKind::readLock && named.kind != LockKind::writeLock) {
        return nullptr;
    }
    const LockKind other = named.kind == LockKind::readLock ? LockKind::writeLock : LockKind::readLock;
    const auto found = names_.find(NameKey{other, named.name});
    if (found == names_.end() || (*found)->local.of(currentThread()) == nullptr) {
        return nullptr;
    }
    return validHold(**found); // its holds keep the name
}

/// This thread's hold, if it is valid; one whose time is over is lost here if the watchdog did not come to it yet.
Hold* Engine::validHold(NamedLock& named)
{
    Hold* own = named.local.of(currentThread());
    if (own != nullptr && BootClock::now() >= own->validUntil()) {
        lose(*own);
        own = nullptr;
    }
    return own;
}

HoldRef Engine::takeHold(NamedLock& named)
{
    HoldRef hold;
    if (idleHolds_.empty()) {
        hold = new Hold;
    } else {
        hold = std::move(idleHolds_.back());
        idleHolds_.pop_back();
    }
    hold->id = HolderId{lastHolder.fetch_add(1, std::memory_order_relaxed) + 1};
    hold->owner = currentThread();
    hold->lane = Lane::commands;
    hold->lock = named.shared_from_this();
    hold->phase.store(Hold::Phase::acquiring, std::memory_order_relaxed);
    return hold;
}

/// Keeps a hold that nobody else uses any more for another one. @return what must be let go of after the mutex.
std::shared_ptr<NamedLock> Engine::recycle(HoldRef&& hold) noexcept
{
    if (hold == nullptr || hold->references.load(std::memory_order_acquire) != 1 || idleHolds_.size() == maxIdle) {
        return nullptr;
    }
    auto named = std::move(hold->lock);
    hold->levels.clear();
    hold->stopAtRisk = hold->stopLost = std::stop_source(std::nostopstate);
    hold->atRiskTold = hold->heldTooLong = false;
    hold->renewal = RenewMachine();
    hold->grantedAt = TimePoint{};
    idleHolds_.push_back(std::move(hold)); // there is room
    return named;
}

std::shared_ptr<HoldCall> Engine::takeCall(Hold& hold)
{
    std::shared_ptr<HoldCall> call;
    if (idleCalls_.empty()) {
        call = std::make_shared<HoldCall>();
    } else {
        call = std::move(idleCalls_.back());
        idleCalls_.pop_back();
    }
    call->attach(&hold);
    call->outcome = {};
    call->hurried = false;
    call->place = {};
    call->writer = {};
    return call;
}

/// One that is still on a connection stays with that. Otherwise others who have it only have to let go of it.
void Engine::putBack(std::shared_ptr<HoldCall> call) noexcept
{
    if (!call->pending && call->mode != Call::Mode::abandoned && idleCalls_.size() < maxIdle) {
        call->detach();
        idleCalls_.push_back(std::move(call)); // there is room
    }
}

AcquireMachine::Settings Engine::settingsFor(Wait wait, Lease lease) const noexcept
{
    AcquireMachine::Settings settings;
    settings.lease = leaseTime(lease);
    settings.wait = wait;
    settings.pollInterval = config_.pollInterval;
    settings.commandTimeout = config_.commandTimeout;
    settings.unreachableAfter = config_.unreachableAfter;
    return settings;
}

/// Of an attempt whose turn comes only now.
AcquireMachine::Settings Engine::settingsOf(const Attempt& attempt, TimePoint now) const noexcept
{
    const bool bounded = !attempt.order.wait.isOneAttempt() && attempt.deadline != TimePoint::max();
    const auto left = std::max<std::chrono::nanoseconds>(attempt.deadline - now, std::chrono::milliseconds(1));
    auto settings = settingsFor(bounded ? Wait(left) : attempt.order.wait, attempt.order.lease);
    settings.byPolicy = attempt.order.retry != nullptr;
    settings.contended = !attempt.asksForItself && wasContended(attempt.named, attempt.waiter, now);
    if (attempt.named.silentSince != TimePoint{}) {
        settings.silentSince = std::max(attempt.named.silentSince, attempt.waiter.joined);
    }
    return settings;
}

std::error_code Engine::acquireOutermost(Lock& lock, NamedLock& named, const AcquireOrder& order, HolderId writer,
                                         Acquired& acquired)
{
    auto hold = takeHold(named);
    std::error_code error;
    {
        Attempt attempt(*this, named, hold, order);
        attempt.waiter.call->writer = writer;
        attempt.level = hold->levels.add(order.lease, order.endedBy);
        error = conclude(named, attempt, drive(lock, named, attempt), acquired);
    }
    std::shared_ptr<NamedLock> rest;
    if (acquired.hold == nullptr) {
        rest = recycle(std::move(hold));
    }
    lock.unlock(); // before `rest` and the hold are let go of
    return error;
}

std::error_code Engine::conclude(NamedLock& named, Attempt& attempt, const AcquireResult& result, Acquired& acquired)
{
    using Kind = AcquireResult::Kind;
    Hold& hold = *attempt.hold;
    const auto waited = BootClock::now() - attempt.waiter.joined;
    const auto attempts = result.attempts;
    const bool granted = result.kind == Kind::granted && !closing_;
    if (granted) {
        named.silentSince = TimePoint{};
        grant(hold, attempt.level, result);
        acquired = {attempt.hold, attempt.level, result.token};
        tellOf(hold, [=, missed = result.pushMissed](Observer& observer, const LockEvent& event) {
            observer.acquired(event, waited, attempts);
            if (missed) {
                observer.pushMissed(event);
            }
        });
        return {};
    }
    if (result.mayBeHeld || result.kind == Kind::granted || (attempts > 0 && attempt.hasPlace())) {
        giveBack(hold, saturatingAdd(BootClock::now(), leaseTime(attempt.order.lease)));
    }
    if (result.kind == Kind::contended) {
        tellOf(hold, [=](Observer& observer, const LockEvent& event) { observer.contended(event, waited, attempts); });
        return {};
    }
    return result.kind == Kind::granted ? Errc::shutdown : result.error;
}

void Engine::noteAnswer(NamedLock& named, Waiter& waiter, const AcquireMachine::Event& event) noexcept
{
    waiter.refused = busyAnswer(event) != nullptr;
    if (const auto* replied = std::get_if<Replied<LockAnswer>>(&event)) {
        named.answeredAt = replied->now;
    }
}

/// What one waiter found out of the server, for the next.
const AcquireResult& Engine::noteSilence(NamedLock& named, const AcquireMachine& machine, const AcquireResult& result)
{
    if (result.kind == AcquireResult::Kind::failed && result.error == Errc::unreachable) {
        named.silentSince = machine.lastAnswer();
    }
    return result;
}

/// Whether another is known to have had the lock since this waiter came: a hold of this client, or whoever Redis told another waiter
/// of.
bool Engine::wasContended(const NamedLock& named, const Waiter& waiter, TimePoint now) noexcept
{
    const Waiter* first = named.waiters.head();
    const bool isBehindRefused = first != nullptr && first != &waiter && first->refused;
    return waiter.behindHold || isBehindRefused || named.answeredAt >= waiter.joined || now < named.local.validUntil();
}

/// The wait was over before the turn came: behind a hold of this client, or behind a waiter to whom Redis said that another holds
/// it; or behind one that had no answer either.
AcquireResult Engine::withoutTurn(const NamedLock& named, const Waiter& waiter, AcquireResult result)
{
    const bool contended = wasContended(named, waiter, BootClock::now());
    result.kind = contended ? AcquireResult::Kind::contended : AcquireResult::Kind::failed;
    result.error = Errc::unreachable;
    return result;
}

/// Waits for the turn, then drives the machine until it is done.
AcquireResult Engine::drive(Lock& lock, NamedLock& named, Attempt& attempt)
{
    Waiter& waiter = attempt.waiter;
    const auto awaitOwnTurn = [&] {
        return attempt.asksForItself && !waiter.ended ? Turn::mine : awaitTurn(lock, named, waiter, attempt.deadline);
    };
    if (const Turn turn = awaitOwnTurn(); turn != Turn::mine) {
        AcquireResult result{.error = Errc::shutdown};
        return turn == Turn::over ? withoutTurn(named, waiter, result) : result;
    }
    const TimePoint now = BootClock::now();
    AcquireMachine machine(settingsOf(attempt, now));
    AcquireMachine::Event event = Start{now};
    for (;;) {
        const auto action = machine.resume(event, random_);
        if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
            return noteSilence(named, machine, done->result);
        }
        if (const auto* send = std::get_if<Send>(&action)) {
            const Turn turn = awaitOwnTurn();
            if (turn == Turn::mine) {
                event = ask(lock, named, waiter, send->until);
            } else if (turn == Turn::ended) {
                event = Failed{BootClock::now(), {Failure::fatal, Errc::shutdown}}; // and was not sent
            } else {
                event = Cancelled{BootClock::now(), Errc::shutdown};
                const auto over = std::get<Done<AcquireResult>>(machine.resume(event, random_)).result;
                return withoutTurn(named, waiter, over);
            }
            continue;
        }
        settle(attempt, machine);
        if (const auto* subscription = std::get_if<Subscribe>(&action)) {
            subscribe(named, waiter);
            event = sleep(lock, waiter, subscription->until);
            continue;
        }
        if (const auto* policy = std::get_if<AskPolicy>(&action)) {
            event = askPolicy(lock, attempt, policy->attempt);
            continue;
        }
        event = sleep(lock, waiter, std::get<SleepUntil>(action).until);
    }
}

/// A waiter is about to sleep: the client's end need not wait for it, unless something of it may be in Redis.
void Engine::settle(Attempt& attempt, const AcquireMachine& machine) noexcept
{
    if (!machine.mayBeHeld() && !attempt.hasPlace()) {
        ends(attempt.waiter);
    }
}

/// Asks the policy, on this thread and under no mutex.
AcquireMachine::Event Engine::askPolicy(Lock& lock, const Attempt& attempt, std::uint32_t refusals)
{
    Random random(random_.next());
    lock.unlock();
    const auto answer = pauseOf(*attempt.order.retry, refusals, random, attempt.order.thrown);
    lock.lock();
    return std::visit([](const auto& event) { return AcquireMachine::Event(event); }, answer);
}

/// Waits until this waiter is the first and no hold of this client keeps it from asking, or until its request is under way.
Engine::Turn Engine::awaitTurn(Lock& lock, NamedLock& named, Waiter& waiter, TimePoint deadline)
{
    for (;;) {
        if (waiter.submitted) {
            return Turn::mine;
        }
        if (waiter.ended) {
            return Turn::ended;
        }
        const bool first = named.waiters.head() == &waiter;
        const TimePoint heldUntil = named.local.validUntil();
        const TimePoint now = BootClock::now();
        if (named.traits().asking != Asking::first || (first && now >= heldUntil)) {
            return Turn::mine;
        }
        if (now >= deadline) {
            return Turn::over;
        }
        park(lock, waiter, first ? std::min(deadline, heldUntil) : deadline);
    }
}

void Engine::park(Lock& lock, Waiter& waiter, TimePoint until)
{
    waiter.parked = true;
    lock.unlock();
    waiter.signal().waitUntil(until);
    lock.lock();
    waiter.parked = false;
}

/// Sends the acquire (unless somebody did already) and waits for its answer.
AcquireMachine::Event Engine::ask(Lock& lock, NamedLock& named, Waiter& waiter, TimePoint until)
{
    HoldCall& call = *waiter.call;
    waiter.refusals.start();
    for (;;) {
        begins(waiter);
        if (!std::exchange(waiter.submitted, false)) {
            call.prepare(HoldCall::Verb::lock, waiter.lease, 1, Call::Mode::awaited);
            waiter.refusals.queued(named.releases);
            commands_->enqueue(waiter.call);
        }
        lock.unlock();
        const Outcome outcome = commands_->await(call, until);
        call.signal.clearDone();
        lock.lock();
        auto event = lockEventOf(call, outcome, BootClock::now());
        noteAnswer(named, waiter, event);
        const LockAnswer* busy = busyAnswer(event);
        if (busy != nullptr && !busy->timeToLive) {
            tellOf(waiter.hold, [](Observer& observer, const LockEvent& e) { observer.keyWithoutTtl(e); });
        }
        if (busy == nullptr || !waiter.refusals.passesOver(named.releases) ||
            !awaitReleases(lock, named, waiter, until)) {
            return event;
        }
    }
}

/// @return whether there is time to ask again.
bool Engine::awaitReleases(Lock& lock, NamedLock& named, Waiter& waiter, TimePoint until)
{
    while (!waiter.submitted) {
        if (waiter.ended || BootClock::now() >= until) {
            return false;
        }
        if (!named.releases.underWay()) {
            return true;
        }
        ++named.releaseWatchers;
        park(lock, waiter, until);
        --named.releaseWatchers;
    }
    return true;
}

/// Sleeps until notified or `until`.
AcquireMachine::Event Engine::sleep(Lock& lock, Waiter& waiter, TimePoint until)
{
    NamedLock& named = *waiter.hold.lock;
    const std::uint32_t watches = waiter.refusals.isOpen() ? 1 : 0;
    for (;;) {
        const TimePoint now = BootClock::now();
        if (waiter.submitted) {
            return Notified{now};
        }
        if (waiter.ended) {
            return Cancelled{now, *waiter.ended};
        }
        if (std::exchange(waiter.notified, false) || (watches > 0 && !named.releases.underWay())) {
            return Notified{now};
        }
        if (now >= until) {
            return TimerFired{now};
        }
        named.releaseWatchers += watches;
        park(lock, waiter, until);
        named.releaseWatchers -= watches;
    }
}

void Engine::grant(Hold& hold, std::uint32_t level, const AcquireResult& result)
{
    try {
        hold.levels.granted(level, result.validUntil);
        if (hold.phase.load(std::memory_order_relaxed) == Hold::Phase::acquiring) {
            hold.grantedAt = BootClock::now();
            hold.lock->local.add(&hold);
        }
        hold.phase.store(Hold::Phase::held, std::memory_order_release);
        hold.updateDeadline();
        background_->watchdog.watch(hold, result.sentAt);
    } catch (...) { // out of memory: what cannot be watched must not be held
        hold.phase.store(Hold::Phase::ended, std::memory_order_release);
        background_->watchdog.forget(hold);
        const auto removed = hold.lock->local.remove(hold);
        giveBack(hold, result.validUntil);
        throw;
    }
}

/// Another level for the thread's own hold. It waits for nobody, and finds out if the hold is gone.
std::error_code Engine::acquireNested(Lock& lock, Hold& own, const AcquireOrder& order, Acquired& acquired)
{
    const HoldRef hold(&own);
    auto call = takeCall(*hold);
    const std::uint32_t level = hold->levels.add(order.lease, order.endedBy);
    auto settings = settingsFor(order.wait, order.lease);
    settings.holdDeadline = hold->validUntil();
    AcquireMachine machine(settings);
    AcquireMachine::Event event = Start{BootClock::now()};
    AcquireResult result;
    for (bool done = false; !done;) {
        const auto action = machine.resume(event, random_);
        if (const auto* end = std::get_if<Done<AcquireResult>>(&action)) {
            result = end->result;
            done = true;
        } else if (const auto* send = std::get_if<Send>(&action)) {
            // Redis keeps the longer of two leases, unless somebody took the key's time to live away
            const auto outer = hold->levels.leaseToLeave(BootClock::now(), config_.watchdogTimeout);
            call->prepare(HoldCall::Verb::lock, std::max(settings.lease, outer), hold->levels.count(),
                          Call::Mode::awaited);
            commands_->enqueue(call);
            lock.unlock();
            const Outcome outcome = commands_->await(*call, send->until);
            call->signal.clearDone();
            lock.lock();
            event = lockEventOf(*call, outcome, BootClock::now());
        } else if (const auto* pause = std::get_if<SleepUntil>(&action)) {
            lock.unlock();
            call->signal.waitUntil(pause->until);
            lock.lock();
            event = TimerFired{BootClock::now()};
        } else { // a nested acquire is never refused for another holder
            event = Cancelled{BootClock::now(), Errc::badReply};
        }
    }
    putBack(std::move(call));
    if (hold->phase == Hold::Phase::held &&
        (result.kind == AcquireResult::Kind::lost || BootClock::now() >= hold->validUntil())) {
        hold->levels.remove(level);
        lose(*hold);
    }
    if (hold->phase != Hold::Phase::held) {
        if (order.endedBy == EndedBy::thread && hold->levels.remove(level)) {
            hold->lock->local.settle(hold->owner); // the loss counted this level too
        }
        lock.unlock();
        return closing_ ? Errc::shutdown : Errc::lost;
    }
    if (result.kind == AcquireResult::Kind::granted) {
        grant(*hold, level, result);
        acquired = {hold, level, result.token};
    } else {
        hold->levels.remove(level);
        correctCount(*hold, result.mayBeHeld);
    }
    lock.unlock(); // before the hold is let go of
    if (acquired.hold == nullptr) {
        commands_->flush(); // the correction
    }
    return result.kind == AcquireResult::Kind::failed ? std::error_code(result.error) : std::error_code();
}

} // namespace redislock::detail
