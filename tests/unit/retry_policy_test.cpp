#include "redislock/retry_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(RetryPolicy, NoneGivesUpAfterTheFirstAttempt)
{
    Random random(1);
    EXPECT_EQ(RetryPolicy::none().pauseAfter(1, random), std::nullopt);
}

TEST(RetryPolicy, FixedPausesAreTheSameEachTimeAndNeverNegative)
{
    Random random(1);
    for (const std::uint32_t attempt : {1U, 2U, 1000U, UINT32_MAX}) {
        EXPECT_EQ(RetryPolicy::fixed(64ms).pauseAfter(attempt, random), 64ms);
        EXPECT_EQ(RetryPolicy::fixed(-64ms).pauseAfter(attempt, random), 0ms);
        EXPECT_EQ(RetryPolicy::spin().pauseAfter(attempt, random), 0ms);
    }
}

TEST(RetryPolicy, ExponentialPausesDoubleUpToTheMostAndAreSpread)
{
    Random random(1);
    const auto policy = RetryPolicy::exponential(1ms, 128ms);
    nanoseconds whole = 1ms;
    for (std::uint32_t attempt = 1; attempt <= 40; ++attempt) {
        nanoseconds shortest = nanoseconds::max();
        nanoseconds longest{};
        for (int i = 0; i < 200; ++i) {
            const auto pause = policy.pauseAfter(attempt, random).value().span();
            shortest = std::min(shortest, pause);
            longest = std::max(longest, pause);
        }
        EXPECT_GE(shortest, whole / 2);
        EXPECT_LT(shortest, whole * 6 / 10);
        EXPECT_LE(longest, whole);
        EXPECT_GT(longest, whole * 9 / 10);
        whole = std::min<nanoseconds>(2 * whole, 128ms);
    }
}

TEST(RetryPolicy, ExponentialPausesNeverOverflowNorVanish)
{
    Random random(1);
    for (const RetryPolicy::Pause longest :
         {RetryPolicy::Pause(nanoseconds::max()), RetryPolicy::Pause(milliseconds::max()),
          RetryPolicy::Pause(std::chrono::hours::max())}) {
        const auto endless = RetryPolicy::exponential(longest, longest);
        const auto growing = RetryPolicy::exponential(1us, longest);
        for (int i = 0; i < 1000; ++i) {
            EXPECT_GE(endless.pauseAfter(UINT32_MAX, random).value().span(), nanoseconds::max() / 2);
            EXPECT_GE(growing.pauseAfter(UINT32_MAX, random).value().span(), nanoseconds::max() / 2);
        }
    }
    const auto turned = RetryPolicy::exponential(-1s, -2s);
    EXPECT_GT(turned.pauseAfter(1, random).value().span(), 0ms);
    EXPECT_LE(turned.pauseAfter(9, random).value().span(), 1us);
}

TEST(RetryPolicy, TakesPausesOfAnyDuration)
{
    Random random(1);
    EXPECT_EQ(RetryPolicy::fixed(milliseconds::max()).pauseAfter(1, random), nanoseconds::max());
    EXPECT_EQ(RetryPolicy::fixed(std::chrono::hours::min()).pauseAfter(1, random), 0ns);
    EXPECT_EQ(RetryPolicy::fixed(std::chrono::duration<double>(0.25)).pauseAfter(1, random), 250ms);
    EXPECT_EQ(RetryPolicy::spinThenSleep(0, milliseconds::max()).pauseAfter(1, random), nanoseconds::max());
    const RetryPolicy own([](std::uint32_t, Random&) { return milliseconds::max(); });
    EXPECT_EQ(own.pauseAfter(1, random), nanoseconds::max());
    const RetryPolicy sometimes([](std::uint32_t, Random&) { return std::optional(milliseconds::max()); });
    EXPECT_EQ(sometimes.pauseAfter(1, random), nanoseconds::max());
}

TEST(RetryPolicy, SpinsFirstThenSleeps)
{
    Random random(1);
    const auto policy = RetryPolicy::spinThenSleep(3, 5ms);
    for (const std::uint32_t attempt : {1U, 2U, 3U}) {
        EXPECT_EQ(policy.pauseAfter(attempt, random), 0ms);
    }
    for (const std::uint32_t attempt : {4U, 5U, 1000U}) {
        EXPECT_EQ(policy.pauseAfter(attempt, random), 5ms);
    }
}

TEST(RetryPolicy, AUsersOwnIsAskedForEachAttemptAndMayGiveUp)
{
    Random random(1);
    const RetryPolicy policy([](std::uint32_t attempt, Random&) {
        return attempt < 3 ? std::optional<RetryPolicy::Pause>(attempt * 1ms) : std::nullopt;
    });
    EXPECT_EQ(policy.pauseAfter(1, random), 1ms);
    EXPECT_EQ(policy.pauseAfter(2, random), 2ms);
    EXPECT_EQ(policy.pauseAfter(3, random), std::nullopt);
    EXPECT_EQ(RetryPolicy(RetryPolicy::Function()).pauseAfter(1, random), std::nullopt) << "an empty function";
}

} // namespace
} // namespace redislock
