// A library to preload into a redis-server: its wall clock is off by the number of microseconds in the file that
// REDISLOCK_TEST_CLOCK names. For times to live Redis reads the clock only with gettimeofday().
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int64_t* mapped() noexcept
{
    const char* path = std::getenv("REDISLOCK_TEST_CLOCK");
    const int file = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return nullptr;
    }
    void* memory = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<const std::int64_t*>(memory);
}

} // namespace

extern "C" int gettimeofday(timeval* time, void* zone) noexcept
{
    static const volatile std::int64_t* const offset = mapped();
    const long result = ::syscall(SYS_gettimeofday, time, zone);
    if (result == 0 && offset != nullptr) {
        constexpr std::int64_t second = 1'000'000;
        const std::int64_t shifted = time->tv_sec * second + time->tv_usec + *offset;
        time->tv_sec = shifted / second;
        time->tv_usec = shifted % second;
    }
    return static_cast<int>(result);
}
