#include "redislock/detail/logic/hand_over.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

Reply told(std::int64_t listeners)
{
    Reply reply;
    reply.kind = Reply::Kind::integer;
    reply.integer = listeners + 1;
    return reply;
}

TEST(HandOnTo, SaysWhatToDoWithTheFirstWaiter)
{
    const struct {
        const char* name;
        FirstInLine first;
        HandOn expected;
    } cases[] = {
        {"asleep", {.sleeps = true}, HandOn::send},
        {"awake", {}, HandOn::look},
        {"on another connection", {.sameLane = false, .sleeps = true}, HandOn::race},
        {"its try is under way", {.submitted = true, .sleeps = true}, HandOn::remember},
        {"its try is under way on another connection", {.submitted = true, .sameLane = false}, HandOn::remember},
        {"leaving", {.leaves = true, .submitted = true, .sleeps = true}, HandOn::nobody},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(handOnTo(&each.first), each.expected) << each.name;
    }
    EXPECT_EQ(handOnTo(nullptr), HandOn::nobody);
}

TEST(HandOver, GoesOnForEverWhereNobodyElseListens)
{
    HandOver handOver;
    handOver.answered(told(1), true); // that is this client
    for (std::uint32_t i = 0; i < 10 * HandOver::most; ++i) {
        EXPECT_TRUE(handOver.mayFollow());
    }
    EXPECT_FALSE(handOver.takeRace());
}

TEST(HandOver, LetsOthersRaceNowAndThen)
{
    HandOver handOver;
    handOver.answered(told(2), true);
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < HandOver::most; ++i) {
            EXPECT_TRUE(handOver.mayFollow());
        }
        EXPECT_FALSE(handOver.mayFollow());
        EXPECT_TRUE(handOver.takeRace());
        EXPECT_FALSE(handOver.takeRace()) << "once";
    }
}

TEST(HandOver, CountsItselfOutOfThoseWhoListen)
{
    HandOver handOver;
    handOver.answered(told(1), false);
    for (std::uint32_t i = 0; i < HandOver::most; ++i) {
        EXPECT_TRUE(handOver.mayFollow());
    }
    EXPECT_FALSE(handOver.mayFollow());
}

TEST(HandOver, LearnsNothingFromAReleaseThatFoundNothing)
{
    HandOver handOver;
    handOver.answered(told(1), false);
    handOver.answered(Reply{}, false);
    for (std::uint32_t i = 0; i < HandOver::most; ++i) {
        EXPECT_TRUE(handOver.mayFollow());
    }
    EXPECT_FALSE(handOver.mayFollow());
}

} // namespace
} // namespace redislock::detail
