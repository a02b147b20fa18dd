#include "simulation/sim_thread.hpp"

#include <utility>

namespace redislock::simulation {

void SimThread::sleep(std::chrono::nanoseconds span, std::function<void()> then)
{
    host_.at(host_.now() + span, std::move(then));
}

void SimThread::run(std::unique_ptr<ThreadCall> call, std::function<void()> then)
{
    call_ = std::move(call);
    then_ = std::move(then);
    call_->wake = [this] {
        if (!std::exchange(wakePending_, true)) {
            host_.soon([this] {
                wakePending_ = false;
                advance();
            });
        }
    };
    call_->alarm = [this](TimePoint until) {
        host_.at(until, [this, alarm = ++alarms_] {
            if (alarm == alarms_) {
                advance();
            }
        });
    };
    advance();
}

void SimThread::advance()
{
    if (call_ == nullptr) {
        return;
    }
    call_->advance();
    if (call_->isDone()) {
        ++alarms_;
        const auto then = std::move(then_);
        then();
    }
}

} // namespace redislock::simulation
