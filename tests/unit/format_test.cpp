#include "redislock/format.hpp"

#include <gtest/gtest.h>

namespace redislock {
namespace {

TEST(Format, GivesEnumerationsTheirNames)
{
    EXPECT_EQ(fmt::format("{}", Errc::unreachable), "unreachable");
    EXPECT_EQ(fmt::format("{}", Errc::functionThrew), "functionThrew");
    EXPECT_EQ(fmt::format("{}", Cause::hostNotFound), "hostNotFound");
    EXPECT_EQ(fmt::format("{:>10}|", Unlocked::stillHeld), " stillHeld|");
    EXPECT_EQ(fmt::format("{}", StopAt::atRisk), "atRisk");
    EXPECT_EQ(fmt::format("{} {}", ObjectKind::redisLock, ObjectKind::redLock), "redisLock redLock");
    EXPECT_EQ(fmt::format("{} {}", ObjectKind::semaphore, ObjectKind::countDownLatch), "semaphore countDownLatch");
    EXPECT_EQ(fmt::format("{} {}", LossReason::leaseEnded, LossReason::unconfirmed), "leaseEnded unconfirmed");
    EXPECT_EQ(fmt::format("{} {}", LossReason::heldTooLong, LossReason::gone), "heldTooLong gone");
    EXPECT_EQ(fmt::format("{} {}", TokenUse::manyTimes, TokenUse::once), "manyTimes once");
    EXPECT_EQ(fmt::format("{} {}", LogLevel::debug, LogLevel::error), "debug error");
}

TEST(Format, SurvivesValuesThatHaveNoName)
{
    EXPECT_EQ(fmt::format("{} {} {} {}", Errc{}, Cause{}, Unlocked(100), StopAt(100)),
              "unknown unknown unknown unknown");
    EXPECT_EQ(fmt::format("{} {} {}", ObjectKind(100), LossReason(100), TokenUse(100)), "unknown unknown unknown");
    EXPECT_EQ(fmt::format("{}", LogLevel(100)), "unknown");
}

TEST(Format, GivesIdentitiesAsNumbersAndAnEndpointAsItsAddress)
{
    EXPECT_EQ(fmt::format("{} {:>3}", HolderId{17}, FencingToken{4}), "17   4");
    EXPECT_EQ(fmt::format("{}", Endpoint{"::1", 6379, {}}), "[::1]:6379");
}

} // namespace
} // namespace redislock
