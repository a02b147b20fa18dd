/// @file
/// The nested levels of one hold.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/lease.hpp"
#include "redislock/detail/logic/mostly_one.hpp"
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
    group,  ///< the group that it is a member of
};

/// One lock() of a hold that has not been ended.
struct HoldLevel {
    Lease lease = keepRenewing;
    TimePoint validUntil{}; ///< of a fixed lease, once granted; a renewed one shares the hold's
    std::uint32_t id = 0;
    EndedBy endedBy = EndedBy::thread;
};

/// The levels of one outermost hold and what follows from them: until when it is valid, whether it is renewed, what
/// lease an inner unlock needs in Redis. Not thread-safe; holds no clock.
class HoldLevels {
public:
    /// Adds a level that is not granted yet. @return its id: not 0, and none of the last four thousand million.
    std::uint32_t add(Lease lease, EndedBy endedBy)
    {
        if (!isRenewed()) {
            renewedUntil_ = TimePoint{}; // of renewed levels that have ended: nothing of theirs is left
        }
        lastId_ = lastId_ == UINT32_MAX ? 1 : lastId_ + 1;
        levels_.add({lease, TimePoint{}, lastId_, endedBy});
        return lastId_;
    }

    /// A level was granted, or (for a renewed one) all renewed levels were renewed, until then. Never shortens.
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

    /// The hold is passed on: the level that the next caller asks for, a renewed one as the last of these was, takes
    /// the place of all, and is valid as long. @return its id
    std::uint32_t passTo(const HoldLevels& next)
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

    /// The level that unlock() of the thread ends; 0 when all belong to guards.
    [[nodiscard]] std::uint32_t innermostOfThread() const noexcept
    {
        std::uint32_t innermost = 0;
        for (const auto& level : levels_) {
            innermost = level.endedBy == EndedBy::thread ? level.id : innermost;
        }
        return innermost;
    }

    /// How many levels unlock() still has to end.
    [[nodiscard]] std::uint32_t countOfThread() const noexcept
    {
        return static_cast<std::uint32_t>(std::ranges::count(levels_, EndedBy::thread, &HoldLevel::endedBy));
    }

    /// Whether nothing is left without that level.
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

    /// The lease that a level was asked for with; 0 when it has ended.
    [[nodiscard]] std::chrono::milliseconds leaseOf(std::uint32_t id, std::chrono::milliseconds renewedLease) const
    {
        for (const auto& level : levels_) {
            if (level.id == id) {
                return level.lease.isRenewed() ? renewedLease : level.lease.fixed();
            }
        }
        return {};
    }

    /// The lease that Redis must be left with so that the remaining levels get what they were granted; a renewed one a
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

    /// Whether the watchdog is to send anything: for a renewed lease, and, where others' requests may shorten what
    /// Redis was given (@p othersSetIt: Redisson's readers give the key of all of them their own time), for a fixed one
    /// of which more is left than of a renewed one, which is what others give; less cannot be cut.
    [[nodiscard]] bool mustRenew(TimePoint now, std::chrono::milliseconds renewedLease, bool othersSetIt) const
    {
        return isRenewed() || (othersSetIt && validUntil() - now > renewedLease);
    }

    /// What it then sends: a whole renewed lease, or where others' requests may shorten it the longest rest of all. It
    /// does not prolong a fixed lease, also when the renewed one has ended since.
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
    [[no_unique_address]] MostlyOne<HoldLevel> levels_; // the next member lies in its padding
    std::uint32_t lastId_ = 0;
    TimePoint renewedUntil_{};
};

} // namespace redislock::detail
