/// @file
/// Threads that are interrupted where it matters.
#pragma once

#include <chrono>
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

/// While it lives, the thread that made it sleeps once, at a chosen one of those places: others do all they have to do
/// meanwhile. One at a time in a thread.
class Pause {
public:
    /// @param place which one, counted by this thread from here on; the first is 0.
    Pause(int place, std::chrono::milliseconds time) noexcept;
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

    /// Whether the thread has come to that place.
    [[nodiscard]] bool happened() const noexcept;
};

} // namespace redislock::test
