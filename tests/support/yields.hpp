/// @file
/// Threads that are interrupted where it matters.
#pragma once

#include <cstdint>

namespace redislock::test {

/// While it lives, threads let others run at some of the places where the library locks or unlocks a mutex, sleeps or
/// wakes: there one thread hands on to another, and no scheduler of a test machine tries all the orders by itself.
///
/// Only in programs that are linked with `redislock_with_yields()`.
class Yields {
public:
    /// @param oneIn of so many places, at random.
    explicit Yields(std::uint32_t oneIn) noexcept;
    Yields(const Yields&) = delete;
    Yields& operator=(const Yields&) = delete;
    ~Yields();

    /// How often threads did, so far.
    [[nodiscard]] static std::uint64_t count() noexcept;
};

} // namespace redislock::test
