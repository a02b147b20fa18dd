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
/// Who raises it must do so while the owner cannot go away (under the lock that guards the owner's list), but may leave
/// the system call for after that lock: wake() uses the address alone. What sleeps and wakes is in the transport's
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
    /// Where other programs want the processors a yield gives a whole slice away, while who sleeps is run soon after it
    /// is woken. So a yield that took long is the last for many calls. @return false when it was, or was left out.
    static bool letOthersRun() noexcept;

    /// Lets others run several times, until a reason is raised: an answer that comes while its owner does so costs
    /// neither a wake-up nor a sleep. With nobody else to run this takes some microseconds.
    void yieldAwhile() const noexcept;

    /// Sleeps until a reason is raised. @return the reasons, 0 when `until` came first. Clears `look`.
    std::uint32_t waitUntil(TimePoint until) noexcept;

    /// Takes `done` back, for the next use of what it stands for.
    void clearDone() noexcept { word_.fetch_and(~done, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t asleep = 4;
    std::atomic<std::uint32_t> word_{0};
};

} // namespace redislock::detail
