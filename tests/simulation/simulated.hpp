/// @file
/// A run of the simulation with any population.
#pragma once

#include "simulation/faults.hpp"
#include "simulation/trace.hpp"

namespace redislock::simulation {

/// The longest time of a fault, and of a message under way.
inline constexpr VirtualTime longestTrouble = std::chrono::seconds(12);
inline constexpr VirtualTime longestDelay = std::chrono::seconds(8);
inline constexpr VirtualTime longestAbsence = std::chrono::seconds(2); ///< the longest absence of a crashed process

class Simulated {
public:
    Simulated() = default;
    Simulated(const Simulated&) = delete;
    Simulated& operator=(const Simulated&) = delete;
    virtual ~Simulated() = default;

    /// @throws Violation when a rule was broken.
    virtual void run() = 0;
    [[nodiscard]] virtual const Statistics& statistics() const noexcept = 0;
    [[nodiscard]] virtual const Trace& trace() const noexcept = 0;
};

} // namespace redislock::simulation
