/// @file
/// Whether it pays to let other threads run.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// Leaves yields out where they cost more than they save, for all threads together.
///
/// A thread that yields instead of sleeping saves a wake-up. But where other programs want the processors, a yield
/// gives a whole time slice away, while a sleeping thread runs soon after it is woken. So a long yield costs what many
/// short ones have saved; when that is used up, many calls go without.
///
/// **Thread safety**: safe. Calls at the same time may be counted as one: this is a measure, no account.
class YieldBudget {
public:
    /// A yield that takes longer is long.
    static constexpr std::chrono::milliseconds slice{1};
    /// So many short yields pay for a long one.
    static constexpr std::int32_t price = 64;
    /// What can be saved.
    static constexpr std::int32_t most = 16 * price;
    /// So many calls go without when a long yield cannot be paid for.
    static constexpr std::int32_t without = 10000;

    /// Asks before each yield. @return false for a call that goes without.
    bool take() noexcept
    {
        if (without_.load(std::memory_order_relaxed) <= 0) {
            return true;
        }
        without_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }

    /// Tells how long a yield took.
    void took(std::chrono::nanoseconds time) noexcept
    {
        const auto saved = saved_.load(std::memory_order_relaxed);
        if (time <= slice) {
            saved_.store(std::min(saved + 1, most), std::memory_order_relaxed);
        } else if (saved >= price) {
            saved_.store(saved - price, std::memory_order_relaxed);
        } else {
            saved_.store(0, std::memory_order_relaxed);
            without_.store(without, std::memory_order_relaxed);
        }
    }

private:
    std::atomic<std::int32_t> saved_{most};
    std::atomic<std::int32_t> without_{0}; ///< so many calls go without
};

} // namespace redislock::detail
