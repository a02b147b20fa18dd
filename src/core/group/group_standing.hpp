/// @file
/// Whether a group is held, judged by its members.
#pragma once

#include "core/group/group_machine.hpp"
#include "redislock/clock.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The members of one try at a group, and the hold if the try succeeds: pure. Its owner guards it with a mutex.
class GroupStanding {
public:
    /// What has just become of the group.
    enum class Verdict : std::uint8_t { asBefore, atRisk, lost };

    /// @param needed how many of the members.
    GroupStanding(std::size_t members, std::size_t needed) : members_(members), needed_(needed) {}

    /// A member was granted. @return false: too late, the member is to be given back.
    bool granted(std::size_t member) noexcept { return isOpen() && (members_[member].isGranted = true); }
    /// The try succeeded: from now on it counts which members are lost, including those already lost.
    Verdict keep() noexcept
    {
        if (phase_ == Phase::trying) {
            phase_ = Phase::held;
        }
        return judge();
    }
    /// A member is lost, or at risk.
    Verdict hurt(std::size_t member, StopAt how) noexcept
    {
        (how == StopAt::lost ? members_[member].isLost : members_[member].isAtRisk) = true;
        return judge();
    }
    /// Everything is to be given back. @return false: it has been already, or it is lost.
    bool end() noexcept { return isOpen() && (phase_ = Phase::ended, true); }

    /// Whether members are tried or held.
    [[nodiscard]] bool isOpen() const noexcept { return phase_ == Phase::trying || phase_ == Phase::held; }
    [[nodiscard]] bool isHeld() const noexcept { return phase_ == Phase::held; }
    /// Whether a member was granted before the end; after the end this does not change.
    [[nodiscard]] bool isGranted(std::size_t member) const noexcept { return members_[member].isGranted; }
    [[nodiscard]] bool isLost(std::size_t member) const noexcept { return members_[member].isLost; }
    /// @param deadlines those of the valid members.
    [[nodiscard]] TimePoint validUntil(std::span<TimePoint> deadlines) const noexcept
    {
        return isHeld() ? validityOf(deadlines, needed_) : TimePoint{};
    }

private:
    enum class Phase : std::uint8_t { trying, held, ended, lost };
    struct Member {
        bool isGranted = false;
        bool isLost = false;
        bool isAtRisk = false;
    };

    Verdict judge() noexcept
    {
        if (phase_ != Phase::held || isEnough(StopAt::atRisk)) {
            return Verdict::asBefore;
        }
        if (isEnough(StopAt::lost)) {
            return Verdict::atRisk;
        }
        phase_ = Phase::lost;
        return Verdict::lost;
    }
    /// Whether enough members are left when those that are lost, or at risk, do not count.
    [[nodiscard]] bool isEnough(StopAt without) const noexcept
    {
        const auto left = std::ranges::count_if(members_, [without](const Member& member) {
            return member.isGranted && !member.isLost && (without == StopAt::lost || !member.isAtRisk);
        });
        return static_cast<std::size_t>(left) >= needed_;
    }

    std::vector<Member> members_;
    const std::size_t needed_;
    Phase phase_ = Phase::trying;
};

/// Counts the releases of the members of one group.
class GroupRelease {
public:
    /// @param asked how many members are given back; there may be none. @param needed how many of these releases.
    GroupRelease(std::size_t asked, std::size_t needed) noexcept : open_(asked), needed_(needed) {}

    /// @return how the release of the group ended, once, as soon as that is certain.
    std::optional<Unlocked> count(Unlocked how) noexcept
    {
        --open_;
        released_ += how == Unlocked::released ? 1U : 0U;
        unconfirmed_ += how == Unlocked::unconfirmed ? 1U : 0U;
        const bool isCertain = released_ >= needed_ || open_ == 0;
        if (!isCertain || std::exchange(isTold_, true)) {
            return std::nullopt;
        }
        return released_ >= needed_                  ? Unlocked::released
               : released_ + unconfirmed_ >= needed_ ? Unlocked::unconfirmed
                                                     : Unlocked::alreadyLost;
    }

private:
    std::size_t open_;
    const std::size_t needed_;
    std::size_t released_ = 0;
    std::size_t unconfirmed_ = 0;
    bool isTold_ = false;
};

} // namespace redislock::detail
