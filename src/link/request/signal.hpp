/// @file
/// One thread sleeps, others wake it.
#pragma once

#include "redislock/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// A wake-up for one sleeping thread: a futex with two sticky reasons. Raising costs a system call only if the thread
/// sleeps.
///
/// A reason must be raised while the owner of the signal cannot go away (under the mutex that guards the owner's list),
/// but the system call may be left for later: wake() uses the address alone.
class Signal {
public:
    static constexpr std::uint32_t look = 1; ///< something changed: judge again; cleared by waiting
    static constexpr std::uint32_t done = 2; ///< the awaited answer is there; stays

    /// Raises a reason. @return whether wake(address()) must be called.
    [[nodiscard]] bool raise(std::uint32_t reason) noexcept
    {
        return (word_.fetch_or(reason, std::memory_order_acq_rel) & asleep) != 0;
    }

    /// Raises a reason and wakes at once.
    void notify(std::uint32_t reason) noexcept
    {
        if (raise(reason)) {
            wake(address());
        }
    }

    [[nodiscard]] const void* address() const noexcept { return &word_; }

    static void wake(const void* address) noexcept;

    enum class Yield : std::uint8_t {
        alone,   ///< nobody else wanted to run
        others,  ///< another thread ran
        leftOut, ///< did not yield, or gave away a whole time slice: better sleep (see YieldBudget)
    };

    /// Lets other threads of this processor run for a moment.
    static Yield letOthersRun() noexcept;

    /// Lets others run several times, until a reason is raised: an answer that comes meanwhile costs neither a wake-up
    /// nor a sleep. Goes on until @p most is over while others do run; with nobody else to run, this takes some
    /// microseconds.
    void yieldAwhile(std::chrono::nanoseconds most) const noexcept;

    /// Sleeps until a reason is raised. @return the reasons, 0 when `until` came first. Clears `look`.
    std::uint32_t waitUntil(TimePoint until) noexcept;

    /// Takes `done` back, for the next use of the signal.
    void clearDone() noexcept { word_.fetch_and(~done, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t asleep = 4;
    std::atomic<std::uint32_t> word_{0};
};

} // namespace redislock::detail
