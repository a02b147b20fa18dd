#include "simulation/awaiting.hpp"

#include <utility>

namespace redislock::simulation {

void Awaiting::send(const std::shared_ptr<Call>& call, TimePoint until, std::shared_ptr<Call> behind)
{
    call->finished = [this](Call&) { wake(); };
    awaitAnswer(call, until);
    commands_.enqueue(call, std::move(behind));
}

void Awaiting::awaitAnswer(const std::shared_ptr<Call>& call, TimePoint until)
{
    call_ = call;
    until_ = until;
    stoodBefore_ = host_.stood();
    lookedAgain_ = false;
    alarm(until);
}

bool Awaiting::answered()
{
    call_->stood = host_.stood() - stoodBefore_;
    if (call_->pending) {
        if (now() < until_) {
            return false;
        }
        if (call_->stood > call_->stood.zero() && !std::exchange(lookedAgain_, true)) {
            alarm(now()); // what came meanwhile is read first
            return false;
        }
        call_->fault = commands_.giveUp(*call_);
        call_->replied = false;
        if (call_->pending) { // it stays on the connection, and cannot be asked again
            call_->stood = call_->stood.zero();
        }
    }
    return true;
}

} // namespace redislock::simulation
