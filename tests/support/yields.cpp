// The functions that the linker puts in front of the system's own.
#include "support/yields.hpp"

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <pthread.h>
#include <sched.h>
#include <thread>

namespace redislock::test {

namespace {

std::atomic<std::uint32_t> often{0}; ///< 0: never
std::atomic<std::uint64_t> yields{0};

std::uint32_t draw() noexcept
{
    static std::atomic<std::uint32_t> threads{0};
    thread_local std::uint32_t state = 2463534242U + threads.fetch_add(1, std::memory_order_relaxed) * 668265263U;
    state ^= state << 13U;
    state ^= state >> 17U;
    state ^= state << 5U;
    return state;
}

thread_local int placesToPause = -1; ///< below 0: none is left
thread_local std::chrono::milliseconds pause{0};

void letOthersRun() noexcept
{
    if (placesToPause >= 0 && placesToPause-- == 0) {
        std::this_thread::sleep_for(pause);
    }
    const auto oneIn = often.load(std::memory_order_relaxed);
    if (oneIn == 0 || draw() % oneIn != 0) {
        return;
    }
    yields.fetch_add(1, std::memory_order_relaxed);
    if (draw() % 16 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(50)); // until after the threads that were just woken
    } else {
        ::sched_yield();
    }
}

} // namespace

Yields::Yields(std::uint32_t oneIn) noexcept
{
    often = oneIn;
}

Yields::~Yields()
{
    often = 0;
}

std::uint64_t Yields::count() noexcept
{
    return yields;
}

Pause::Pause(int place, std::chrono::milliseconds time) noexcept
{
    pause = time;
    placesToPause = place;
}

Pause::~Pause()
{
    placesToPause = -1;
}

bool Pause::happened() const noexcept
{
    return placesToPause < 0;
}

} // namespace redislock::test

// The names are the linker's: --wrap.
extern "C" {
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
long __real_syscall(long number, ...);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex)
{
    redislock::test::letOthersRun();
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex)
{
    const int result = __real_pthread_mutex_unlock(mutex);
    redislock::test::letOthersRun();
    return result;
}

/// Reads six arguments, as the system's own function does. Where a caller gives fewer, the last one is whatever the
/// caller's stack holds there, which AddressSanitizer would report.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    std::va_list list;
    va_start(list, number);
    long arguments[6];
    for (long& argument : arguments) {
        argument = va_arg(list, long);
    }
    va_end(list);
    redislock::test::letOthersRun();
    const long result =
        __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return result;
}
}
