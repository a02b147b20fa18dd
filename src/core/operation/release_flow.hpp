/// @file
/// The end of a level for which its thread waits.
#pragma once

#include "core/core.hpp"
#include "core/machine/release_machine.hpp"
#include "core/operation/waiting.hpp"
#include "redislock/unlocked.hpp"

#include <cstdint>
#include <memory>

namespace redislock::detail {

/// The end of a level of a valid hold, step by step; see WaitStep. From the first step on the level does not count. The
/// driver has another reference to the hold.
class ReleaseFlow {
public:
    ReleaseFlow(Core& core, Hold& hold, std::uint32_t level);
    ReleaseFlow(const ReleaseFlow&) = delete;
    ReleaseFlow& operator=(const ReleaseFlow&) = delete;

    WaitStep look();
    WaitStep answered(const Outcome& outcome);

    [[nodiscard]] HoldCall& call() const noexcept { return *call_; }
    /// Only when done. If it is `unconfirmed`, the release goes on in the background.
    [[nodiscard]] Unlocked result() const noexcept { return result_; }

private:
    [[nodiscard]] ReleaseMachine::Settings settings() const noexcept;
    void beginNested();
    void beginOutermost();
    WaitStep step(const ReleaseMachine::Event& event);
    WaitStep finish(Unlocked how);
    void endNested();
    void endOutermost();

    Core& core_;
    Hold& hold_;
    const TimePoint validUntil_;
    bool nested_ = false;
    std::shared_ptr<HoldCall> call_; ///< null: no memory for it
    Waking::Next behind_;            ///< what follows the first try
    ReleaseMachine machine_;
    TimePoint until_{}; ///< end of the pause, as the machine said
    bool begun_ = false;
    Unlocked result_ = Unlocked::unconfirmed;
};

} // namespace redislock::detail
