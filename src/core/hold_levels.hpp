/// @file
/// The nested levels of one hold.
#pragma once

#include "core/machine/lock_answer.hpp"
#include "core/share/compact_list.hpp"
#include "redislock/clock.hpp"
#include "redislock/lease_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redislock::detail {

/// Who ends a level.
enum class EndedBy : std::uint8_t {
    thread, ///< unlock() of the thread that took it
    guard,  ///< its LockGuard
    group,  ///< the group whose member the lock is
};

/// One lock() that has not been unlocked.
struct HoldLevel {
    Lease lease = keepRenewing;
    TimePoint validUntil{}; ///< of a fixed lease, once granted; renewed levels share one deadline of the hold
    std::uint32_t id = 0;
    EndedBy endedBy = EndedBy::thread;
};

/// The levels of one outermost hold, and what follows from them: until when the hold is valid, whether it is renewed,
/// what lease Redis must keep when an inner level ends. Not thread-safe; has no clock.
class HoldLevels {
public:
    /// Adds a level that is not granted yet. @return its id: not 0, and different from the last four thousand million.
    std::uint32_t add(Lease lease, EndedBy endedBy)
    {
        if (!isRenewed()) {
            renewedUntil_ = TimePoint{}; // that was for renewed levels, which have all ended
        }
        lastId_ = lastId_ == UINT32_MAX ? 1 : lastId_ + 1;
        levels_.add({lease, TimePoint{}, lastId_, endedBy});
        return lastId_;
    }

    /// A level was granted, or (a renewed one) all renewed levels were renewed, until @p validUntil. Never shortens.
    void granted(std::uint32_t id, TimePoint validUntil) noexcept
    {
        for (auto& level : levels_) {
            if (level.id == id) {
                auto& until = level.lease.isRenewed() ? renewedUntil_ : level.validUntil;
                until = std::max(until, validUntil);
            }
        }
    }
    void renewed(TimePoint validUntil) noexcept { renewedUntil_ = std::max(renewedUntil_, validUntil); }

    /// The hold is inherited: all levels are replaced by the one that the next caller asks for. Both are renewed, so
    /// the deadline stays. @return the id of the new level
    std::uint32_t replaceWith(const HoldLevels& next)
    {
        const TimePoint until = renewedUntil_;
        clear();
        const auto id = add(next.levels_[0].lease, next.levels_[0].endedBy);
        renewed(until);
        return id;
    }

    /// Ends a level. @return whether it was there.
    bool remove(std::uint32_t id) noexcept
    {
        for (std::size_t i = 0; i < levels_.size(); ++i) {
            if (levels_[i].id == id) {
                levels_.take(i);
                return true;
            }
        }
        return false;
    }

    /// The level that the thread's next unlock() ends; 0 when all levels belong to guards.
    [[nodiscard]] std::uint32_t innermostOfThread() const noexcept
    {
        std::uint32_t innermost = 0;
        for (const auto& level : levels_) {
            innermost = level.endedBy == EndedBy::thread ? level.id : innermost;
        }
        return innermost;
    }

    /// How many levels the thread still has to unlock.
    [[nodiscard]] std::uint32_t countOfThread() const noexcept
    {
        return static_cast<std::uint32_t>(std::ranges::count(levels_, EndedBy::thread, &HoldLevel::endedBy));
    }

    /// Whether this is the only level.
    [[nodiscard]] bool isOnly(std::uint32_t id) const noexcept { return count() == 1 && levels_[0].id == id; }

    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(levels_.size()); }

    /// Whether the watchdog must renew: while any level asks for it.
    [[nodiscard]] bool isRenewed() const noexcept
    {
        return std::ranges::any_of(levels_, [](const HoldLevel& level) { return level.lease.isRenewed(); });
    }

    /// The latest of the levels' deadlines.
    [[nodiscard]] TimePoint validUntil() const noexcept
    {
        TimePoint until{};
        for (const auto& level : levels_) {
            until = std::max(until, level.lease.isRenewed() ? renewedUntil_ : level.validUntil);
        }
        return until;
    }

    /// The lease with which a level was asked for; 0 when the level has ended.
    [[nodiscard]] std::chrono::milliseconds leaseOf(std::uint32_t id, std::chrono::milliseconds renewedLease) const
    {
        for (const auto& level : levels_) {
            if (level.id == id) {
                return level.lease.isRenewed() ? renewedLease : level.lease.fixed();
            }
        }
        return {};
    }

    /// The lease that Redis must keep so that the remaining levels get what they were granted; for a renewed level, a
    /// whole lease. At least 1 ms.
    [[nodiscard]] std::chrono::milliseconds leaseToLeave(TimePoint now, std::chrono::milliseconds renewedLease) const
    {
        std::chrono::milliseconds left{1};
        for (const auto& level : levels_) {
            const auto fixedEnd = level.validUntil + driftOf(level.lease.fixed());
            left =
                std::max(left, level.lease.isRenewed() ? renewedLease
                                                       : std::chrono::ceil<std::chrono::milliseconds>(fixedEnd - now));
        }
        return left;
    }

    /// Whether the watchdog must send anything: for a renewed lease, always. For a fixed one, only if others' requests
    /// may shorten what Redis was given (@p othersSetIt: a reader of Redisson's gives the key of all readers its own
    /// time) and more of it is left than of a renewed lease, which is what others give; less cannot be cut.
    [[nodiscard]] bool mustRenew(TimePoint now, std::chrono::milliseconds renewedLease, bool othersSetIt) const
    {
        return isRenewed() || (othersSetIt && validUntil() - now > renewedLease);
    }

    /// The lease that the watchdog sends then: a whole renewed lease or, where others' requests may shorten it, the
    /// longest that any level has left. Does not prolong a fixed lease, even if a renewed level has ended since.
    [[nodiscard]] std::chrono::milliseconds leaseToRenew(TimePoint now, std::chrono::milliseconds renewedLease,
                                                         bool othersSetIt) const
    {
        return isRenewed() && !othersSetIt ? renewedLease : std::max(minLease, leaseToLeave(now, renewedLease));
    }

    /// Forgets everything, for the next hold; keeps its memory.
    void clear() noexcept
    {
        levels_.clear();
        renewedUntil_ = TimePoint{};
    }

private:
    [[no_unique_address]] CompactList<HoldLevel> levels_; // the next member lies in this one's padding
    std::uint32_t lastId_ = 0;
    TimePoint renewedUntil_{};
};

} // namespace redislock::detail
