// Acquiring: the calling thread drives an AcquireMachine.
#include "runtime/acquire_flow.hpp"
#include "runtime/drive.hpp"
#include "runtime/engine.hpp"
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

AcquireMachine::Settings Engine::settingsFor(Wait wait, std::chrono::milliseconds lease) const noexcept
{
    AcquireMachine::Settings settings;
    settings.lease = lease;
    settings.wait = wait;
    settings.pollInterval = config_.pollInterval;
    settings.commandTimeout = config_.commandTimeout;
    settings.unreachableAfter = config_.unreachableAfter;
    return settings;
}

std::error_code Engine::acquireOutermost(Lock& lock, NamedLock& named, const AcquireOrder& order, HolderId writer,
                                         Acquired& acquired)
{
    auto hold = takeHold(named);
    std::error_code error;
    {
        AcquireFlow flow(*this, named, hold, order, nullptr);
        flow.waiter.call->writer = writer;
        drive(lock, flow);
        error = conclude(flow, acquired);
    }
    std::shared_ptr<NamedLock> rest;
    if (acquired.hold == nullptr) {
        rest = recycle(std::move(hold));
    }
    lock.unlock(); // before `rest` and the hold are let go of
    return error;
}

/// What the end of an acquire means. @param acquired what was granted
std::error_code Engine::conclude(AcquireFlow& flow, Acquired& acquired)
{
    using Kind = AcquireResult::Kind;
    const AcquireResult& result = flow.result();
    Hold& hold = *flow.hold;
    const auto waited = BootClock::now() - flow.waiter.joined;
    const auto attempts = result.attempts;
    const bool granted = result.kind == Kind::granted && !closing_;
    if (granted) {
        flow.named.silentSince = TimePoint{};
        grant(hold, flow.level, result);
        acquired = {flow.hold, flow.level, result.token};
        tellOf(hold, [=, missed = result.pushMissed](Observer& observer, const LockEvent& event) {
            observer.acquired(event, waited, attempts);
            if (missed) {
                observer.pushMissed(event);
            }
        });
        return {};
    }
    if (result.mayBeHeld || result.kind == Kind::granted || (attempts > 0 && flow.hasPlace())) {
        giveBack(hold, saturatingAdd(BootClock::now(), leaseTime(flow.order.lease)));
    }
    if (result.kind == Kind::contended) {
        tellOf(hold, [=](Observer& observer, const LockEvent& event) { observer.contended(event, waited, attempts); });
        return {};
    }
    return result.kind == Kind::granted ? Errc::shutdown : result.error;
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
    auto settings = settingsFor(order.wait, leaseTime(order.lease));
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
