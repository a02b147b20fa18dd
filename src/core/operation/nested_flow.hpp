/// @file
/// Another level for a thread's own hold.
#pragma once

#include "core/core.hpp"
#include "core/machine/acquire_machine.hpp"
#include "core/operation/waiting.hpp"
#include "redislock/hold_ref.hpp"

#include <cstdint>
#include <memory>
#include <system_error>

namespace redislock::detail {

/// An acquire of another level of a valid hold, step by step; see WaitStep. It waits for nobody, and finds out if the
/// hold is gone.
class NestedFlow {
public:
    NestedFlow(Core& core, Hold& hold, const AcquireOrder& order);
    NestedFlow(const NestedFlow&) = delete;
    NestedFlow& operator=(const NestedFlow&) = delete;

    WaitStep look();
    WaitStep answered(const Outcome& outcome);
    /// Ends the acquire. The count in Redis is to be corrected.
    WaitStep cancel();

    [[nodiscard]] HoldCall& call() const noexcept { return *call_; }
    /// Only when done: the result.
    std::error_code conclude(Acquired& acquired);

private:
    WaitStep step(const AcquireMachine::Event& event);

    Core& core_;
    const AcquireOrder& order_;
    HoldRef hold_;
    std::shared_ptr<HoldCall> call_;
    const std::uint32_t level_;
    AcquireMachine machine_;
    TimePoint until_{}; ///< end of the pause, as the machine said
    bool begun_ = false;
    AcquireResult result_;
};

} // namespace redislock::detail
