/// @file
/// An acquire for which its thread waits.
#pragma once

#include "core/core.hpp"
#include "core/operation/acquire_flow.hpp"
#include "core/operation/nested_flow.hpp"
#include "core/operation/waiting.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <variant>

namespace redislock::detail {

/// An acquire by a thread: of a hold, of another level of its own hold, or of a lock that it can never get; see
/// WaitStep. The driver keeps the AcquireOrder alive.
class ThreadAcquire {
public:
    ThreadAcquire(Core& core, NamedLock& named, const AcquireOrder& order, std::uint64_t caller);

    WaitStep look() { return nested_ ? nested_->look() : outermost_ ? outermost_->look() : WaitStep{}; }
    WaitStep answered(const Outcome& outcome)
    {
        return nested_ ? nested_->answered(outcome) : outermost_->answered(outcome);
    }
    WaitStep paused(const std::variant<Pause, Cancelled>& answer) { return outermost_->paused(answer); }
    WaitStep cancel() { return nested_ ? nested_->cancel() : outermost_->cancel(); }
    [[nodiscard]] HoldCall& call() const noexcept { return nested_ ? nested_->call() : outermost_->call(); }

    [[nodiscard]] bool isNested() const noexcept { return nested_.has_value(); }
    /// The state of an outermost acquire's machine; nothing before its turn.
    [[nodiscard]] std::optional<AcquireMachine::State> state() const noexcept
    {
        return outermost_ ? outermost_->state() : std::nullopt;
    }

    /// What to destroy without the mutex.
    struct Rest {
        HoldRef hold;
        std::shared_ptr<NamedLock> named;
    };
    /// Only when done: the result, and the flow's end. @param acquired what was granted
    std::error_code conclude(Acquired& acquired, Rest& rest);

private:
    Core& core_;
    std::optional<AcquireFlow> outermost_;
    std::optional<NestedFlow> nested_;
};

} // namespace redislock::detail
