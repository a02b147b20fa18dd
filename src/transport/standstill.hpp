/// @file
/// Times in which this process stood still.
#pragma once

#include "logic/call/signal.hpp"
#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// What a thread that waits for an answer knows of the times in which it stood still, with the whole process or the
/// machine under it: in them nobody could read an answer, so they are no silence of the server. It never waits for
/// longer than a nap at a time, so when it has nothing to note for much longer that tells.
class Standstill {
public:
    /// @param since when the thread was awake at last, before it began to wait.
    explicit Standstill(TimePoint since) noexcept : awakeAt_(since) {}

    /// The thread is awake. @return when.
    TimePoint note() noexcept
    {
        const TimePoint now = BootClock::now();
        if (now > awakeAt_ + nap + lateness) {
            time_ += now - awakeAt_ - nap;
            end_ = now;
        }
        awakeAt_ = now;
        return now;
    }

    /// Sleeps until a reason is raised. @return the reasons, 0 when `until` came first, or when this process stood
    /// still.
    std::uint32_t sleep(Signal& signal, TimePoint until) noexcept
    {
        for (;;) {
            const auto before = end_;
            const TimePoint wake = std::min(until, note() + nap);
            const auto reasons = signal.waitUntil(wake);
            note();
            if (reasons != 0 || wake == until || end_ != before) {
                return reasons;
            }
        }
    }

    /// Whether what came in the last one was looked at. @param emptyAt who began to look then found nothing more. It
    /// need not be waited for long: whoever is to look may hang.
    [[nodiscard]] bool isOver(TimePoint emptyAt, TimePoint now) const noexcept
    {
        constexpr std::chrono::seconds most(1);
        return emptyAt >= end_ || now >= end_ + most;
    }

    /// All of them.
    [[nodiscard]] std::chrono::nanoseconds time() const noexcept { return time_; }

private:
    static constexpr std::chrono::milliseconds nap{200};
    static constexpr std::chrono::milliseconds lateness{50}; ///< of a thread on a busy machine

    TimePoint awakeAt_;
    std::chrono::nanoseconds time_{0};
    TimePoint end_{}; ///< of the last one
};

} // namespace redislock::detail
