/// @file
/// Who else must have a lock before its caller is told that it has it.
#pragma once

#include "redislock/requirements.hpp"

#include <chrono>
#include <cstdint>

namespace redislock {

/// How much of a fail-over a grant survives. A master that dies takes with it what its replicas do not have yet: a lock
/// that it granted in its last moments, and that another then gets too. With a durability, a grant is told to its
/// caller only when so many others have it; otherwise it is given back, and the call fails with `Errc::notDurable`.
///
/// It is a promise about the moment of the grant. It holds through a fail-over if one of the replicas that have the
/// grant becomes the master: so ask for all of them, or for as many as Sentinel's choice cannot avoid. Renewals and
/// releases wait for nobody. Semaphores and latches have no durability.
///
/// **Cost**: one round trip more for a grant, on a connection of its own that grants share: what other threads do
/// without a durability is not held up.
struct Durability {
    /// Where a grant must be before its caller has it.
    enum class Level : std::uint8_t {
        none,     ///< the master alone
        replicas, ///< so many replicas have it in memory (`WAIT`)
        disk,     ///< the master and so many replicas have it in their append-only files (`WAITAOF`, Redis 7.2)
    };

    Level level = Level::none; ///< default `none`
    /// Of the replicas: 1 … 255, with `disk` 0 … 255.
    std::uint32_t count = 0;
    /// How long a grant may wait for them, 1 ms … 1 min, and no longer than the lease. Default 1 s. A call may take so
    /// much longer than its wait.
    std::chrono::milliseconds within{1000};

    /// Asks for nothing: a grant counts as soon as the master has it.
    static constexpr Durability none() noexcept { return {}; }
    /// Asks for replicas that have the grant in memory. @param count how many. @param within see the member.
    static constexpr Durability replicas(std::uint32_t count,
                                         std::chrono::milliseconds within = std::chrono::seconds(1)) noexcept
    {
        return {Level::replicas, count, within};
    }
    /// @param count of the replicas; 0: the master's own file is enough
    static constexpr Durability disk(std::uint32_t count,
                                     std::chrono::milliseconds within = std::chrono::seconds(1)) noexcept
    {
        return {Level::disk, count, within};
    }

    /// Whether what has this durability also has the other one.
    [[nodiscard]] constexpr bool covers(const Durability& other) const noexcept
    {
        return other.level == Level::none || (level >= other.level && count >= other.count);
    }

    friend constexpr bool operator==(const Durability&, const Durability&) noexcept = default;
};

} // namespace redislock
