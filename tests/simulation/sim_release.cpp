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
        const auto answer = UnlockAnswer::from(reply);
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
    startRelease(hold, validUntil, handOnFairly(*hold.lock));
    return false;
}

void SimClient::correctCount(Hold& hold, bool unknown)
{
    if (hold.levels.count() == 0) {
        const TimePoint validUntil = hold.validUntil();
        giveUp(hold);
        return startRelease(hold, validUntil, handOnFairly(*hold.lock));
    }
    if (unknown) {
        const auto call = takeCommand(hold);
        prepareUnlock(*call, hold.levels.leaseToLeave(host_->now(), config_.watchdogTimeout), hold.levels.count());
        call->finished = [this](Call& c) { callFinished(c); };
        commands_.enqueue(call);
    }
}

void SimClient::giveUp(Hold& hold)
{
    const auto keep = hold.shared_from_this();
    hold.phase = Hold::Phase::ended;
    forget(hold);
    ++hold.lock->unansweredReleases;
    (void)hold.lock->local.remove(hold);
    world_.checker.ends(hold.lock->name, hold.holder);
}

void SimClient::giveBack(Hold& hold, TimePoint until)
{
    giveUp(hold);
    startRelease(hold, until, nullptr);
}

void SimClient::startRelease(Hold& hold, TimePoint validUntil, std::shared_ptr<Call> behind)
{
    std::erase_if(releasing_, [](const auto& weak) { return weak.expired(); });
    releasing_.push_back(hold.weak_from_this());
    hold.release = ReleaseMachine({.validUntil = validUntil, .giveUpAfter = TimePoint::max()});
    const auto call = takeCommand(hold);
    prepareUnlock(*call, std::chrono::milliseconds(1), 0);
    call->finished = [this](Call& c) { callFinished(c); };
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

void SimClient::callFinished(Call& call)
{
    if (call.count > 0) {
        nestedAnswered(call);
    } else {
        step(*call.hold, unlockEvent(call, host_->now()), nullptr);
    }
}

/// An unawaited release of a nested level was answered, or not: then it is repeated, unless the count has changed
/// since.
void SimClient::nestedAnswered(Call& call)
{
    Hold& hold = *call.hold;
    const auto event = unlockEvent(call, host_->now());
    putBackCommand(call);
    if (hold.phase != Hold::Phase::held) {
        return;
    }
    switch (detail::countAnswer(event, call.count, hold.levels.count(), host_->now() < hold.validUntil())) {
    case detail::CountAnswer::done:
        return;
    case detail::CountAnswer::again:
        return correctCount(hold, true);
    case detail::CountAnswer::lost:
        return lose(hold, "release of a level");
    }
}

void SimClient::releaseAnswered(Hold& hold)
{
    NamedLock& named = *hold.lock;
    --named.unansweredReleases;
    std::erase_if(releasing_, [&](const auto& weak) { return weak.lock().get() == &hold; });
    if (named.handOver.takeRace()) {
        wakeHead(named);
    }
    if (named.releaseWatchers > 0) {
        named.waiters.forEach([](Waiter& waiter) { waiter.wake(); });
        named.oneShots.forEach([](Waiter& waiter) { waiter.wake(); });
    }
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
    wakeHead(*hold.lock);
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
