// Releasing: by the calling thread, which waits for the answer, or unawaited, by whoever reads the reply.
#include "redislock/detail/logic/count_correction.hpp"
#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"
#include "runtime/process.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace redislock::detail {

Unlocked Engine::unlock(NamedLock& named, std::error_code& ec)
{
    ec.clear();
    if (isForked()) {
        return Unlocked::alreadyLost;
    }
    std::shared_ptr<NamedLock> rest; // these two are let go of after the mutex
    HoldRef hold;
    Lock lock(mutex_);
    if (Hold* own = validHold(named)) {
        hold = own;
        if (const auto level = hold->levels.innermostOfThread(); level != 0) {
            const Unlocked how = endLevel(lock, *hold, level);
            if (lock.owns_lock()) {
                rest = recycle(std::move(hold));
            }
            return how;
        }
    }
    if (!named.local.settle(currentThread())) {
        ec = Errc::notHeld;
    }
    return Unlocked::alreadyLost;
}

Unlocked Engine::release(Acquired acquired)
{
    if (isForked()) {
        return Unlocked::alreadyLost;
    }
    std::shared_ptr<NamedLock> rest; // these two are let go of after the mutex
    auto hold = std::move(acquired.hold);
    Lock lock(mutex_);
    if (hold->phase == Hold::Phase::held && BootClock::now() >= hold->validUntil()) {
        lose(*hold);
    }
    if (hold->phase != Hold::Phase::held) {
        return Unlocked::alreadyLost;
    }
    const Unlocked how = endLevel(lock, *hold, acquired.level);
    if (lock.owns_lock()) {
        rest = recycle(std::move(hold));
    }
    return how;
}

void Engine::releaseUnawaited(const Acquired& acquired) noexcept
{
    if (isForked()) {
        return;
    }
    try {
        Lock lock(mutex_);
        Hold& hold = *acquired.hold;
        if (hold.phase != Hold::Phase::held) {
            return;
        }
        if (BootClock::now() >= hold.validUntil()) {
            return lose(hold);
        }
        endUnawaited(hold, acquired.level);
        lock.unlock();
        commands_->flush();
    } catch (...) { // out of memory: the hold is no longer renewed and ends with its lease
        return;
    }
}

/// Ends a level of a valid hold and waits for the answer.
Unlocked Engine::endLevel(Lock& lock, Hold& hold, std::uint32_t level)
{
    if (onOwnThread()) {
        const bool nested = endUnawaited(hold, level);
        lock.unlock();
        commands_->flush();
        return nested ? Unlocked::stillHeld : Unlocked::unconfirmed;
    }
    hold.levels.remove(level);
    if (hold.levels.count() > 0 && BootClock::now() < hold.levels.validUntil()) {
        return endNested(lock, hold);
    }
    loseRest(hold);
    return endOutermost(lock, hold);
}

/// Moves the hold in Redis to the levels that are left.
Unlocked Engine::endNested(Lock& lock, Hold& hold)
{
    const TimePoint validUntil = hold.validUntil();
    const TimePoint now = BootClock::now();
    hold.updateDeadline();
    background_->watchdog.watch(hold, now);
    auto call = takeCall(hold);
    const auto lease = hold.levels.leaseToLeave(now, config_.watchdogTimeout);
    call->prepare(HoldCall::Verb::unlock, lease, hold.levels.count(), Call::Mode::awaited);
    auto settings = releaseSettings(validUntil);
    settings.level = Level::nested;
    ReleaseMachine machine(settings);
    const Unlocked how = driveRelease(lock, call, machine, nullptr);
    putBack(std::move(call));
    if (hold.phase != Hold::Phase::held) {
        return how;
    }
    if (how == Unlocked::alreadyLost) {
        lose(hold);
    } else if (how == Unlocked::unconfirmed) {
        correctCount(hold, true); // goes on in the background
        lock.unlock();
        commands_->flush();
    }
    return how;
}

/// Frees the lock. From here on it does not count as held.
Unlocked Engine::endOutermost(Lock& lock, Hold& hold)
{
    const TimePoint validUntil = hold.validUntil();
    giveUp(hold);
    auto call = takeCallToRelease(hold);
    if (call == nullptr) {
        releaseAnswered(hold, Unlocked::unconfirmed);
        return Unlocked::unconfirmed;
    }
    call->prepare(HoldCall::Verb::unlock, std::chrono::milliseconds(1), 0, Call::Mode::awaited);
    ReleaseMachine machine(releaseSettings(validUntil));
    auto next = handOnFairly(*hold.lock, Lane::commands);
    const Unlocked how = driveRelease(lock, call, machine, std::move(next));
    noteAudience(*call);
    putBack(std::move(call));
    if (how == Unlocked::unconfirmed && BootClock::now() < validUntil && !closing_) {
        machine.goOnInBackground();
        startRelease(hold, machine, Behind::nobody);
        lock.unlock();
        commands_->flush();
    } else {
        releaseAnswered(hold, how);
    }
    return how;
}

/// Drives a prepared release to its end. @param behind is queued right behind the first try.
Unlocked Engine::driveRelease(Lock& lock, const std::shared_ptr<HoldCall>& call, ReleaseMachine& machine,
                              std::shared_ptr<HoldCall> behind)
{
    ReleaseMachine::Event event = Start{BootClock::now()};
    for (;;) {
        const auto action = machine.resume(event, random_);
        if (const auto* done = std::get_if<Done<Unlocked>>(&action)) {
            return done->result;
        }
        if (const auto* send = std::get_if<Send>(&action)) {
            call->mode = Call::Mode::awaited;
            using First = BlockingConnection::First;
            const First first = behind == nullptr ? First::lead : First::follow;
            commands_->enqueue(call, std::exchange(behind, nullptr));
            lock.unlock();
            const Outcome outcome = commands_->await(*call, send->until, first);
            call->signal.clearDone();
            lock.lock();
            event = eventOf<ReleaseMachine::Event, UnlockAnswer>(*call, outcome, BootClock::now(), call->level());
            continue;
        }
        const TimePoint until = std::get<SleepUntil>(action).until;
        lock.unlock();
        call->signal.waitUntil(until);
        lock.lock();
        event = TimerFired{BootClock::now()};
    }
}

/// Ends a level of a valid hold without waiting; flush() must follow. @return whether other levels are left: then
/// `whenReleased` is not called.
bool Engine::endUnawaited(Hold& hold, std::uint32_t level, std::function<void(Unlocked)> whenReleased)
{
    const TimePoint validUntil = hold.validUntil();
    hold.levels.remove(level);
    if (hold.levels.count() > 0 && BootClock::now() < hold.levels.validUntil()) {
        hold.updateDeadline();
        background_->watchdog.watch(hold, BootClock::now());
        correctCount(hold, true);
        return true;
    }
    loseRest(hold);
    giveUp(hold);
    startRelease(hold, unawaitedRelease(validUntil), Behind::nextWaiter, std::move(whenReleased));
    return false;
}

/// A level ended, or may have been granted to nobody: tells Redis the true count, unawaited. The last level ends the hold.
void Engine::correctCount(Hold& hold, bool unknown)
{
    if (hold.levels.count() == 0) {
        const TimePoint validUntil = hold.validUntil();
        giveUp(hold);
        return startRelease(hold, unawaitedRelease(validUntil), Behind::nextWaiter);
    }
    if (unknown) {
        auto call = takeCall(hold);
        // while the hold is held, which its renewals make longer
        call->release = ReleaseMachine({.validUntil = TimePoint::max(),
                                        .giveUpAfter = TimePoint::max(),
                                        .level = Level::nested,
                                        .asker = Asker::background});
        tellCount(call, Start{BootClock::now()});
    }
}

/// One step of telling Redis the count of a held hold. The caller has another reference to the hold.
void Engine::tellCount(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event)
{
    Hold& hold = call->hold();
    const auto action = call->release.resume(event, random_);
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        after(pause->until, [this, call] {
            const HoldRef keep(&call->hold()); // let go of after the mutex
            {
                const Lock lock(mutex_);
                if (keep->phase == Hold::Phase::held && keep->levels.count() == call->count()) {
                    tellCount(call, TimerFired{BootClock::now()});
                } else {
                    putBack(call);
                }
            }
            commands_->flush();
        });
        return;
    }
    if (std::holds_alternative<Send>(action)) {
        call->prepare(HoldCall::Verb::unlock, hold.levels.leaseToLeave(BootClock::now(), config_.watchdogTimeout),
                      hold.levels.count(), Call::Mode::detached);
        if (submit(call)) {
            return;
        }
    }
    putBack(call);
}

/// The hold no longer counts as held, here.
void Engine::giveUp(Hold& hold)
{
    hold.phase.store(Hold::Phase::ended, std::memory_order_release);
    background_->watchdog.forget(hold);
    hold.lock->forEachKind([](NamedLock& named) { named.releases.begin(); });
    begins();
    // the caller has another reference: this cannot be the last
    (void)hold.lock->local.remove(hold);
}

void Engine::giveBack(Hold& hold, TimePoint until)
{
    giveUp(hold);
    startRelease(hold, unawaitedRelease(until), Behind::nobody);
    post([this] { commands_->flush(); });
}

ReleaseMachine Engine::unawaitedRelease(TimePoint validUntil) noexcept
{
    return ReleaseMachine({.validUntil = validUntil, .giveUpAfter = TimePoint::max(), .asker = Asker::background});
}

/// @param machine not started yet.
void Engine::startRelease(Hold& hold, const ReleaseMachine& machine, Behind behind,
                          std::function<void(Unlocked)> whenReleased)
{
    const auto call = takeCallToRelease(hold);
    if (call == nullptr) {
        releaseAnswered(hold, Unlocked::unconfirmed);
        if (whenReleased) {
            whenReleased(Unlocked::unconfirmed);
        }
        return;
    }
    call->release = machine;
    call->whenReleased = std::move(whenReleased);
    call->prepare(HoldCall::Verb::unlock, std::chrono::milliseconds(1), 0, Call::Mode::detached);
    step(call, Start{BootClock::now()}, behind == Behind::nextWaiter ? handOnFairly(*hold.lock, hold.lane) : nullptr);
}

/// Null when there is no memory: nothing is sent then, and the hold, which was given up, ends with its lease.
std::shared_ptr<HoldCall> Engine::takeCallToRelease(Hold& hold) noexcept
{
    try {
        return takeCall(hold);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

/// One step of an unawaited release. The caller has another reference to its hold. @return whether it is over.
bool Engine::step(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event,
                  std::shared_ptr<HoldCall> behind)
{
    Hold& hold = call->hold();
    const auto action = call->release.resume(event, random_);
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        if (call->whenReleased && call->release.metFatal()) {
            std::exchange(call->whenReleased, nullptr)(Unlocked::unconfirmed); // as a thread that waits is told
        }
        after(pause->until, [this, call] {
            const HoldRef keep(&call->hold()); // let go of after the mutex
            {
                const Lock lock(mutex_);
                step(call, TimerFired{BootClock::now()}, nullptr);
            }
            commands_->flush();
        });
        return false;
    }
    auto how = Unlocked::unconfirmed;
    if (const auto* done = std::get_if<Done<Unlocked>>(&action)) {
        noteAudience(*call);
        how = done->result;
    } else if (submit(call, std::move(behind))) {
        return false;
    } // else shut down: its lease ends it
    const auto tell = std::exchange(call->whenReleased, nullptr);
    putBack(call);
    releaseAnswered(hold, how);
    if (tell) {
        tell(how);
    }
    return true;
}

/// The end of a call that nobody waits for. Any thread, no lock held.
void Engine::callFinished(HoldCall& call) noexcept
{
    // these two are let go of after the mutex, and last: they may be what keeps this alive
    std::shared_ptr<NamedLock> rest;
    HoldRef hold(&call.hold());
    try {
        if (call.verb() == HoldCall::Verb::renew) {
            return background_->watchdog.renewed(call);
        }
        AsyncWaiter* asking = nullptr; // lives on this thread
        {
            const Lock lock(mutex_);
            if (call.verb() == HoldCall::Verb::lock) {
                asking = call.asker;
            } else if (call.count() > 0) {
                nestedAnswered(call);
            } else {
                const auto event =
                    eventOf<ReleaseMachine::Event, UnlockAnswer>(call, call.outcome, BootClock::now(), call.level());
                if (step(call.shared_from_this(), event, nullptr)) {
                    rest = recycle(std::move(hold));
                }
            }
        }
        if (asking != nullptr) {
            asking->answered(call);
        }
        commands_->flush();
    } catch (...) { // out of memory: the lock ends with its lease
        return;
    }
}

/// An unawaited release of a nested level was answered, or not: then it is repeated, unless the count has changed since.
void Engine::nestedAnswered(HoldCall& call)
{
    Hold& hold = call.hold(); // the caller has it too
    const auto event = eventOf<ReleaseMachine::Event, UnlockAnswer>(call, call.outcome, BootClock::now(), call.level());
    if (hold.phase == Hold::Phase::held) {
        switch (countAnswer(event, call.count(), hold.levels.count(), BootClock::now() < hold.validUntil())) {
        case CountAnswer::done:
            break;
        case CountAnswer::again:
            return tellCount(call.shared_from_this(), event);
        case CountAnswer::lost:
            lose(hold);
            break;
        }
    }
    putBack(call.shared_from_this());
}

/// A release is over, one way or the other.
void Engine::releaseAnswered(Hold& hold, Unlocked how)
{
    NamedLock& named = *hold.lock;
    ends();
    if (named.handOver.takeRace()) {
        wakeNext(named);
    }
    named.forEachKind([](NamedLock& each) {
        each.releases.end();
        if (each.releaseWatchers > 0 && !each.releases.underWay()) {
            const auto look = [](Waiter& waiter) { waiter.look(); };
            each.waiters.forEach(look);
            each.askers.forEach(look);
        }
    });
    if (hold.grantedAt == TimePoint{}) {
        return; // never held: what an acquire without an answer may have left
    }
    const auto held = BootClock::now() - std::exchange(hold.grantedAt, TimePoint{});
    tellOf(hold, [how, held](Observer& observer, const LockEvent& event) {
        observer.released(event, how, held);
        if (how == Unlocked::unconfirmed) {
            observer.unconfirmed(event);
        }
    });
}

ReleaseMachine::Settings Engine::releaseSettings(TimePoint validUntil) const noexcept
{
    return {.validUntil = validUntil, .giveUpAfter = saturatingAdd(BootClock::now(), config_.unreachableAfter)};
}

} // namespace redislock::detail
