// Releasing without waiting, as in src/runtime/release.cpp.
#include "redislock/detail/logic/count_correction.hpp"
#include "simulation/sim_client.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::ReleaseMachine;
using detail::Replied;
using detail::UnlockAnswer;

ReleaseMachine::Event unlockEvent(const Call& call, TimePoint now)
{
    return eventOf<ReleaseMachine::Event>(call, now, [&](const Reply& reply) -> ReleaseMachine::Event {
        const auto answer =
            UnlockAnswer::from(reply, call.count > 0 ? detail::Level::nested : detail::Level::outermost);
        if (!answer) {
            throw Violation("replies", "an unlock script gave an answer that it cannot give");
        }
        return Replied<UnlockAnswer>{now, call.sentAt, *answer};
    });
}

/// Ends a level of a valid hold without waiting. @return whether other levels are left.
bool SimClient::endUnawaited(Hold& hold, std::uint32_t level)
{
    const TimePoint validUntil = hold.validUntil();
    hold.levels.remove(level);
    if (hold.levels.count() > 0 && host_->now() < hold.levels.validUntil()) {
        hold.deadline = hold.levels.validUntil();
        tellBelief(hold);
        watch(hold, host_->now());
        correctCount(hold, true);
        return true;
    }
    loseRest(hold);
    giveUp(hold);
    startRelease(hold, unawaitedRelease(validUntil), handOnFairly(*hold.lock));
    return false;
}

void SimClient::correctCount(Hold& hold, bool unknown)
{
    if (hold.levels.count() == 0) {
        const TimePoint validUntil = hold.validUntil();
        giveUp(hold);
        return startRelease(hold, unawaitedRelease(validUntil), handOnFairly(*hold.lock));
    }
    if (unknown) {
        const auto call = takeCommand(hold);
        call->release = ReleaseMachine({.validUntil = TimePoint::max(),
                                        .giveUpAfter = TimePoint::max(),
                                        .level = detail::Level::nested,
                                        .asker = detail::Asker::background});
        call->finished = [this, weak = std::weak_ptr(call)](Call&) { nestedAnswered(weak.lock()); };
        tellCount(call, detail::Start{host_->now()});
    }
}

/// One step of telling Redis the count of a held hold.
void SimClient::tellCount(const std::shared_ptr<Call>& call, const ReleaseMachine::Event& event)
{
    Hold& hold = *call->hold;
    const auto action = call->release.resume(event, random_);
    if (std::holds_alternative<detail::Send>(action)) {
        prepareUnlock(*call, hold.levels.leaseToLeave(host_->now(), config_.watchdogTimeout), hold.levels.count());
        return commands_.enqueue(call);
    }
    if (const auto* pause = std::get_if<detail::SleepUntil>(&action)) {
        return host_->at(pause->until, [this, keep = hold.shared_from_this(), call] {
            if (keep->phase == Hold::Phase::held && keep->levels.count() == call->count) {
                tellCount(call, detail::TimerFired{host_->now()});
            } else {
                putBackCommand(*call);
            }
        });
    }
    putBackCommand(*call);
}

void SimClient::giveUp(Hold& hold)
{
    const auto keep = hold.shared_from_this();
    hold.phase = Hold::Phase::ended;
    forget(hold);
    forEachKind(*hold.lock, [](NamedLock& named) { named.releases.begin(); });
    (void)hold.lock->local.remove(hold);
    world_.checker.ends(hold.lock->name, hold.holder);
}

void SimClient::giveBack(Hold& hold, TimePoint until)
{
    giveUp(hold);
    startRelease(hold, unawaitedRelease(until), nullptr);
}

ReleaseMachine SimClient::unawaitedRelease(TimePoint validUntil) noexcept
{
    return ReleaseMachine(
        {.validUntil = validUntil, .giveUpAfter = TimePoint::max(), .asker = detail::Asker::background});
}

void SimClient::startRelease(Hold& hold, const ReleaseMachine& machine, std::shared_ptr<Call> behind)
{
    std::erase_if(releasing_, [](const auto& weak) { return weak.expired(); });
    releasing_.push_back(hold.weak_from_this());
    hold.release = machine;
    const auto call = takeCommand(hold);
    prepareUnlock(*call, std::chrono::milliseconds(1), 0);
    call->finished = [this](Call& c) { step(*c.hold, unlockEvent(c, host_->now()), nullptr); };
    hold.releaseCall = call;
    step(hold, detail::Start{host_->now()}, std::move(behind));
}

/// One step of an unawaited release.
void SimClient::step(Hold& hold, const ReleaseMachine::Event& event, std::shared_ptr<Call> behind)
{
    const auto keep = hold.shared_from_this();
    const auto call = hold.releaseCall.lock();
    const auto action = hold.release.resume(event, random_);
    if (std::holds_alternative<detail::Done<Unlocked>>(action)) {
        noteAudience(*call);
        putBackCommand(*call);
        return releaseAnswered(hold);
    }
    if (std::holds_alternative<detail::Send>(action)) {
        return commands_.enqueue(call, std::move(behind));
    }
    host_->at(std::get<detail::SleepUntil>(action).until,
              [this, keep, call] { step(*keep, detail::TimerFired{host_->now()}, nullptr); });
}

/// An unawaited release of a nested level was answered, or not: then it is repeated, unless the count has changed
/// since.
void SimClient::nestedAnswered(const std::shared_ptr<Call>& call)
{
    Hold& hold = *call->hold;
    const auto event = unlockEvent(*call, host_->now());
    if (hold.phase == Hold::Phase::held) {
        switch (detail::countAnswer(event, call->count, hold.levels.count(), host_->now() < hold.validUntil())) {
        case detail::CountAnswer::done:
            break;
        case detail::CountAnswer::again:
            return tellCount(call, event);
        case detail::CountAnswer::lost:
            lose(hold, "release of a level");
            break;
        }
    }
    putBackCommand(*call);
}

void SimClient::releaseAnswered(Hold& hold)
{
    NamedLock& named = *hold.lock;
    std::erase_if(releasing_, [&](const auto& weak) { return weak.lock().get() == &hold; });
    if (named.handOver.takeRace()) {
        wakeNext(named);
    }
    forEachKind(named, [](NamedLock& each) {
        each.releases.end();
        if (each.releaseWatchers > 0 && !each.releases.underWay()) {
            each.waiters.forEach([](Waiter& waiter) { waiter.wake(); });
            each.askers.forEach([](Waiter& waiter) { waiter.wake(); });
        }
    });
}

/// The final state of a hold that was not given up. @param by which answer of the server told it; null for the clock.
void SimClient::lose(Hold& hold, const char* by)
{
    const auto keep = hold.shared_from_this();
    world_.trace(host_->name(), "lost {}{}{}", hold.holder, by == nullptr ? "" : " by ", by == nullptr ? "" : by);
    if (by != nullptr && host_->now() < hold.validUntil()) {
        world_.checker.toldGone(hold.holder, by);
    }
    if (by == nullptr) {
        checkResilience(hold);
    }
    hold.phase = Hold::Phase::lost;
    forget(hold);
    hold.lock->local.owe(hold.owner, hold.levels.countOfThread());
    (void)hold.lock->local.remove(hold);
    world_.checker.ends(hold.lock->name, hold.holder);
    wakeNext(*hold.lock);
    if (hold.whenLost) {
        hold.whenLost();
    }
}

/// The outer levels of a hold were over before the inner one ended.
void SimClient::loseRest(Hold& hold)
{
    if (hold.levels.count() > 0) {
        hold.lock->local.owe(hold.owner, hold.levels.countOfThread());
    }
}

} // namespace redislock::simulation
