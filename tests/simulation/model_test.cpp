// The model of the server against a real one: the same random steps on both, and the same replies and keys after each.
//
// Time passes on the real server without sleeping: a step forward gives every key the time to live that is left of it,
// and an expiry in the past to those that are over. What really passes meanwhile is measured, and allowed for; leases
// are so long that it does not matter otherwise.
#include "simulation/model_comparison.hpp"

#include <gtest/gtest.h>

namespace redislock::simulation {
namespace {

TEST(Model, AnswersAndRemembersAsARealServer)
{
    LuaRuntime lua;
    test::RawRedis redis(server());
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    int stalls = 0;
    for (std::uint64_t seed = 1; seed <= REDISLOCK_MODEL_SEQUENCES && !HasFailure(); ++seed) {
        while (!Comparison(lua, redis, seed).run()) {
            ASSERT_LT(++stalls, 20) << "this machine is too busy";
        }
    }
    EXPECT_GT(redis.commandCalls("evalsha"), 10U * REDISLOCK_MODEL_SEQUENCES);
}

} // namespace
} // namespace redislock::simulation
