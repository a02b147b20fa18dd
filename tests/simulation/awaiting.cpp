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
    alarm(until);
}

bool Awaiting::answered()
{
    if (call_->pending) {
        if (now() < until_) {
            return false;
        }
        call_->fault = commands_.giveUp(*call_);
        call_->replied = false;
    }
    return true;
}

} // namespace redislock::simulation
