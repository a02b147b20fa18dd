/// @file
/// How holds, and levels of them, are given back.
#pragma once

#include "core/hold.hpp"
#include "core/machine/release_machine.hpp"
#include "link/request/call.hpp"
#include "redislock/clock.hpp"
#include "redislock/unlocked.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace redislock::detail {

class Core;

/// The releases of one client that nobody waits for, and what all releases have in common; see ReleaseFlow. Callers
/// have another reference to each hold.
class Releasing {
public:
    explicit Releasing(Core& core);

    /// Ends a level of a valid hold. @return `unconfirmed` where a release is under way now; otherwise that other
    /// levels are left, or that the hold was inherited
    Unlocked endLevel(Hold& hold, std::uint32_t level);
    /// A level ended, or Redis may have granted one that nobody has: tells Redis the true count. Without levels, ends
    /// the hold.
    void correctCount(Hold& hold, bool unknown);
    /// Ends a hold that is not held, or no longer, but may still be in Redis.
    void giveBack(Hold& hold, TimePoint until);
    /// Releases a lost hold that Redis may still have, and reports nothing. @param until when to stop trying
    void takeBack(Hold& hold, TimePoint until);

    // for ReleaseFlow
    /// A level was taken out and others are left: sets the hold's deadline from them.
    void levelEnded(Hold& hold);
    /// From here on, this client does not count the hold as held.
    void giveUp(Hold& hold);
    /// Null when there is no memory: nothing is sent then, and the hold, which was given up, ends with its lease.
    std::shared_ptr<HoldCall> takeCall(Hold& hold) noexcept;
    /// Goes on with a release that nobody waits for any more.
    void goOn(Hold& hold, ReleaseMachine machine);
    /// A release is over, one way or the other.
    void over(Hold& hold, Unlocked how);
    /// A name was freed where its slot is just being moved to. Those who wait listen where the slot comes from, and
    /// would not hear of it: tells them there.
    void tellAtSource(NamedLock& named) noexcept;

private:
    class Run;
    static constexpr std::size_t maxIdle = 128; ///< runs kept for the next releases

    void begins(Hold& hold) noexcept;
    template <class... What>
    Unlocked start(Hold& hold, What... what);
    void startRest(Hold& hold, const ReleaseMachine& machine, bool letsFollow) noexcept;

    Core& core_;
    std::vector<std::shared_ptr<Run>> idle_;
};

} // namespace redislock::detail
