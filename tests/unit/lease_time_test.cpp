#include "redislock/lease_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

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
        {"longest seconds", std::chrono::seconds::max()},
        {"longest hours", hours::max()},
        {"infinity", Seconds(infinity)},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.wait, waitForever) << c.name;
        EXPECT_EQ(c.wait.span(), milliseconds::max()) << c.name;
        EXPECT_FALSE(c.wait.isOneAttempt()) << c.name;
    }
    EXPECT_NE(Wait(hours(24 * 365)), waitForever);
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
