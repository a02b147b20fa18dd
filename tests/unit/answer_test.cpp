// What the replies of the scripts mean to the machines.
#include "core/machine/acquire_machine.hpp"
#include "core/machine/query_machine.hpp"
#include "core/machine/release_machine.hpp"
#include "core/machine/renew_machine.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint eventAt{5s};
constexpr TimePoint askedAt{4s};

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

Reply array(std::vector<Reply> elements)
{
    Reply reply;
    reply.kind = Reply::Kind::array;
    reply.elements = std::move(elements);
    return reply;
}

const Reply nilReply{};

/// The reply that another holds the lock.
Reply refusal(std::int64_t left, Reply holder = nilReply)
{
    return array({integer(left), std::move(holder)});
}

const Reply tokenReply = array({text(Reply::Kind::text, "1234")});

/// Replies, besides numbers, that none of our scripts gives.
const std::vector<Reply> strange{
    text(Reply::Kind::text, "1"),
    text(Reply::Kind::status, "OK"),
    array({}),
    array({nilReply}),
    array({integer(1234)}),
    array({text(Reply::Kind::status, "1234")}),
    array({text(Reply::Kind::text, "")}),
    array({text(Reply::Kind::text, "0")}),
    array({text(Reply::Kind::text, "-1")}),
    array({text(Reply::Kind::text, "12x")}),
    array({text(Reply::Kind::text, "99999999999999999999")}),
    array({text(Reply::Kind::text, "1"), text(Reply::Kind::text, "2")}),
    array({tokenReply}),
};

/// @param read reads an answer. @param impossible more replies that it refuses.
template <class Read>
void refuses(Read read, std::vector<Reply> impossible)
{
    impossible.insert(impossible.end(), strange.begin(), strange.end());
    for (std::size_t i = 0; i < impossible.size(); ++i) {
        EXPECT_FALSE(read(impossible[i])) << "reply " << i;
    }
}

constexpr std::int64_t leastNumber = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t mostNumber = std::numeric_limits<std::int64_t>::max();

TEST(Answer, OfALockScriptIsAGrantOfTheKindTheHoldersTimeOrTheLossOfANestedHold)
{
    for (const auto tokens : {Tokens::none, Tokens::given}) {
        const Reply& grant = tokens == Tokens::none ? nilReply : tokenReply;
        const Reply& other = tokens == Tokens::none ? tokenReply : nilReply;
        const auto outermost = [tokens](const Reply& reply) {
            return LockAnswer::from(reply, tokens, Level::outermost);
        };
        const auto nested = [tokens](const Reply& reply) { return LockAnswer::from(reply, tokens, Level::nested); };
        EXPECT_EQ(outermost(grant)->kind, LockAnswer::Kind::granted);
        EXPECT_EQ(nested(grant)->kind, LockAnswer::Kind::granted);
        EXPECT_EQ(outermost(grant)->token, tokens == Tokens::none ? 0U : 1234U);
        EXPECT_EQ(nested(integer(-3))->kind, LockAnswer::Kind::gone);
        const auto endless = outermost(refusal(-1));
        EXPECT_EQ(endless->kind, LockAnswer::Kind::busy);
        EXPECT_FALSE(endless->timeToLive);
        EXPECT_EQ(outermost(refusal(0))->timeToLive, 0ms);
        EXPECT_EQ(outermost(refusal(-2))->timeToLive, 0ms) << "gone already";
        EXPECT_EQ(outermost(refusal(1234))->timeToLive, 1234ms);
        EXPECT_EQ(outermost(refusal(mostNumber))->timeToLive, maxLease) << "of a key that others gave more time";
        refuses(outermost, {other, refusal(-3), refusal(leastNumber), array({nilReply, nilReply}),
                            array({integer(1), integer(2)}), integer(-3), integer(0), integer(1234)});
        refuses(nested, {other, refusal(0), integer(-1), integer(-4), integer(0), integer(1234), integer(leastNumber)});
    }
}

TEST(Answer, ThatAnotherHoldsTheLockNamesTheHolderWhereThereIsOne)
{
    EXPECT_EQ(LockAnswer::holderIn(refusal(1234, text(Reply::Kind::text, "somebody:1"))), "somebody:1");
    for (const auto& other : {refusal(1234), nilReply, tokenReply, array({text(Reply::Kind::text, "1"), nilReply})}) {
        EXPECT_EQ(LockAnswer::holderIn(other), "");
    }
}

TEST(Answer, ThatAnotherHoldsAFairLockSaysWhetherOthersMayTell)
{
    const auto ofFair = [](Reply others) {
        return LockAnswer::refusal(array({integer(1234), nilReply, std::move(others)}));
    };
    EXPECT_TRUE(ofFair(integer(1))->others);
    EXPECT_FALSE(ofFair(integer(0))->others);
    EXPECT_EQ(ofFair(integer(1))->timeToLive, 1234ms);
    EXPECT_FALSE(LockAnswer::refusal(refusal(1234))->others);
    for (const auto& other : {integer(2), integer(-1), nilReply, text(Reply::Kind::text, "1")}) {
        EXPECT_FALSE(ofFair(other));
    }
    const auto holder = text(Reply::Kind::text, "somebody:1");
    EXPECT_EQ(LockAnswer::holderIn(array({integer(1234), holder, integer(1)})), "somebody:1");
    EXPECT_FALSE(LockAnswer::refusal(array({integer(1234), holder, integer(1), integer(1)})));
}

TEST(Answer, OfTheSemaphoresScriptIsAGrantOrNone)
{
    EXPECT_EQ(LockAnswer::ofSemaphore(nilReply)->kind, LockAnswer::Kind::granted);
    EXPECT_EQ(LockAnswer::ofSemaphore(integer(-1))->kind, LockAnswer::Kind::busy);
    EXPECT_FALSE(LockAnswer::ofSemaphore(integer(-1))->timeToLive);
    refuses(LockAnswer::ofSemaphore,
            {tokenReply, integer(0), integer(-2), integer(-3), integer(1), integer(leastNumber)});
}

TEST(Answer, OfTheScriptOfLeasedPermitsIsAGrantOrTheTimeOfALease)
{
    EXPECT_EQ(LockAnswer::ofPermits(nilReply)->kind, LockAnswer::Kind::granted);
    EXPECT_EQ(LockAnswer::ofPermits(integer(-1))->kind, LockAnswer::Kind::busy);
    EXPECT_FALSE(LockAnswer::ofPermits(integer(-1))->timeToLive);
    EXPECT_EQ(LockAnswer::ofPermits(integer(0))->timeToLive, 0ms);
    EXPECT_EQ(LockAnswer::ofPermits(integer(77))->timeToLive, 77ms);
    EXPECT_EQ(LockAnswer::ofPermits(integer(mostNumber))->timeToLive, maxLease);
    refuses(LockAnswer::ofPermits, {tokenReply, integer(-2), integer(-3), integer(leastNumber)});
}

TEST(Answer, OfALatchIsItsCount)
{
    EXPECT_EQ(LockAnswer::ofLatch(integer(0))->kind, LockAnswer::Kind::granted);
    EXPECT_EQ(LockAnswer::ofLatch(integer(-7))->kind, LockAnswer::Kind::granted);
    EXPECT_EQ(LockAnswer::ofLatch(integer(7))->kind, LockAnswer::Kind::busy);
    EXPECT_FALSE(LockAnswer::ofLatch(integer(7))->timeToLive);
    refuses(LockAnswer::ofLatch, {tokenReply, nilReply});
}

TEST(Answer, OfAnUnlockScriptIsFreedOrOfANestedLevelStillHeldOrAbsent)
{
    const auto outermost = [](const Reply& reply) { return UnlockAnswer::from(reply, Level::outermost); };
    const auto nested = [](const Reply& reply) { return UnlockAnswer::from(reply, Level::nested); };
    EXPECT_EQ(outermost(nilReply)->kind, UnlockAnswer::Kind::absent);
    EXPECT_EQ(nested(nilReply)->kind, UnlockAnswer::Kind::absent);
    EXPECT_EQ(nested(integer(0))->kind, UnlockAnswer::Kind::stillHeld);
    EXPECT_EQ(outermost(integer(1))->kind, UnlockAnswer::Kind::freed);
    EXPECT_EQ(outermost(integer(77))->kind, UnlockAnswer::Kind::freed) << "that many were told";
    refuses(outermost, {tokenReply, integer(0), integer(-1), integer(leastNumber)});
    refuses(nested, {tokenReply, integer(1), integer(77), integer(-1), integer(leastNumber)});
}

TEST(Answer, OfTheRenewScriptIsRenewedOrGoneForEachLock)
{
    const auto answers = text(Reply::Kind::text, "10wx");
    EXPECT_EQ(RenewAnswer::from(answers, 4, 0)->kind, RenewAnswer::Kind::renewed);
    EXPECT_EQ(RenewAnswer::from(answers, 4, 1)->kind, RenewAnswer::Kind::gone);
    EXPECT_EQ(RenewAnswer::from(answers, 4, 2)->kind, RenewAnswer::Kind::wrongType);
    EXPECT_FALSE(RenewAnswer::from(answers, 4, 3));
    EXPECT_FALSE(RenewAnswer::from(answers, 3, 0)) << "of another request";
    for (const auto& other : {tokenReply, nilReply, integer(1), text(Reply::Kind::status, "1")}) {
        EXPECT_FALSE(RenewAnswer::from(other, 1, 0));
    }
}

TEST(Answer, ThatTheScriptCannotGiveIsAFailureOfUnknownEffect)
{
    const auto event =
        eventOfReply<RenewMachine::Event, RenewAnswer>(eventAt, askedAt, integer(9), std::size_t{1}, std::size_t{0});
    const auto* failed = std::get_if<Failed>(&event);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->fault, (Fault{Failure::fatal, Errc::badReply}));
}

TEST(Answer, ThatIsAnErrorIsAFailureOfItsKind)
{
    const auto error = text(Reply::Kind::error, "OOM command not allowed");
    const auto event =
        eventOfReply<AcquireMachine::Event, LockAnswer>(eventAt, askedAt, error, Tokens::none, Level::outermost);
    const auto* failed = std::get_if<Failed>(&event);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->fault, (Fault{Failure::refused, Cause::outOfMemory}));
    EXPECT_EQ(failed->now, eventAt);
    const auto query = eventOfReply<QueryMachine::Event, Answered>(eventAt, askedAt, error);
    EXPECT_TRUE(std::holds_alternative<Failed>(query));
}

TEST(Answer, CarriesTheTimesOfItsRequest)
{
    const auto event =
        eventOfReply<AcquireMachine::Event, LockAnswer>(eventAt, askedAt, nilReply, Tokens::none, Level::outermost);
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    ASSERT_NE(replied, nullptr);
    EXPECT_EQ(replied->now, eventAt);
    EXPECT_EQ(replied->sentAt, askedAt);
    const auto any = eventOfReply<QueryMachine::Event, Answered>(eventAt, askedAt, integer(7));
    EXPECT_TRUE(std::holds_alternative<Replied<Answered>>(any)) << "its value is the driver's";
}

} // namespace
} // namespace redislock::detail
