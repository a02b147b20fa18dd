/// @file
/// An acquire for which its thread waits.
#pragma once

#include "core/core.hpp"
#include "core/machine/acquire_machine.hpp"
#include "core/operation/acquire_flow.hpp"
#include "core/operation/operation.hpp"
#include "redislock/hold_ref.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <variant>

namespace redislock::detail {

/// An acquire of another level of a valid hold by its thread. It waits for nobody, and finds out if the hold is gone.
class NestedFlow final : public Operation {
public:
    NestedFlow(Core& core, Hold& hold, const AcquireOrder& order);
    ~NestedFlow() override { core_.confirming.withdraw(confirmation_); }

    WaitStep look() override;
    WaitStep answered(const Outcome& outcome) override;
    /// The count in Redis is to be corrected.
    WaitStep cancel() override;

    [[nodiscard]] HoldCall& call() const noexcept override { return *call_; }
    /// Only when done: the result.
    std::error_code conclude(Acquired& acquired);

private:
    WaitStep step(const AcquireMachine::Event& event);
    WaitStep granted();

    const AcquireOrder& order_;
    HoldRef hold_;
    std::shared_ptr<HoldCall> call_;
    const std::uint32_t level_;
    AcquireMachine machine_;
    TimePoint until_{}; ///< end of the pause, as the machine said
    bool begun_ = false;
    AcquireResult result_;
    Confirmation confirmation_; ///< of the whole hold, where the new level asks for more than the others did
};

/// An acquire by a thread: of a hold, of another level of its own hold, or of a lock that it can never get. The thread
/// keeps the AcquireOrder alive.
class ThreadAcquire final : public Operation {
public:
    ThreadAcquire(Core& core, NamedLock& named, const AcquireOrder& order, std::uint64_t caller);

    WaitStep look() override { return nested_ ? nested_->look() : outermost_ ? outermost_->look() : WaitStep{}; }
    WaitStep answered(const Outcome& outcome) override
    {
        return nested_ ? nested_->answered(outcome) : outermost_->answered(outcome);
    }
    WaitStep paused(const std::variant<Pause, Cancelled>& answer) override { return outermost_->paused(answer); }
    WaitStep cancel() override { return nested_ ? nested_->cancel() : outermost_->cancel(); }
    [[nodiscard]] HoldCall& call() const noexcept override { return nested_ ? nested_->call() : outermost_->call(); }

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
    std::optional<AcquireFlow> outermost_;
    std::optional<NestedFlow> nested_;
    Cause inTheWay_{}; ///< neither of them: the hold of this thread that would never end meanwhile
};

} // namespace redislock::detail
