/// @file
/// One thread sleeps, others wake it.
#pragma once

#include "redislock/clock.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace redislock::detail {

/// A wake-up for one sleeping thread: a futex with two sticky reasons. Raising costs a system call only if the thread sleeps.
///
/// Who raises it must do so while the owner cannot go away (under the lock that guards the owner's list), but may leave the
/// system call for after that lock: wake() uses the address alone.
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

    static void wake(const void* address) noexcept
    {
        ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }

    /// Lets other threads of this processor run for a moment.
    ///
    /// Where other programs want the processors a yield gives a whole slice away, while who sleeps is run soon after it is
    /// woken. So a yield that took long is the last for many calls. @return false when it was, or was left out.
    static bool letOthersRun() noexcept
    {
        constexpr std::chrono::milliseconds slice{1};
        constexpr int callsWithout = 10000;
        static std::atomic<int> without{0};
        if (without.load(std::memory_order_relaxed) > 0) {
            without.fetch_sub(1, std::memory_order_relaxed);
            return false;
        }
        const auto before = BootClock::now();
        ::sched_yield();
        if (BootClock::now() - before <= slice) {
            return true;
        }
        without.store(callsWithout, std::memory_order_relaxed);
        return false;
    }

    /// Lets others run several times, until a reason is raised: an answer that comes while its owner does so costs neither a
    /// wake-up nor a sleep. With nobody else to run this takes some microseconds.
    void yieldAwhile() const noexcept
    {
        constexpr int most = 20;
        for (int i = 0; i < most && (word_.load(std::memory_order_acquire) & (look | done)) == 0 && letOthersRun();
             ++i) {
        }
    }

    /// Sleeps until a reason is raised. @return the reasons, 0 when `until` came first. Clears `look`.
    std::uint32_t waitUntil(TimePoint until) noexcept
    {
        for (;;) {
            const std::uint32_t word = word_.load(std::memory_order_acquire);
            if ((word & (look | done)) != 0) {
                return word_.fetch_and(~(look | asleep), std::memory_order_acq_rel) & (look | done);
            }
            timespec limit{};
            if (until != TimePoint::max()) {
                const auto left = until - BootClock::now();
                if (left <= left.zero()) {
                    word_.fetch_and(~asleep, std::memory_order_acq_rel);
                    return 0;
                }
                limit.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000);
                limit.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
            }
            std::uint32_t expected = word;
            if ((word & asleep) != 0 || word_.compare_exchange_strong(expected, word | asleep)) {
                ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, word | asleep,
                          until == TimePoint::max() ? nullptr : &limit, nullptr, 0);
            }
        }
    }

    /// Takes `done` back, for the next use of what it stands for.
    void clearDone() noexcept { word_.fetch_and(~done, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t asleep = 4;
    std::atomic<std::uint32_t> word_{0};
};

} // namespace redislock::detail
