// How a thread sleeps on a signal, and is woken: the futex behind it.
#include "link/request/signal.hpp"
#include "link/request/patience.hpp"
#include "link/yield_budget.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace redislock::detail {

bool awaitMemory(int failures) noexcept
{
    constexpr int most = 100;
    if (failures > 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return failures <= most;
}

void Signal::wake(const void* address) noexcept
{
    ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Signal::Yield Signal::letOthersRun() noexcept
{
    constexpr std::chrono::microseconds aSwitch{1}; // a yield that finds nobody else to run takes less
    static YieldBudget budget;
    if (!budget.take()) {
        return Yield::leftOut;
    }
    const auto before = BootClock::now();
    ::sched_yield();
    const auto time = BootClock::now() - before;
    budget.took(time);
    return time < aSwitch ? Yield::alone : time <= YieldBudget::slice ? Yield::others : Yield::leftOut;
}

void Signal::yieldAwhile(std::chrono::nanoseconds most) const noexcept
{
    constexpr int least = 20;
    const TimePoint until = BootClock::now() + most;
    int alone = 0;
    for (int i = 1; (word_.load(std::memory_order_acquire) & (look | done)) == 0; ++i) {
        const auto yield = letOthersRun();
        alone += yield == Yield::alone ? 1 : 0;
        if (yield == Yield::leftOut || (i >= least && (alone >= least || BootClock::now() >= until))) {
            return;
        }
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
