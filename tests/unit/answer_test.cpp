// What the replies of the scripts mean to the machines.
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/detail/logic/release_machine.hpp"
#include "redislock/detail/logic/renew_machine.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint now{5s};
constexpr TimePoint sent{4s};

Reply integer(std::int64_t value)
{
    Reply reply;
    reply.kind = Reply::Kind::integer;
    reply.integer = value;
    return reply;
}

Reply text(Reply::Kind kind, std::string value)
{
    Reply reply;
    reply.kind = kind;
    reply.text = std::move(value);
    return reply;
}

/// Replies that no script of ours gives, besides numbers.
const std::vector<Reply> strange{text(Reply::Kind::text, "1"), text(Reply::Kind::status, "OK"),
                                 text(Reply::Kind::array, "")};

template <class Answer>
void refusesStrangeReplies()
{
    for (const auto& reply : strange) {
        EXPECT_FALSE(Answer::from(reply)) << static_cast<int>(reply.kind);
    }
}

TEST(Answer, OfTheLockScriptIsAGrantTheHoldersTimeOrALoss)
{
    EXPECT_EQ(LockAnswer::from(Reply{})->kind, LockAnswer::Kind::granted);
    EXPECT_EQ(LockAnswer::from(integer(-3))->kind, LockAnswer::Kind::gone);
    const auto endless = LockAnswer::from(integer(-1));
    EXPECT_EQ(endless->kind, LockAnswer::Kind::busy);
    EXPECT_FALSE(endless->timeToLive);
    EXPECT_EQ(LockAnswer::from(integer(0))->timeToLive, 0ms);
    EXPECT_EQ(LockAnswer::from(integer(-2))->timeToLive, 0ms) << "gone already";
    EXPECT_EQ(LockAnswer::from(integer(1234))->timeToLive, 1234ms);
    EXPECT_EQ(LockAnswer::from(integer(std::numeric_limits<std::int64_t>::max()))->timeToLive, maxLease)
        << "of a key that others gave more time";
    for (const std::int64_t value : {std::int64_t{-4}, std::numeric_limits<std::int64_t>::min()}) {
        EXPECT_FALSE(LockAnswer::from(integer(value))) << value;
    }
    refusesStrangeReplies<LockAnswer>();
}

TEST(Answer, OfTheUnlockScriptIsFreedStillHeldOrAbsent)
{
    EXPECT_EQ(UnlockAnswer::from(Reply{})->kind, UnlockAnswer::Kind::absent);
    EXPECT_EQ(UnlockAnswer::from(integer(0))->kind, UnlockAnswer::Kind::stillHeld);
    EXPECT_EQ(UnlockAnswer::from(integer(1))->kind, UnlockAnswer::Kind::freed);
    EXPECT_EQ(UnlockAnswer::from(integer(77))->kind, UnlockAnswer::Kind::freed) << "that many were told";
    EXPECT_FALSE(UnlockAnswer::from(integer(-1)));
    refusesStrangeReplies<UnlockAnswer>();
}

TEST(Answer, OfTheRenewScriptIsRenewedOrGone)
{
    EXPECT_EQ(RenewAnswer::from(integer(1))->kind, RenewAnswer::Kind::renewed);
    EXPECT_EQ(RenewAnswer::from(integer(0))->kind, RenewAnswer::Kind::gone);
    EXPECT_FALSE(RenewAnswer::from(integer(2)));
    EXPECT_FALSE(RenewAnswer::from(integer(-1)));
    EXPECT_FALSE(RenewAnswer::from(Reply{}));
    refusesStrangeReplies<RenewAnswer>();
}

TEST(Answer, ThatTheScriptCannotGiveIsAFailureOfUnknownEffect)
{
    const auto event = eventOfReply<RenewMachine::Event, RenewAnswer>(now, sent, integer(9));
    const auto* failed = std::get_if<Failed>(&event);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->fault, (Fault{Failure::fatal, Errc::badReply}));
}

TEST(Answer, ThatIsAnErrorIsAFailureOfItsKind)
{
    const auto error = text(Reply::Kind::error, "OOM command not allowed");
    const auto event = eventOfReply<AcquireMachine::Event, LockAnswer>(now, sent, error);
    const auto* failed = std::get_if<Failed>(&event);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->fault, (Fault{Failure::refused, Errc::serverRefused}));
    EXPECT_EQ(failed->now, now);
    const auto query = eventOfReply<QueryMachine::Event, Answered>(now, sent, error);
    EXPECT_TRUE(std::holds_alternative<Failed>(query));
}

TEST(Answer, CarriesTheTimesOfItsRequest)
{
    const auto event = eventOfReply<AcquireMachine::Event, LockAnswer>(now, sent, Reply{});
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    ASSERT_NE(replied, nullptr);
    EXPECT_EQ(replied->now, now);
    EXPECT_EQ(replied->sentAt, sent);
    const auto any = eventOfReply<QueryMachine::Event, Answered>(now, sent, integer(7));
    EXPECT_TRUE(std::holds_alternative<Replied<Answered>>(any)) << "its value is the driver's";
}

} // namespace
} // namespace redislock::detail
