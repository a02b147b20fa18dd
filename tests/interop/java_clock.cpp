// A library to preload into a JVM: its wall clock is ahead by as many seconds as REDISLOCK_TEST_CLOCK_AHEAD says. Where
// it reads any other clock nothing is changed: its waits take as long as they should.
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
