#include "core/share/handoff.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

TEST(HowToFollow, SaysWhatToDoWithTheFirstWaiter)
{
    const struct {
        const char* name;
        FirstInLine first;
        Follow expected;
    } cases[] = {
        {"asleep", {.sleeps = true}, Follow::send},
        {"awake", {}, Follow::look},
        {"on another connection", {.sameLane = false, .sleeps = true}, Follow::race},
        {"its try is under way", {.submitted = true, .sleeps = true}, Follow::remember},
        {"its try is under way on another connection", {.submitted = true, .sameLane = false}, Follow::remember},
        {"leaving", {.leaves = true, .submitted = true, .sleeps = true}, Follow::nobody},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(howToFollow(&each.first), each.expected) << each.name;
    }
    EXPECT_EQ(howToFollow(nullptr), Follow::nobody);
}

} // namespace
} // namespace redislock::detail
