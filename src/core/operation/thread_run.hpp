/// @file
/// An operation for whose end a thread waits.
#pragma once

#include "core/operation/operation.hpp"

#include <utility>
#include <variant>

namespace redislock::detail {

/// Says what the thread of an operation does next, until the operation is done. All functions expect the core's mutex.
template <class Flow>
class ThreadRun {
public:
    explicit ThreadRun(Flow& flow) : flow_(flow), next_(flow.look()) {}

    [[nodiscard]] const WaitStep& next() const noexcept { return next_; }
    [[nodiscard]] bool isDone() const noexcept { return next_.kind == WaitStep::Kind::done; }
    /// Whether the caller called it off before it was done.
    [[nodiscard]] bool isCalledOff() const noexcept { return calledOff_; }

    /// The thread has slept. @param callsOff whether the caller calls the operation off
    void woke(bool callsOff) { callsOff ? callOff() : take(flow_.look()); }
    /// The thread has waited for the end of the request.
    void answered(const Outcome& outcome)
    {
        flow_.call().signal.clearDone();
        outcome.calledOff ? callOff() : take(flow_.answered(outcome));
    }
    void paused(const std::variant<Pause, Cancelled>& answer) { take(flow_.paused(answer)); }

private:
    void take(const WaitStep& next) { next_ = next; }
    void callOff()
    {
        calledOff_ = true;
        (void)flow_.cancel();
        next_ = {};
    }

    Flow& flow_;
    WaitStep next_;
    bool calledOff_ = false;
};

} // namespace redislock::detail
