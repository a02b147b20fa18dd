// How a thread sleeps on a signal, and is woken: the futex behind it.
#include "logic/call/signal.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

namespace redislock::detail {

void Signal::wake(const void* address) noexcept
{
    ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool Signal::letOthersRun() noexcept
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

void Signal::yieldAwhile() const noexcept
{
    constexpr int most = 20;
    for (int i = 0; i < most && (word_.load(std::memory_order_acquire) & (look | done)) == 0 && letOthersRun(); ++i) {
    }
}

std::uint32_t Signal::waitUntil(TimePoint until) noexcept
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

} // namespace redislock::detail
