#include "redislock/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace redislock {
namespace {

TEST(Random, IsSplitMix64)
{
    Random random(1234567);
    for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                         4593380528125082431U, 16408922859458223821U}) {
        EXPECT_EQ(random.next(), expected);
    }
}

TEST(Random, RepeatsItselfForTheSameSeedOnly)
{
    Random one(42);
    Random same(42);
    Random other(43);
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t number = one.next();
        EXPECT_EQ(number, same.next());
        EXPECT_NE(number, other.next());
    }
}

TEST(Random, GivesUnitsFromZeroToJustBelowOne)
{
    Random random(7);
    double least = 1.0;
    double most = 0.0;
    double sum = 0.0;
    constexpr int count = 100'000;
    for (int i = 0; i < count; ++i) {
        const double unit = random.unit();
        least = std::min(least, unit);
        most = std::max(most, unit);
        sum += unit;
    }
    EXPECT_GE(least, 0.0);
    EXPECT_LT(least, 0.001);
    EXPECT_LT(most, 1.0);
    EXPECT_GT(most, 0.999);
    EXPECT_NEAR(sum / count, 0.5, 0.01);
}

TEST(Random, SpreadsAroundOne)
{
    Random random(7);
    double least = 2.0;
    double most = 0.0;
    for (int i = 0; i < 100'000; ++i) {
        const double factor = random.around(0.05);
        least = std::min(least, factor);
        most = std::max(most, factor);
    }
    EXPECT_GE(least, 0.95);
    EXPECT_LT(least, 0.951);
    EXPECT_LT(most, 1.05);
    EXPECT_GT(most, 1.049);
    EXPECT_EQ(random.around(0.0), 1.0);
}

TEST(Random, CanBeUsedAtCompileTime)
{
    constexpr double unit = Random(1).unit();
    static_assert(unit >= 0.0 && unit < 1.0);
}

} // namespace
} // namespace redislock
