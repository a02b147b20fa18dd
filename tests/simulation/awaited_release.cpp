// Ending a level and waiting for the answer, as in src/runtime/release.cpp.
#include "simulation/operation.hpp"

#include <utility>

namespace redislock::simulation {

using detail::ReleaseMachine;

AwaitedRelease::AwaitedRelease(SimClient& client, Hold& hold, std::uint32_t level)
    : Operation(client), hold_(hold.shared_from_this()), validUntil_(hold.validUntil())
{
    hold.levels.remove(level);
    ReleaseMachine::Settings settings{.validUntil = validUntil_,
                                      .giveUpAfter = saturatingAdd(now(), client.config().unreachableAfter)};
    if (hold.levels.count() > 0 && now() < hold.levels.validUntil()) {
        nested_ = true;
        hold.deadline = hold.levels.validUntil();
        client.tellBelief(hold);
        client.watch(hold, now());
        command_ = client.takeCommand(hold);
        client.prepareUnlock(*command_, hold.levels.leaseToLeave(now(), client.config().watchdogTimeout),
                             hold.levels.count());
        settings.level = detail::Level::nested;
    } else {
        client.loseRest(hold);
        client.giveUp(hold);
        command_ = client.takeCommand(hold);
        client.prepareUnlock(*command_, std::chrono::milliseconds(1), 0);
        behind_ = client.handOnFairly(*hold.lock);
    }
    machine_ = ReleaseMachine(settings);
    event_ = detail::Start{now()};
}

std::optional<Situation> AwaitedRelease::situation() const
{
    switch (machine_.state()) {
    case ReleaseMachine::State::asking:
        return Situation::releaseAsking;
    case ReleaseMachine::State::backingOff:
        return Situation::releaseBackingOff;
    default:
        return std::nullopt;
    }
}

void AwaitedRelease::advance()
{
    while (!isDone()) {
        if (!event_) {
            if (machine_.state() == ReleaseMachine::State::asking) {
                if (!answered()) {
                    return;
                }
                event_ = unlockEvent(*call_, now());
            } else if (now() < sleepUntil_) {
                return;
            } else {
                event_ = detail::TimerFired{now()};
            }
        }
        const auto action = machine_.resume(*std::exchange(event_, std::nullopt), client_.random());
        if (const auto* done = std::get_if<detail::Done<Unlocked>>(&action)) {
            conclude(done->result);
        } else if (const auto* request = std::get_if<detail::Send>(&action)) {
            command_->mode = Call::Mode::awaited;
            send(command_, request->until, std::exchange(behind_, nullptr));
        } else {
            sleepUntil_ = std::get<detail::SleepUntil>(action).until;
            alarm(sleepUntil_);
        }
    }
}

void AwaitedRelease::conclude(Unlocked how)
{
    finishOperation();
    how_ = how;
    Hold& hold = *hold_;
    if (nested_) {
        client_.putBackCommand(*command_);
        if (how == Unlocked::alreadyLost && hold.phase == Hold::Phase::held) {
            client_.lose(hold, "release of a level");
        } else if (how == Unlocked::unconfirmed && hold.phase == Hold::Phase::held) {
            client_.correctCount(hold, true); // goes on in the background
        }
        return;
    }
    client_.noteAudience(*command_);
    client_.putBackCommand(*command_);
    if (how == Unlocked::alreadyLost && now() < validUntil_) {
        client_.checker().toldGone(hold.holder, "release");
    }
    if (how == Unlocked::released) {
        client_.checker().expectGone(hold.lock->name, hold.holder, client_.trueTime());
    }
    if (how == Unlocked::unconfirmed && now() < validUntil_) {
        machine_.goOnInBackground();
        client_.startRelease(hold, machine_, nullptr);
    } else {
        client_.releaseAnswered(hold);
    }
}

} // namespace redislock::simulation
