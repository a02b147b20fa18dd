/// @file
/// Interrupts threads at critical places.
#pragma once

#include <chrono>
#include <cstdint>

namespace redislock::test {

/// While this object lives, threads let others run at some of the places where the library locks or unlocks a mutex,
/// sleeps or wakes: at these places one thread hands on to another, and no scheduler of a test machine would try all
/// orders.
///
/// Only in programs that are linked with `redislock_with_yields()`.
class Yields {
public:
    /// @param oneIn a thread yields at one of @p oneIn places, at random.
    explicit Yields(std::uint32_t oneIn) noexcept;
    Yields(const Yields&) = delete;
    Yields& operator=(const Yields&) = delete;
    ~Yields();

    /// How often threads have yielded so far.
    [[nodiscard]] static std::uint64_t count() noexcept;
};

/// While this object lives, the thread that made it sleeps once, at a chosen one of these places, and other threads
/// finish their work meanwhile. One object at a time in a thread.
class Pause {
public:
    /// @param place the number of the place, counted by this thread from here on; the first is 0.
    Pause(int place, std::chrono::milliseconds time) noexcept;
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

    /// Whether the thread has come to that place.
    [[nodiscard]] bool happened() const noexcept;
};

} // namespace redislock::test
