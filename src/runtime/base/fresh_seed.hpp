/// @file
/// Seeds for random numbers.
#pragma once

#include "redislock/clock.hpp"

#include <atomic>
#include <cstdint>
#include <random>

namespace redislock::detail {

/// A seed for the random part of pauses. Costs no system call but the first time; the clock makes the seeds of a forked
/// child differ from its parent's.
inline std::uint64_t freshSeed()
{
    static const std::uint64_t process = std::random_device()();
    static std::atomic<std::uint64_t> calls{0};
    const auto now = static_cast<std::uint64_t>(BootClock::now().time_since_epoch().count());
    return (process << 32U) ^ (calls.fetch_add(1, std::memory_order_relaxed) << 48U) ^ now;
}

} // namespace redislock::detail
