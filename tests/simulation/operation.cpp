#include "simulation/operation.hpp"

#include <utility>

namespace redislock::simulation {

void Operation::send(const std::shared_ptr<Call>& call, TimePoint until, std::shared_ptr<Call> behind)
{
    call->finished = [this](Call&) { wake(); };
    awaitAnswer(call, until);
    client_.commands().enqueue(call, std::move(behind));
}

void Operation::awaitAnswer(const std::shared_ptr<Call>& call, TimePoint until)
{
    call_ = call;
    until_ = until;
    alarm(until);
}

bool Operation::answered()
{
    if (call_->pending) {
        if (now() < until_) {
            return false;
        }
        call_->fault = client_.commands().giveUp(*call_);
        call_->replied = false;
    }
    return true;
}

} // namespace redislock::simulation
