/// @file
/// Waiting for a condition and measuring time in tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace redislock::test {

/// Nanoseconds since boot, suspends included (`CLOCK_BOOTTIME`): one clock for all processes of the host.
inline std::chrono::nanoseconds bootTime() noexcept
{
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// Measures the time since its construction or the last restart() on `CLOCK_BOOTTIME`.
class Stopwatch {
public:
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return bootTime() - start_; }

    [[nodiscard]] std::chrono::milliseconds elapsedMs() const noexcept
    {
        return std::chrono::duration_cast<std::chrono::milliseconds>(elapsed());
    }

    void restart() noexcept { start_ = bootTime(); }

private:
    std::chrono::nanoseconds start_ = bootTime();
};

/// Calls @p predicate again and again, in steps from 0.2 ms to 5 ms, until it returns true or @p timeout is over.
///
/// The predicate is called at least once, and once more after the time-out, so that a test on a busy machine does not
/// fail because it slept too long. An exception of the predicate ends the wait. The time-out matters only to a failing
/// test, so it is long. But it is below 20 s, after which a poll would wake a waiter that missed its message.
/// @return whether the predicate was true in the end.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate predicate, std::chrono::nanoseconds timeout = std::chrono::seconds(15))
{
    const Stopwatch watch;
    auto step = std::chrono::microseconds(200);
    while (!predicate()) {
        if (watch.elapsed() >= timeout) {
            return static_cast<bool>(predicate());
        }
        std::this_thread::sleep_for(step);
        step = std::min<std::chrono::microseconds>(step * 2, std::chrono::milliseconds(5));
    }
    return true;
}

} // namespace redislock::test
