/// @file
/// Durabilities in words, and what they may be.
#pragma once

#include "redislock/durability.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redislock::detail {

constexpr std::string_view durabilityRange =
    "must be replicas:1 to replicas:255, or disk:0 to disk:255, within 1 ms to 1 min";

constexpr bool isInRange(const Durability& durability) noexcept
{
    constexpr std::uint32_t mostReplicas = 255;
    const std::uint32_t least = durability.level == Durability::Level::replicas ? 1 : 0;
    const bool isPossible = durability.count >= least && durability.count <= mostReplicas &&
                            durability.within >= std::chrono::milliseconds(1) &&
                            durability.within <= std::chrono::minutes(1);
    return durability.level == Durability::Level::none || isPossible;
}

/// "replicas:1 within 1000 ms"
inline std::string inWords(const Durability& durability)
{
    if (durability.level == Durability::Level::none) {
        return "none";
    }
    const char* const level = durability.level == Durability::Level::replicas ? "replicas:" : "disk:";
    return level + std::to_string(durability.count) + " within " + std::to_string(durability.within.count()) + " ms";
}

} // namespace redislock::detail
