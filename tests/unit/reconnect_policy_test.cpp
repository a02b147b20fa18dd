#include "link/reconnect_policy.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;

TEST(ReconnectPolicy, TheFirstAttemptMayStartAtOnce)
{
    EXPECT_LE(ReconnectPolicy().notBefore(), at(0s));
}

TEST(ReconnectPolicy, AConnectionThatServedIsMadeAgainAtOnce)
{
    Random random(1);
    ReconnectPolicy policy;
    policy.served();
    policy.ended(at(5s), random, true);
    EXPECT_LE(policy.notBefore(), at(5s));
}

TEST(ReconnectPolicy, AttemptsThatServeNothingHaveGrowingPauses)
{
    Random random(1);
    ReconnectPolicy policy;
    for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
        policy.ended(at(5s), random, true);
        EXPECT_GE(policy.notBefore(), at(5s) + pause * 4 / 5);
        EXPECT_LE(policy.notBefore(), at(5s) + pause * 6 / 5);
    }
}

TEST(ReconnectPolicy, WhoDoesNotWaitHasTheFirstPauseHoweverManyAttemptsFailed)
{
    Random random(1);
    ReconnectPolicy policy;
    EXPECT_LE(policy.soonest(), at(0s));
    for (int i = 0; i < 10; ++i) {
        policy.ended(at(5s), random, true);
        EXPECT_LE(policy.soonest(), at(5s) + 50ms);
        EXPECT_GE(policy.soonest(), at(5s) + 40ms);
    }
    policy.served();
    EXPECT_LE(policy.soonest(), at(0s));
}

TEST(ReconnectPolicy, ServingOnceMakesThePausesSmallAgain)
{
    Random random(1);
    ReconnectPolicy policy;
    for (int i = 0; i < 10; ++i) {
        policy.ended(at(0s), random, true);
    }
    policy.served();
    EXPECT_LE(policy.notBefore(), at(0s));
    policy.ended(at(1s), random, true);
    EXPECT_LE(policy.notBefore(), at(1s));
    policy.ended(at(2s), random, true); // the new connection served nothing
    EXPECT_GE(policy.notBefore(), at(2040ms));
    EXPECT_LE(policy.notBefore(), at(2060ms));
}

TEST(ReconnectPolicy, AServerThatTakesNoWritesIsLeftAtOnceOnceAndThenAfterGrowingPausesThoughItAnswersQuestions)
{
    Random random(1);
    ReconnectPolicy policy;
    for (const auto begin : {at(5s), at(100s)}) {
        policy.served();
        policy.demoted(begin, random);
        EXPECT_LE(policy.notBefore(), begin);
        auto now = begin;
        for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
            policy.served();
            policy.demoted(now, random);
            EXPECT_GE(policy.notBefore(), now + pause * 4 / 5);
            EXPECT_LE(policy.notBefore(), now + pause * 6 / 5);
            EXPECT_GE(policy.soonest(), now + 40ms);
            EXPECT_LE(policy.soonest(), now + 50ms);
            now = policy.notBefore();
        }
    }
}

TEST(ReconnectPolicy, AServerThatTakesNoWritesAtFirstIsTriedOnceMoreAtOnce)
{
    Random random(1);
    ReconnectPolicy policy;
    policy.demoted(at(0s), random);
    EXPECT_LE(policy.notBefore(), at(0s));
}

TEST(ReconnectPolicy, AConnectionThatDidAllThatItWasAskedIsMadeAgainAtOnceHoweverOftenItEnds)
{
    Random random(1);
    ReconnectPolicy policy;
    for (int i = 0; i < 10; ++i) {
        policy.served();
        policy.ended(at(5s), random, false);
        EXPECT_LE(policy.notBefore(), at(5s));
    }
}

TEST(ReconnectPolicy, ConnectionsThatServeSomethingAndOweTheRestHaveGrowingPauses)
{
    Random random(1);
    ReconnectPolicy policy;
    for (const auto begin : {at(5s), at(100s)}) { // the first is made again at once, also after a long time
        policy.served();
        policy.ended(begin, random, true);
        EXPECT_LE(policy.notBefore(), begin);
        for (const milliseconds pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
            policy.served();
            policy.ended(begin, random, true);
            EXPECT_GE(policy.notBefore(), begin + pause * 4 / 5);
            EXPECT_LE(policy.notBefore(), begin + pause * 6 / 5);
        }
    }
}

} // namespace
} // namespace redislock::detail
