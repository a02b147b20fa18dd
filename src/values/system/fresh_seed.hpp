/// @file
/// Seeds for random numbers.
#pragma once

#include "redislock/clock.hpp"

#include <sys/random.h>

#include <atomic>
#include <cstdint>

namespace redislock::detail {

/// A seed for the random part of pauses. Costs no system call but the first time; the clock makes the seeds of a forked
/// child differ from its parent's. Not by std::random_device: that asks the processor what it can do, and in a virtual
/// machine each such question is an exit to the host, 30 µs for a first client.
inline std::uint64_t freshSeed() noexcept
{
    static const std::uint64_t process = [] {
        std::uint64_t random = 0;
        (void)!::getrandom(&random, sizeof random, 0); // without it the clock alone tells processes apart
        return random;
    }();
    static std::atomic<std::uint64_t> calls{0};
    const auto now = static_cast<std::uint64_t>(BootClock::now().time_since_epoch().count());
    return (process << 32U) ^ (calls.fetch_add(1, std::memory_order_relaxed) << 48U) ^ now;
}

} // namespace redislock::detail
