#include "core/share/handoff.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

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

} // namespace
} // namespace redislock::detail
