// A library to preload into a JVM: its wall clock is ahead by the number of seconds in REDISLOCK_TEST_CLOCK_AHEAD.
// Other clocks are not changed: waits take as long as they should.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept
{
    static const char* const ahead = std::getenv("REDISLOCK_TEST_CLOCK_AHEAD");
    const long result = ::syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && ahead != nullptr) {
        time->tv_sec += std::atol(ahead);
    }
    return static_cast<int>(result);
}
