/// @file
/// The nested levels of one hold.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/lease.hpp"
#include "redislock/lease_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace redislock::detail {

/// Who ends a level.
enum class EndedBy : std::uint8_t {
    thread, ///< unlock() of the thread that took it
    guard,  ///< its LockGuard
};

/// One lock() of a hold that has not been ended.
struct HoldLevel {
    std::uint64_t id = 0;
    Lease lease = keepRenewing;
    TimePoint validUntil{}; ///< of a fixed lease, once granted; a renewed one shares the hold's
    EndedBy endedBy = EndedBy::thread;
};

/// The levels of one outermost hold and what follows from them: until when it is valid, whether it is renewed, what lease an
/// inner unlock needs in Redis. Not thread-safe; holds no clock.
class HoldLevels {
public:
    /// Adds a level that is not granted yet. @return its id, unique within the hold.
    std::uint64_t add(Lease lease, EndedBy endedBy)
    {
        if (!isRenewed()) {
            renewedUntil_ = TimePoint{}; // of renewed levels that have ended: nothing of theirs is left
        }
        levels_.push_back({++lastId_, lease, TimePoint{}, endedBy});
        return lastId_;
    }

    /// A level was granted, or (for a renewed one) all renewed levels were renewed, until then. Never shortens.
    void granted(std::uint64_t id, TimePoint validUntil) noexcept
    {
        for (auto& level : levels_) {
            if (level.id == id) {
                auto& until = level.lease.isRenewed() ? renewedUntil_ : level.validUntil;
                until = std::max(until, validUntil);
            }
        }
    }
    void renewed(TimePoint validUntil) noexcept { renewedUntil_ = std::max(renewedUntil_, validUntil); }

    /// Ends a level. @return whether it was there.
    bool remove(std::uint64_t id) noexcept
    {
        return std::erase_if(levels_, [id](const HoldLevel& level) { return level.id == id; }) > 0;
    }

    /// The level that unlock() of the thread ends; 0 when all belong to guards.
    [[nodiscard]] std::uint64_t innermostOfThread() const noexcept
    {
        const auto found = std::find_if(levels_.rbegin(), levels_.rend(),
                                        [](const HoldLevel& level) { return level.endedBy == EndedBy::thread; });
        return found == levels_.rend() ? 0 : found->id;
    }

    /// How many levels unlock() still has to end.
    [[nodiscard]] std::uint32_t countOfThread() const noexcept
    {
        return static_cast<std::uint32_t>(std::count_if(
            levels_.begin(), levels_.end(), [](const HoldLevel& level) { return level.endedBy == EndedBy::thread; }));
    }

    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(levels_.size()); }

    /// Whether the watchdog must renew: while any level asks for it.
    [[nodiscard]] bool isRenewed() const noexcept
    {
        return std::any_of(levels_.begin(), levels_.end(), [](const HoldLevel& l) { return l.lease.isRenewed(); });
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

    /// The lease that Redis must be left with so that the remaining levels get what they were granted; a renewed one a whole
    /// lease. At least 1 ms.
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

    /// Forgets everything, for the next hold; keeps its memory.
    void clear() noexcept
    {
        levels_.clear();
        renewedUntil_ = TimePoint{};
    }

private:
    std::vector<HoldLevel> levels_;
    TimePoint renewedUntil_{};
    std::uint64_t lastId_ = 0;
};

} // namespace redislock::detail
