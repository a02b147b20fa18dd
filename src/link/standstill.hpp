/// @file
/// Times in which this process stood still.
#pragma once

#include "link/request/signal.hpp"
#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// What a thread that waits for an answer knows about the times in which it stood still, because the whole process or
/// machine did. Nobody could read an answer then, so those times are no silence of the server. The thread never sleeps
/// for longer than a nap at a time: a much longer time between two notes shows a standstill.
class Standstill {
public:
    /// @param since when the thread was last known to be awake, before it began to wait.
    explicit Standstill(TimePoint since) noexcept : awakeAt_(since) {}

    /// Notes that the thread is awake. @return the time now.
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

    /// Whether what came during the last standstill has been read. @param emptyAt a thread that began to look then
    /// found nothing more. After a second the answer is yes in any case: the thread that is to read may hang.
    [[nodiscard]] bool isOver(TimePoint emptyAt, TimePoint now) const noexcept
    {
        constexpr std::chrono::seconds most(1);
        return emptyAt >= end_ || now >= end_ + most;
    }

    /// The length of all standstills together.
    [[nodiscard]] std::chrono::nanoseconds time() const noexcept { return time_; }

private:
    static constexpr std::chrono::milliseconds nap{200};
    static constexpr std::chrono::milliseconds lateness{50}; ///< how late a thread may wake on a busy machine

    TimePoint awakeAt_;
    std::chrono::nanoseconds time_{0};
    TimePoint end_{}; ///< end of the last standstill
};

} // namespace redislock::detail
