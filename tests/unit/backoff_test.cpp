#include "link/request/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(Backoff, DoublesUpToItsCapAndStartsSmallAgain)
{
    Random random(1);
    Backoff backoff;
    for (int round = 0; round < 3; ++round) {
        for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms, 1000ms}) {
            const auto next = backoff.next(random);
            EXPECT_GE(next, pause * 4 / 5);
            EXPECT_LE(next, pause * 6 / 5);
        }
        backoff.reset();
    }
}

TEST(Tries, DoNotPauseForLongWhileAClustersSlotsMove)
{
    Random random(1);
    Tries tries;
    const auto longest = [&](const Fault& fault) {
        tries.answered();
        nanoseconds most = 0ns;
        for (int i = 0; i < 10; ++i) {
            (void)tries.failed({.now = {}, .fault = fault});
            most = std::max(most, tries.pause(random));
        }
        return most;
    };
    EXPECT_GT(longest({Failure::refused, Cause::loading}), 800ms);
    EXPECT_LE(longest({Failure::refused, Cause::clusterDown}), 120ms);
    EXPECT_LE(longest({Failure::moved, Cause::redirected}), 120ms);
}

TEST(Backoff, SpreadsThoseThatFailedTogether)
{
    nanoseconds least = 1h;
    nanoseconds most = 0ns;
    Random random(1);
    for (int i = 0; i < 1000; ++i) {
        const auto pause = Backoff().next(random);
        least = std::min(least, pause);
        most = std::max(most, pause);
    }
    EXPECT_LT(least, 41ms);
    EXPECT_GT(most, 59ms);
}

} // namespace
} // namespace redislock::detail
