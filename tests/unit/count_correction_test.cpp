#include "core/machine/release_machine.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

ReleaseMachine::Event answered(UnlockAnswer::Kind kind)
{
    return Replied<UnlockAnswer>{TimePoint{}, TimePoint{}, {kind}};
}

ReleaseMachine::Event failed(Failure failure, Errc error = Errc::unreachable)
{
    return Failed{TimePoint{}, {failure, error}};
}

TEST(CountAnswer, OfRedisIsFinal)
{
    EXPECT_EQ(countAnswer(answered(UnlockAnswer::Kind::stillHeld), 2, 2, true), CountAnswer::done);
    EXPECT_EQ(countAnswer(answered(UnlockAnswer::Kind::absent), 2, 2, true), CountAnswer::lost);
    EXPECT_EQ(countAnswer(answered(UnlockAnswer::Kind::absent), 2, 3, false), CountAnswer::lost);
}

TEST(CountAnswer, ThatWasLostIsAskedForAgain)
{
    EXPECT_EQ(countAnswer(failed(Failure::lostReply), 2, 2, true), CountAnswer::again);
    EXPECT_EQ(countAnswer(failed(Failure::notConnected), 2, 2, true), CountAnswer::again);
}

TEST(CountAnswer, OfACountThatIsNoLongerTrueIsNotAskedForAgain)
{
    EXPECT_EQ(countAnswer(failed(Failure::lostReply), 2, 3, true), CountAnswer::done);
    EXPECT_EQ(countAnswer(failed(Failure::lostReply), 2, 2, false), CountAnswer::done);
}

TEST(CountAnswer, ThatIsARefusalIsAskedForAgain)
{
    EXPECT_EQ(countAnswer(failed(Failure::refused, Errc::serverRefused), 2, 2, true), CountAnswer::again);
    EXPECT_EQ(countAnswer(failed(Failure::fatal, Errc::permissionDenied), 2, 2, true), CountAnswer::again);
}

TEST(CountAnswer, WithoutAClientOrAHoldIsNotAskedForAgain)
{
    EXPECT_EQ(countAnswer(failed(Failure::fatal, Errc::shutdown), 2, 2, true), CountAnswer::done);
    EXPECT_EQ(countAnswer(failed(Failure::fatal, Errc::badReply), 2, 2, true), CountAnswer::done);
    EXPECT_EQ(countAnswer(failed(Failure::fatal, Errc::wrongType), 2, 2, true), CountAnswer::lost);
}

} // namespace
} // namespace redislock::detail
