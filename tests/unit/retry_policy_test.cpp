#include "redislock/retry_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace redislock {
namespace {

using namespace std::chrono_literals;

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
    RetryPolicy::Pause whole = 1ms;
    for (std::uint32_t attempt = 1; attempt <= 40; ++attempt) {
        RetryPolicy::Pause shortest = RetryPolicy::Pause::max();
        RetryPolicy::Pause longest{};
        for (int i = 0; i < 200; ++i) {
            const auto pause = policy.pauseAfter(attempt, random).value();
            shortest = std::min(shortest, pause);
            longest = std::max(longest, pause);
        }
        EXPECT_GE(shortest, whole / 2);
        EXPECT_LT(shortest, whole * 6 / 10);
        EXPECT_LE(longest, whole);
        EXPECT_GT(longest, whole * 9 / 10);
        whole = std::min<RetryPolicy::Pause>(2 * whole, 128ms);
    }
}

TEST(RetryPolicy, ExponentialPausesNeverOverflowNorVanish)
{
    Random random(1);
    const auto endless = RetryPolicy::exponential(RetryPolicy::Pause::max(), RetryPolicy::Pause::max());
    EXPECT_GE(endless.pauseAfter(UINT32_MAX, random), RetryPolicy::Pause::max() / 4);
    const auto growing = RetryPolicy::exponential(1us, RetryPolicy::Pause::max());
    EXPECT_GE(growing.pauseAfter(UINT32_MAX, random), RetryPolicy::Pause::max() / 4);
    const auto turned = RetryPolicy::exponential(-1s, -2s);
    EXPECT_GT(turned.pauseAfter(1, random), 0ms);
    EXPECT_LE(turned.pauseAfter(9, random), 1us);
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
