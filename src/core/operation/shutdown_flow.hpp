/// @file
/// The end of a client.
#pragma once

#include "core/core.hpp"
#include "core/operation/operation.hpp"
#include "link/request/calls.hpp"

namespace redislock::detail {

/// Waits until nothing of a client is under way, or its time is over. It has no request.
class ShutdownFlow final : public Operation {
public:
    ShutdownFlow(Core& core, TimePoint until, BackgroundRun* run) : Operation(core, run), until_(until)
    {
        core.shutdown = this;
    }
    ~ShutdownFlow() override { core_.shutdown = nullptr; }

    WaitStep look() override { return isAnswered() || core_.port.now() >= until_ ? WaitStep{} : sleep(until_); }
    WaitStep answered(const Outcome& /*outcome*/) override { return {}; }
    WaitStep cancel() override { return {}; }

    /// Nothing is under way any more.
    void wake() noexcept { run_ != nullptr ? run_->look() : core_.port.wake(never_); }
    [[nodiscard]] bool isAnswered() const noexcept { return !core_.isAnythingUnderWay(); }

    [[nodiscard]] Call& call() const noexcept override { return never_; }

private:
    const TimePoint until_;
    mutable PingCall never_; ///< not sent: a thread sleeps on its signal
};

} // namespace redislock::detail
