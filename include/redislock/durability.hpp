/// @file
/// How many replicas must have a lock before the call that acquires it succeeds.
#pragma once

#include "redislock/requirements.hpp"

#include <chrono>
#include <cstdint>

namespace redislock {

/// Which fail-overs a grant survives. When a master dies, everything is lost that its replicas do not have yet: a lock
/// that it granted in its last moments may then be granted to another client too. With a durability, a call succeeds
/// only when the given number of replicas have the grant; otherwise the lock is released again, and the call fails with
/// `Errc::notDurable`.
///
/// It is a promise about the moment of the grant. The lock survives a fail-over if one of the replicas that have the
/// grant becomes the master: so ask for all of them, or for so many that Sentinel must choose one of them. Renewals and
/// releases do not wait for replicas. Semaphores and latches have no durability.
///
/// **Cost**: one more round trip for a grant, on a separate connection that all such grants share: calls of other
/// threads without a durability are not delayed.
struct Durability {
    /// Where a grant must be before its caller has it.
    enum class Level : std::uint8_t {
        none,     ///< the master alone
        replicas, ///< `count` replicas have it in memory (`WAIT`)
        disk,     ///< the master and `count` replicas have it in their append-only files (`WAITAOF`, Redis 7.2)
    };

    Level level = Level::none; ///< default `none`
    /// The number of replicas: 1 … 255, with `disk` 0 … 255.
    std::uint32_t count = 0;
    /// How long a grant may wait for them, 1 ms … 1 min, and no longer than the lease. Default 1 s. A call may take
    /// longer than its wait by this much.
    std::chrono::milliseconds within{1000};

    /// Asks for nothing: a grant counts as soon as the master has it.
    static constexpr Durability none() noexcept { return {}; }
    /// Asks for replicas that have the grant in memory. @param count how many. @param within see the member.
    static constexpr Durability replicas(std::uint32_t count,
                                         std::chrono::milliseconds within = std::chrono::seconds(1)) noexcept
    {
        return {Level::replicas, count, within};
    }
    /// @param count the number of replicas; 0: the master's own file is enough
    static constexpr Durability disk(std::uint32_t count,
                                     std::chrono::milliseconds within = std::chrono::seconds(1)) noexcept
    {
        return {Level::disk, count, within};
    }

    /// Whether a grant with this durability satisfies the other one too.
    [[nodiscard]] constexpr bool covers(const Durability& other) const noexcept
    {
        return other.level == Level::none || (level >= other.level && count >= other.count);
    }

    friend constexpr bool operator==(const Durability&, const Durability&) noexcept = default;
};

} // namespace redislock
