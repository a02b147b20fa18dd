#include "core/machine/lock_answer.hpp"
#include "redislock/lease_time.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using test::at;

TEST(LeaseArithmetic, DriftIsAHundredthRoundedUpAndTwoMilliseconds)
{
    struct Case {
        milliseconds lease;
        milliseconds drift;
    };
    const Case cases[] = {{10ms, 3ms},    {99ms, 3ms},      {100ms, 3ms},     {101ms, 4ms},
                          {1000ms, 12ms}, {30000ms, 302ms}, {30001ms, 303ms}, {maxLease, 25920002ms}};
    for (const Case& c : cases) {
        EXPECT_EQ(driftOf(c.lease), c.drift) << c.lease.count();
    }
    static_assert(driftOf(30000ms) == 302ms);
}

TEST(LeaseArithmetic, TheDeadlineCountsFromBeforeTheRequestAndIsLessThanTheLease)
{
    EXPECT_EQ(deadlineOf(at(5s), 30s), at(34698ms));
    EXPECT_EQ(deadlineOf(at(5s), 10ms), at(5007ms));
    for (milliseconds lease = minLease; lease < 100s; lease = lease * 11 / 10) {
        EXPECT_GT(deadlineOf(at(0s), lease), at(0s)) << lease.count();
        EXPECT_LE(deadlineOf(at(0s), lease), at(lease * 99 / 100 - 1ms)) << lease.count();
    }
    EXPECT_EQ(deadlineOf(at(0s), maxLease), at(maxLease - 25920002ms));
}

TEST(LeaseArithmetic, ALeaseShorterThanItsDriftIsNeverValid)
{
    EXPECT_EQ(deadlineOf(at(5s), 1ms), at(5s));
    EXPECT_EQ(deadlineOf(at(5s), 0ms), at(5s));
}

TEST(LeaseArithmetic, TheRiskMarginIsTwoCommandTimesBetweenATenthAndAQuarter)
{
    struct Case {
        nanoseconds lease;
        nanoseconds commandTimeout;
        nanoseconds margin;
    };
    const Case cases[] = {{30s, 3s, 6s}, {30s, 1s, 3s},     {30s, 10s, 7500ms},
                          {10s, 1s, 2s}, {100ms, 3s, 25ms}, {1h, 3s, 6min}};
    for (const Case& c : cases) {
        EXPECT_EQ(riskMarginOf(c.lease, c.commandTimeout), c.margin) << c.lease.count();
    }
}

} // namespace
} // namespace redislock::detail
