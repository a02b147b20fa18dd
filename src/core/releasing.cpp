#include "core/releasing.hpp"

#include "core/core.hpp"
#include "core/machine/release_machine.hpp"
#include "link/request/calls.hpp"
#include "wire/assert.hpp"

#include <new>
#include <utility>

namespace redislock::detail {

namespace {

ReleaseMachine::Event unlockEventOf(const HoldCall& call, TimePoint now)
{
    return eventOf<ReleaseMachine::Event, UnlockAnswer>(call, call.outcome, now, call.level());
}

} // namespace

Unlocked Releasing::endLevel(Hold& hold, std::uint32_t level, std::function<void(Unlocked)> whenReleased)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::held && level != 0);
    if (core_.inheritance.letInherit(hold, level)) {
        return Unlocked::passedOn;
    }
    const TimePoint validUntil = hold.validUntil();
    hold.levels.remove(level);
    if (hold.levels.count() > 0 && core_.port.now() < hold.levels.validUntil()) {
        levelEnded(hold);
        correctCount(hold, true);
        return Unlocked::stillHeld;
    }
    core_.loseRest(hold);
    giveUp(hold);
    start(hold, unawaited(validUntil), Behind::nextWaiter, std::move(whenReleased));
    return Unlocked::unconfirmed;
}

void Releasing::levelEnded(Hold& hold)
{
    hold.levelHasEnded = true;
    hold.updateDeadline();
    core_.renewing.watch(hold, core_.port.now());
}

void Releasing::correctCount(Hold& hold, bool unknown)
{
    if (hold.levels.count() == 0) {
        const TimePoint validUntil = hold.validUntil();
        giveUp(hold);
        return start(hold, unawaited(validUntil), Behind::nextWaiter);
    }
    if (unknown) {
        auto call = core_.takeCall(hold);
        // tried as long as the hold is held, and renewals prolong that
        call->release = ReleaseMachine({.validUntil = TimePoint::max(),
                                        .giveUpAfter = TimePoint::max(),
                                        .level = Level::nested,
                                        .asker = Asker::background});
        tellCount(call, Start{core_.port.now()});
    }
}

/// One step of correcting the count in Redis of a held hold.
void Releasing::tellCount(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event)
{
    Hold& hold = call->hold();
    const auto action = call->release.resume(event, core_.random);
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        core_.port.after(pause->until, [this, call, keep = HoldRef(&hold)] {
            if (keep->phase == Hold::Phase::held && keep->levels.count() == call->count()) {
                tellCount(call, TimerFired{core_.port.now()});
            } else {
                core_.putBack(call);
            }
        });
        return;
    }
    if (std::holds_alternative<Send>(action)) {
        call->prepare(HoldCall::Verb::unlock, hold.levels.leaseToLeave(core_.port.now(), core_.config.watchdogTimeout),
                      hold.levels.count(), Call::Mode::detached);
        if (core_.port.submit(hold.lane, call)) {
            ++hold.countsUnderWay;
            return;
        }
    }
    core_.putBack(call);
}

void Releasing::giveUp(Hold& hold)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::acquiring || hold.phase == Hold::Phase::held ||
                     hold.phase == Hold::Phase::ended);
    hold.phase.store(Hold::Phase::ended, std::memory_order_release);
    core_.renewing.forget(hold);
    begins(hold);
    // not the last reference: the caller has another
    (void)hold.lock->local.remove(hold);
}

void Releasing::begins(Hold& hold) noexcept
{
    hold.lock->forEachKind([](NamedLock& named) { named.releases.begin(); });
    core_.begins();
}

void Releasing::takeBack(Hold& hold, TimePoint until)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::lost);
    hold.grantedAt = TimePoint{}; // over() then reports nothing
    begins(hold);
    start(hold, unawaited(until), Behind::nobody);
}

void Releasing::giveBack(Hold& hold, TimePoint until)
{
    giveUp(hold);
    start(hold, unawaited(until), Behind::nobody);
}

ReleaseMachine Releasing::unawaited(TimePoint validUntil) noexcept
{
    return ReleaseMachine({.validUntil = validUntil, .giveUpAfter = TimePoint::max(), .asker = Asker::background});
}

void Releasing::goOn(Hold& hold, ReleaseMachine machine)
{
    machine.goOnInBackground();
    start(hold, machine, Behind::nobody);
}

/// @param machine not started yet.
void Releasing::start(Hold& hold, const ReleaseMachine& machine, Behind behind,
                      std::function<void(Unlocked)> whenReleased)
{
    const auto call = takeCall(hold);
    if (call == nullptr) {
        over(hold, Unlocked::unconfirmed);
        if (whenReleased) {
            whenReleased(Unlocked::unconfirmed);
        }
        return;
    }
    call->release = machine;
    call->whenReleased = std::move(whenReleased);
    call->prepare(HoldCall::Verb::unlock, std::chrono::milliseconds(1), 0, Call::Mode::detached);
    step(call, Start{core_.port.now()},
         behind == Behind::nextWaiter ? core_.waking.letFollow(hold, hold.lane) : Waking::Next{});
}

std::shared_ptr<HoldCall> Releasing::takeCall(Hold& hold) noexcept
{
    try {
        auto call = core_.takeCall(hold);
        call->echoes = hold.lock->listening != Listening::no;
        return call;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

/// One step of an unawaited release. @return whether it is over.
bool Releasing::step(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event, Waking::Next behind)
{
    Hold& hold = call->hold();
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::ended || hold.phase == Hold::Phase::lost);
    const auto action = call->release.resume(event, core_.random);
    if (const auto* pause = std::get_if<SleepUntil>(&action)) {
        if (call->whenReleased && call->release.metFatal()) {
            std::exchange(call->whenReleased, nullptr)(Unlocked::unconfirmed); // a waiting thread gets that, too
        }
        core_.port.after(pause->until,
                         [this, call, keep = HoldRef(&hold)] { step(call, TimerFired{core_.port.now()}, {}); });
        return false;
    }
    auto how = Unlocked::unconfirmed;
    if (const auto* done = std::get_if<Done<Unlocked>>(&action)) {
        core_.waking.noteAudience(*call);
        how = done->result;
    } else {
        call->quiet = behind.quiet;
        if (core_.port.submit(hold.lane, call, std::move(behind.call))) {
            return false;
        }
    } // else the client has ended: the lease ends the hold
    const auto tell = std::exchange(call->whenReleased, nullptr);
    core_.putBack(call);
    over(hold, how);
    if (tell) {
        tell(how);
    }
    return true;
}

bool Releasing::answered(HoldCall& call)
{
    if (call.count() > 0) {
        nestedAnswered(call);
        return false;
    }
    return step(call.shared_from_this(), unlockEventOf(call, core_.port.now()), {});
}

/// The request for an unawaited release of a nested level has ended. Without an answer it is repeated, unless the count
/// has changed since.
void Releasing::nestedAnswered(HoldCall& call)
{
    Hold& hold = call.hold();
    const TimePoint now = core_.port.now();
    const auto event = unlockEventOf(call, now);
    REDISLOCK_ASSERT(hold.countsUnderWay > 0);
    --hold.countsUnderWay;
    hold.unanswered = hold.unanswered || !std::holds_alternative<Replied<UnlockAnswer>>(event);
    if (hold.phase == Hold::Phase::held) {
        switch (countAnswer(event, call.count(), hold.levels.count(), now < hold.validUntil())) {
        case CountAnswer::done:
            break;
        case CountAnswer::again:
            return tellCount(call.shared_from_this(), event);
        case CountAnswer::lost:
            core_.lose(hold, LossReason::gone);
            break;
        }
    }
    core_.putBack(call.shared_from_this());
}

void Releasing::over(Hold& hold, Unlocked how)
{
    NamedLock& named = *hold.lock;
    core_.ends();
    if (std::exchange(named.race, false)) {
        Waking::wakeNext(named);
    }
    named.forEachKind([](NamedLock& each) {
        each.releases.end();
        if (each.releasesWatched && !each.releases.underWay()) {
            each.releasesWatched = false;
            const auto look = [](Waiter& waiter) { waiter.look(); };
            each.waiters.forEach(look);
            each.askers.forEach(look);
        }
    });
    if (hold.grantedAt == TimePoint{}) {
        return; // never held: this ended what an unanswered acquire may have left
    }
    const auto held = core_.port.now() - std::exchange(hold.grantedAt, TimePoint{});
    core_.tellOfWhole(hold, [how, held](Observer& observer, const LockEvent& event) {
        observer.released(event, how, held);
        if (how == Unlocked::unconfirmed) {
            observer.unconfirmed(event);
        }
    });
}

} // namespace redislock::detail
