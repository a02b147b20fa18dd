#include "simulation/awaiting.hpp"

#include <utility>

namespace redislock::simulation {

void Awaiting::awaitAnswer(detail::Call& call, TimePoint until)
{
    call_ = &call;
    until_ = until;
    stoodBefore_ = host_.stood();
    lookedAgain_ = false;
    alarm(until);
}

std::optional<detail::Outcome> Awaiting::outcome()
{
    detail::Outcome outcome = call_->outcome;
    outcome.stood = host_.stood() - stoodBefore_;
    if (!call_->pending) {
        call_->signal.clearDone();
        return outcome;
    }
    if (now() < until_) {
        return std::nullopt;
    }
    if (outcome.stood > outcome.stood.zero() && !std::exchange(lookedAgain_, true)) {
        alarm(now()); // answers that came meanwhile are read first
        return std::nullopt;
    }
    outcome.replied = false;
    outcome.fault = commands_.link().giveUp(*call_);
    if (call_->pending) { // the call stays on the connection, and cannot be used again
        outcome.stood = outcome.stood.zero();
    }
    return outcome;
}

} // namespace redislock::simulation
