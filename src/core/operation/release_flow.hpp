/// @file
/// The end of a level, or of what is left of a hold.
#pragma once

#include "core/core.hpp"
#include "core/machine/release_machine.hpp"
#include "core/operation/operation.hpp"
#include "redislock/unlocked.hpp"

#include <cstdint>
#include <memory>

namespace redislock::detail {

/// A release, step by step. Whoever runs it has another reference to the hold.
class ReleaseFlow final : public Operation {
public:
    /// Tells Redis the true count of a hold.
    struct Count {};
    /// Ends a hold that this client does not count as held any more, but that may be in Redis.
    struct Rest {
        ReleaseMachine machine; ///< not started
        bool letsFollow;        ///< the next waiter may follow
    };

    /// The end of a level of a valid hold. From here on the level does not count.
    ReleaseFlow(Core& core, Hold& hold, std::uint32_t level, Asker asker, BackgroundRun* run);
    ReleaseFlow(Core& core, Hold& hold, Count count, BackgroundRun* run);
    ReleaseFlow(Core& core, Hold& hold, const Rest& rest, BackgroundRun* run);

    WaitStep look() override;
    WaitStep answered(const Outcome& outcome) override;
    WaitStep cancel() override;

    [[nodiscard]] HoldCall& call() const noexcept override { return *call_; }
    [[nodiscard]] ReleaseMachine::State state() const noexcept { return machine_.state(); }
    /// When done: how it ended; if it is `unconfirmed`, the release goes on in the background. Before: that other
    /// levels are left, or `unconfirmed`.
    [[nodiscard]] Unlocked result() const noexcept { return result_; }

private:
    void beginNested(const ReleaseMachine::Settings& settings);
    void beginOutermost(const ReleaseMachine& machine, bool letsFollow);
    WaitStep step(const ReleaseMachine::Event& event);
    WaitStep finish(Unlocked how);
    void endNested();
    void endOutermost();
    [[nodiscard]] bool isVoid() const noexcept;

    Hold& hold_;
    const TimePoint validUntil_;
    const Asker asker_;
    bool nested_ = false;
    bool isOver_ = false;
    std::shared_ptr<HoldCall> call_; ///< null: no memory for it
    Waking::Next behind_;            ///< what follows the first try
    ReleaseMachine machine_;
    TimePoint until_{}; ///< end of the stage, as the machine said
    Unlocked result_ = Unlocked::unconfirmed;
};

} // namespace redislock::detail
