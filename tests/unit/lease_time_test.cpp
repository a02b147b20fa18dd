#include "redislock/lease_time.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <vector>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

static_assert(std::is_convertible_v<hours, Lease> && std::is_convertible_v<Seconds, Wait>);
static_assert(!std::is_convertible_v<int, Lease> && !std::is_convertible_v<int, Wait>, "a bare number has no unit");

TEST(Lease, IsRoundedDownToWholeMilliseconds)
{
    struct Case {
        const char* name;
        Lease lease;
        milliseconds fixed;
    };
    const Case cases[] = {
        {"whole", 10ms, 10ms},
        {"a microsecond short of the next", 10'999us, 10ms},
        {"a microsecond short of the least", 9'999us, 9ms},
        {"nanoseconds", 10'999'999ns, 10ms},
        {"seconds", 3s, 3000ms},
        {"thirty days", hours(720), maxLease},
        {"floating point", Seconds(0.0125), 12ms},
        {"just above thirty days", maxLease + 1us, maxLease},
        {"a million microseconds", 1'000'000us, 1000ms},
        {"ten billionths of a second's 1/3", std::chrono::duration<std::int64_t, std::ratio<1, 3>>(1), 333ms},
        {"negative", -1500us, -2ms},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.lease.fixed(), c.fixed) << c.name;
        EXPECT_FALSE(c.lease.isRenewed()) << c.name;
    }
}

TEST(Lease, SaturatesInsteadOfOverflowing)
{
    struct Case {
        const char* name;
        Lease lease;
        milliseconds fixed;
    };
    const Case cases[] = {
        {"longest hours", hours::max(), milliseconds::max()},
        {"shortest hours", hours::min(), milliseconds::min()},
        {"longest milliseconds", milliseconds::max(), milliseconds::max()},
        {"shortest milliseconds", milliseconds::min(), milliseconds::min()},
        {"longest nanoseconds", nanoseconds::max(), std::chrono::floor<milliseconds>(nanoseconds::max())},
        {"shortest nanoseconds", nanoseconds::min(), std::chrono::floor<milliseconds>(nanoseconds::min())},
        {"largest number of seconds", Seconds(std::numeric_limits<double>::max()), milliseconds::max()},
        {"infinity", Seconds(infinity), milliseconds::max()},
        {"minus infinity", Seconds(-infinity), milliseconds::min()},
        {"not a number", Seconds(notANumber), milliseconds::min()},
        {"longest 32-bit years", std::chrono::duration<std::int32_t, std::chrono::years::period>::max(),
         milliseconds::max()},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.lease.fixed().count(), c.fixed.count()) << c.name;
        EXPECT_FALSE(c.lease.isValid()) << c.name;
    }
}

TEST(Lease, IsValidFromTenMillisecondsToThirtyDays)
{
    struct Case {
        const char* name;
        Lease lease;
        bool valid;
    };
    const Case cases[] = {
        {"zero", 0ms, false},
        {"one", 1ms, false},
        {"below the least", 9'999us, false},
        {"the least", 10ms, true},
        {"a second", 1s, true},
        {"the most", maxLease, true},
        {"a microsecond above the most is rounded down to it", maxLease + 1us, true},
        {"above the most", maxLease + 1ms, false},
        {"negative", -10s, false},
        {"smallest floating point", Seconds(std::numeric_limits<double>::denorm_min()), false},
        {"renewed", keepRenewing, true},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.lease.isValid(), c.valid) << c.name;
    }
}

TEST(Lease, ThatIsRenewedDiffersFromEveryFixedOne)
{
    EXPECT_TRUE(keepRenewing.isRenewed());
    EXPECT_EQ(keepRenewing.fixed(), 0ms);
    EXPECT_EQ(keepRenewing, Lease::renewed());
    EXPECT_NE(keepRenewing, Lease(0ms));
    EXPECT_NE(keepRenewing, Lease(30s));
    EXPECT_EQ(Lease(1s), Lease(1000ms));
    EXPECT_NE(Lease(1s), Lease(1001ms));
}

TEST(Wait, IsRoundedUpToWholeMilliseconds)
{
    struct Case {
        const char* name;
        Wait wait;
        milliseconds span;
    };
    const Case cases[] = {
        {"whole", 10ms, 10ms},
        {"a nanosecond", 1ns, 1ms},
        {"a microsecond more", 10'001us, 11ms},
        {"floating point", Seconds(0.0125), 13ms},
        {"smallest floating point", Seconds(std::numeric_limits<double>::denorm_min()), 1ms},
        {"hours", 2h, 7'200'000ms},
        {"a third of a second", std::chrono::duration<std::int64_t, std::ratio<1, 3>>(1), 334ms},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.wait.span(), c.span) << c.name;
        EXPECT_FALSE(c.wait.isOneAttempt()) << c.name;
    }
}

TEST(Wait, IsOneAttemptWhenThereIsNoTimeToWait)
{
    struct Case {
        const char* name;
        Wait wait;
    };
    const Case cases[] = {
        {"zero", 0ms},
        {"negative", -1ns},
        {"shortest milliseconds", milliseconds::min()},
        {"shortest hours", hours::min()},
        {"floating point", Seconds(-0.25)},
        {"minus infinity", Seconds(-infinity)},
        {"not a number", Seconds(notANumber)},
    };
    for (const Case& c : cases) {
        EXPECT_TRUE(c.wait.isOneAttempt()) << c.name;
        EXPECT_EQ(c.wait.span(), 0ms) << c.name;
    }
}

TEST(Wait, IsForEverWhenItIsTooLongForTheClock)
{
    struct Case {
        const char* name;
        Wait wait;
    };
    const Case cases[] = {
        {"longest milliseconds", milliseconds::max()},
        {"a little less", milliseconds::max() - 1ms},
        {"longest seconds", std::chrono::seconds::max()},
        {"longest hours", hours::max()},
        {"infinity", Seconds(infinity)},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.wait, waitForever) << c.name;
        EXPECT_EQ(c.wait.span(), milliseconds::max()) << c.name;
        EXPECT_FALSE(c.wait.isOneAttempt()) << c.name;
    }
    EXPECT_EQ(Wait(std::chrono::years(293)), waitForever);
    EXPECT_NE(Wait(std::chrono::years(292)), waitForever);
}

TEST(Wait, UntilAMomentOfAnyClockDoesNotOverflow)
{
    using Days = std::chrono::sys_time<std::chrono::days>;
    using Hours = std::chrono::sys_time<hours>;
    constexpr std::chrono::sys_time<nanoseconds> now(hours(500'000) + 1ns);
    struct Case {
        const char* name;
        Wait wait;
        milliseconds span;
    };
    const Case cases[] = {
        {"now", Wait::until(now, now), 0ms},
        {"a nanosecond ago", Wait::until(now - 1ns, now), 0ms},
        {"in a nanosecond", Wait::until(now + 1ns, now), 1ms},
        {"in 3 s", Wait::until(now + 3s, now), 3000ms},
        {"in coarser time", Wait::until(Hours(hours(500'001)), now), 3'600'000ms},
        {"the last hour", Wait::until(Hours::max(), now), milliseconds::max()},
        {"the last millisecond", Wait::until(std::chrono::sys_time<milliseconds>::max(), now), milliseconds::max()},
        {"the last nanosecond", Wait::until(std::chrono::sys_time<nanoseconds>::max(), now), milliseconds::max()},
        {"the first day", Wait::until(Days::min(), now), 0ms},
        {"the first nanosecond", Wait::until(std::chrono::sys_time<nanoseconds>::min(), now), 0ms},
        {"from before the epoch", Wait::until(std::chrono::sys_time<nanoseconds>::max() - 1ns, Hours(hours(-1))),
         milliseconds::max()},
        {"floating point", Wait::until(std::chrono::sys_time<Seconds>(Seconds(infinity)), now), milliseconds::max()},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.wait.span().count(), c.span.count()) << c.name;
    }
}

// --- Every duration
// ----------------------------------------------------------------------------------------------------

__extension__ using Wide = __int128;

/// The limits of the type, values around the greatest that floating point represents exactly, and some of every size.
template <class Rep>
std::vector<Rep> numbersOf()
{
    using Limits = std::numeric_limits<Rep>;
    std::vector<Rep> numbers;
    const auto add = [&](Wide number) {
        for (const Wide n : {number, -number}) {
            if (n >= Limits::min() && n <= Limits::max()) {
                numbers.push_back(static_cast<Rep>(n));
            }
        }
    };
    for (Wide around : {Wide{0}, Wide{1000}, Wide{86'400'000}, Wide{1} << 24, Wide{1} << 31, Wide{1} << 53,
                        Wide{1} << 62, Wide{1} << 63, Wide{Limits::max()}}) {
        for (int i = -3; i <= 3; ++i) {
            add(around + i);
        }
    }
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        add(random.next() >> (random.next() % 64));
    }
    return numbers;
}

template <class Duration>
class EveryDuration : public testing::Test {
};

using Durations =
    testing::Types<nanoseconds, microseconds, milliseconds, std::chrono::seconds, std::chrono::minutes, hours,
                   std::chrono::days, std::chrono::years, std::chrono::duration<std::int8_t, std::ratio<3600>>,
                   std::chrono::duration<std::uint64_t, std::nano>, std::chrono::duration<std::uint32_t, std::milli>,
                   std::chrono::duration<std::int64_t, std::pico>,
                   std::chrono::duration<std::int64_t, std::ratio<1, 3>>, std::chrono::duration<int, std::ratio<7, 3>>,
                   std::chrono::duration<std::int64_t, std::ratio<1001, 30'000>>,
                   std::chrono::duration<std::int64_t, std::ratio<1, 1024>>,
                   std::chrono::duration<std::int64_t, std::ratio<std::numeric_limits<std::int64_t>::max()>>>;
TYPED_TEST_SUITE(EveryDuration, Durations, );

TYPED_TEST(EveryDuration, OfWholeNumbersIsConvertedExactly)
{
    using Period = typename TypeParam::period;
    constexpr Wide most = std::numeric_limits<std::int64_t>::max();
    constexpr Wide least = std::numeric_limits<std::int64_t>::min();
    for (const auto count : numbersOf<typename TypeParam::rep>()) {
        SCOPED_TRACE(testing::PrintToString(count));
        const TypeParam duration(count);
        // in ticks of 1/(den · 10^9) s, if they fit
        if (Wide(count) > (Wide{1} << 96) / Period::num || Wide(count) < -(Wide{1} << 96) / Period::num) {
            continue;
        }
        const Wide inMilliseconds = Wide(count) * Period::num * 1000;
        const Wide down = inMilliseconds / Period::den - (inMilliseconds % Period::den < 0 ? 1 : 0);
        const Wide up = inMilliseconds / Period::den + (inMilliseconds % Period::den > 0 ? 1 : 0);
        const Lease lease(duration);
        ASSERT_FALSE(lease.isRenewed());
        if (down == least + 1) { // stands for the renewed lease
            ASSERT_FALSE(lease.isValid());
        } else {
            ASSERT_TRUE(Wide(lease.fixed().count()) == std::clamp(down, least, most)) << lease.fixed().count();
        }
        const Wide clock = most / 1'000'000; // the milliseconds that the clock can count
        ASSERT_TRUE(Wide(Wait(duration).span().count()) == (up < 0 ? 0 : up > clock ? most : up));
        const Wide inNanoseconds = inMilliseconds * 1'000'000;
        const Wide pause = inNanoseconds / Period::den + (inNanoseconds % Period::den > 0 ? 1 : 0);
        ASSERT_TRUE(Wide(RetryPolicy::Pause(duration).span().count()) == std::clamp(pause, Wide{0}, most));
        const TimePoint start(1h);
        ASSERT_EQ(saturatingAdd(start, duration) < start, false);
    }
}

template <class Rep>
class EveryFloatingDuration : public testing::Test {
};
using FloatingTypes = testing::Types<float, double, long double>;
TYPED_TEST_SUITE(EveryFloatingDuration, FloatingTypes, );

TYPED_TEST(EveryFloatingDuration, IsConvertedAsExactlyAsItIs)
{
    using Duration = std::chrono::duration<TypeParam>;
    using Limits = std::numeric_limits<TypeParam>;
    for (int eighths = -100'000; eighths <= 100'000; eighths += 7) { // exact in binary
        const Duration duration(static_cast<TypeParam>(eighths) / 8);
        ASSERT_EQ(Lease(duration).fixed(), milliseconds(eighths * 125));
        ASSERT_EQ(Wait(duration).span(), milliseconds(std::max(eighths * 125, 0)));
        if (Limits::digits >= 53) { // nanoseconds need more than a float has
            ASSERT_EQ(RetryPolicy::Pause(duration).span(), nanoseconds(std::max(eighths, 0) * 125'000'000LL));
        }
        const Duration between = duration / 128; // halves of 1/512 s
        ASSERT_LE(Lease(between).fixed(), between);
        ASSERT_GT(Lease(between).fixed() + 1ms, between);
        ASSERT_TRUE(between < 0s || (Wait(between).span() >= between && Wait(between).span() - 1ms < between));
    }
    struct Case {
        TypeParam seconds;
        Lease lease;
        Wait wait;
        RetryPolicy::Pause pause;
    };
    const Case cases[] = {
        {Limits::quiet_NaN(), milliseconds::min(), oneAttempt, 0ns},
        {Limits::infinity(), milliseconds::max(), waitForever, nanoseconds::max()},
        {-Limits::infinity(), milliseconds::min(), oneAttempt, 0ns},
        {Limits::max(), milliseconds::max(), waitForever, nanoseconds::max()},
        {Limits::lowest(), milliseconds::min(), oneAttempt, 0ns},
        {Limits::min(), 0ms, 1ms, 1ns},
        {-Limits::min(), -1ms, oneAttempt, 0ns},
        {TypeParam(0), 0ms, oneAttempt, 0ns},
        {TypeParam(0x1p53), milliseconds((std::int64_t{1} << 53) * 1000), waitForever, nanoseconds::max()},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(Lease(Duration(c.seconds)), c.lease) << c.seconds;
        EXPECT_EQ(Wait(Duration(c.seconds)), c.wait) << c.seconds;
        EXPECT_EQ(RetryPolicy::Pause(Duration(c.seconds)), c.pause) << c.seconds;
    }
}

TEST(LeaseAndWait, CanBeUsedAtCompileTime)
{
    static_assert(Lease(10'999us).fixed() == 10ms);
    static_assert(Lease(hours::max()).fixed() == milliseconds::max());
    static_assert(Wait(1us).span() == 1ms);
    static_assert(Wait(hours::max()) == waitForever);
}

} // namespace
} // namespace redislock
