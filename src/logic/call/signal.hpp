/// @file
/// One thread sleeps, others wake it.
#pragma once

#include "redislock/clock.hpp"

#include <atomic>
#include <cstdint>

namespace redislock::detail {

/// A wake-up for one sleeping thread: a futex with two sticky reasons. Raising costs a system call only if the thread
/// sleeps.
///
/// A reason must be raised while the owner of the signal cannot go away (under the mutex that guards the owner's list),
/// but the system call may be left for later: wake() uses the address alone. Sleeping and waking are in the transport's
/// signal.cpp.
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

    /// Lets other threads of this processor run for a moment.
    ///
    /// Where other programs want the processors, a yield gives a whole time slice away, while a sleeping thread runs
    /// soon after it is woken. So a yield that took long is the last for many calls. @return false when this one took
    /// long, or was left out.
    static bool letOthersRun() noexcept;

    /// Lets others run several times, until a reason is raised: an answer that comes meanwhile costs neither a wake-up
    /// nor a sleep. With nobody else to run, this takes some microseconds.
    void yieldAwhile() const noexcept;

    /// Sleeps until a reason is raised. @return the reasons, 0 when `until` came first. Clears `look`.
    std::uint32_t waitUntil(TimePoint until) noexcept;

    /// Takes `done` back, for the next use of the signal.
    void clearDone() noexcept { word_.fetch_and(~done, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t asleep = 4;
    std::atomic<std::uint32_t> word_{0};
};

} // namespace redislock::detail
