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
