/// @file
/// Random numbers from a generator with a given seed.
#pragma once

#include "redislock/requirements.hpp"

#include <cstdint>

namespace redislock {

/// A small, fast, seedable generator for jitter (SplitMix64, Steele, Lea and Flood 2014). Not for secrets: identities
/// come from the operating system.
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe.
class Random {
public:
    /// @param seed equal seeds give equal numbers.
    explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

    /// The next 64 random bits.
    constexpr std::uint64_t next() noexcept
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    /// A number in [0, 1).
    constexpr double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

    /// A factor in [1 − spread, 1 + spread).
    constexpr double around(double spread) noexcept { return 1.0 + spread * (2.0 * unit() - 1.0); }

private:
    std::uint64_t state_;
};

} // namespace redislock
