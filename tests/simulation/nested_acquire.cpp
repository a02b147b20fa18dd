// Acquiring a nested level, as in src/runtime/acquire.cpp.
#include "simulation/operation.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::AcquireMachine;
using detail::AcquireResult;

NestedAcquire::NestedAcquire(SimClient& client, Hold& hold, Wait wait, Lease lease, detail::EndedBy endedBy)
    : Operation(client),
      hold_(hold.shared_from_this()),
      endedBy_(endedBy),
      level_(hold.levels.add(lease, endedBy)),
      command_(client.takeCommand(hold)),
      lease_(client.leaseTime(lease)),
      machine_([&] {
          auto settings = client.settingsFor(wait, lease);
          settings.holdDeadline = hold.validUntil();
          return AcquireMachine(settings);
      }()),
      event_(detail::Start{now()})
{
}

std::optional<Situation> NestedAcquire::situation() const
{
    switch (machine_.state()) {
    case AcquireMachine::State::asking:
        return Situation::nestedAsking;
    case AcquireMachine::State::backingOff:
        return Situation::nestedBackingOff;
    default:
        return std::nullopt;
    }
}

void NestedAcquire::advance()
{
    while (!isDone()) {
        if (!event_) {
            if (machine_.state() == AcquireMachine::State::asking) {
                if (!answered()) {
                    return;
                }
                event_ = lockEvent(*call_, now());
            } else if (now() < sleepUntil_) {
                return;
            } else {
                event_ = detail::TimerFired{now()};
            }
        }
        const auto action = machine_.resume(*std::exchange(event_, std::nullopt), client_.random());
        if (const auto* done = std::get_if<detail::Done<AcquireResult>>(&action)) {
            conclude(done->result);
        } else if (const auto* request = std::get_if<detail::Send>(&action)) {
            // Redis keeps the longer of two leases, unless somebody took the key's time to live away
            const auto outer = hold_->levels.leaseToLeave(now(), client_.config().watchdogTimeout);
            client_.prepareLock(*command_, std::max(lease_, outer), hold_->levels.count(), Situation::nestedAsking);
            send(command_, request->until);
        } else if (const auto* pause = std::get_if<detail::SleepUntil>(&action)) {
            sleepUntil_ = pause->until;
            alarm(sleepUntil_);
        } else { // a nested acquire is never refused for another holder
            event_ = detail::Cancelled{now(), Errc::badReply};
        }
    }
}

void NestedAcquire::conclude(const AcquireResult& result)
{
    using Kind = AcquireResult::Kind;
    finishOperation();
    Hold& hold = *hold_;
    client_.putBackCommand(*command_);
    end_ = {result.kind, result.error, nullptr, 0};
    if (hold.phase == Hold::Phase::held && (result.kind == Kind::lost || now() >= hold.validUntil())) {
        hold.levels.remove(level_);
        client_.lose(hold, result.kind == Kind::lost ? "nested acquire" : nullptr);
    }
    if (hold.phase != Hold::Phase::held) {
        if (endedBy_ == detail::EndedBy::thread && hold.levels.remove(level_)) {
            hold.lock->local.settle(hold.owner); // the loss counted this level too
        }
        end_.kind = Kind::lost;
        return;
    }
    if (result.kind == Kind::granted) {
        client_.grant(hold, level_, result);
        end_.hold = hold_;
        end_.level = level_;
    } else {
        hold.levels.remove(level_);
        client_.correctCount(hold, result.mayBeHeld);
    }
}

} // namespace redislock::simulation
