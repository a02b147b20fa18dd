// Waiting for a condition.
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;

TEST(Eventually, EndsWithThePredicateOrWithTheTime)
{
    int calls = 0;
    EXPECT_TRUE(eventually([&] { return ++calls == 4; }));
    EXPECT_EQ(calls, 4);
    const Stopwatch watch;
    EXPECT_FALSE(eventually([] { return false; }, 10ms));
    EXPECT_GE(watch.elapsedMs(), 10ms);
}

} // namespace
} // namespace redislock::test
