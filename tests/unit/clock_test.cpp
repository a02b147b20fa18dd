#include "redislock/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <type_traits>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

static_assert(std::chrono::is_clock_v<BootClock>);
static_assert(BootClock::is_steady);

nanoseconds systemTime(clockid_t clock)
{
    timespec t{};
    ::clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + nanoseconds(t.tv_nsec);
}

TEST(BootClock, IsTheSystemsBootTime)
{
    const nanoseconds before = systemTime(CLOCK_BOOTTIME);
    const nanoseconds now = BootClock::now().time_since_epoch();
    const nanoseconds after = systemTime(CLOCK_BOOTTIME);
    EXPECT_LE(before, now);
    EXPECT_LE(now, after);
    EXPECT_GE(now, systemTime(CLOCK_MONOTONIC) - (after - before) - 1s);
}

TEST(BootClock, NeverGoesBack)
{
    TimePoint last = BootClock::now();
    for (int i = 0; i < 10'000; ++i) {
        const TimePoint now = BootClock::now();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(SaturatingAdd, AddsWhatFitsAndStopsAtTheEnd)
{
    constexpr TimePoint start(1h);
    constexpr nanoseconds room = TimePoint::max() - start;
    struct Case {
        const char* name;
        TimePoint result;
        TimePoint expected;
    };
    const Case cases[] = {
        {"nothing", saturatingAdd(start, 0ns), start},
        {"one nanosecond", saturatingAdd(start, 1ns), start + 1ns},
        {"milliseconds", saturatingAdd(start, 1500ms), start + 1500ms},
        {"hours", saturatingAdd(start, 24h), start + 24h},
        {"negative", saturatingAdd(start, -1ms), start},
        {"most negative", saturatingAdd(start, milliseconds::min()), start},
        {"longest milliseconds", saturatingAdd(start, milliseconds::max()), TimePoint::max()},
        {"longest nanoseconds", saturatingAdd(start, nanoseconds::max()), TimePoint::max()},
        {"longest hours", saturatingAdd(start, std::chrono::hours::max()), TimePoint::max()},
        {"more than fits any clock", saturatingAdd(start, std::chrono::duration<double>(1e300)), TimePoint::max()},
        {"not a number", saturatingAdd(start, std::chrono::duration<double>(std::nan(""))), start},
        {"exactly the room", saturatingAdd(start, room), TimePoint::max()},
        {"two milliseconds less than the room", saturatingAdd(start, room - 2ms), TimePoint::max() - 2ms},
        {"from never on", saturatingAdd(TimePoint::max(), 1ms), TimePoint::max()},
        {"nothing from never on", saturatingAdd(TimePoint::max(), 0ms), TimePoint::max()},
        {"30 days from the start of the clock", saturatingAdd(TimePoint(), 720h), TimePoint(720h)},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.result.time_since_epoch(), c.expected.time_since_epoch()) << c.name;
    }
}

TEST(SaturatingAdd, CanBeUsedAtCompileTime)
{
    static_assert(saturatingAdd(TimePoint(1s), 2s) == TimePoint(3s));
    static_assert(saturatingAdd(TimePoint(1s), milliseconds::max()) == TimePoint::max());
}

} // namespace
} // namespace redislock
