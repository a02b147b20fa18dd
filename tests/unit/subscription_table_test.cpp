#include "link/request/channels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redislock::detail {
namespace {

using Table = SubscriptionTable<int>;
using Incoming = Table::Incoming;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Reply text(std::string value)
{
    return {.kind = Reply::Kind::text, .integer = 0, .text = std::move(value), .elements = {}};
}

Reply status(std::string value)
{
    return {.kind = Reply::Kind::status, .integer = 0, .text = std::move(value), .elements = {}};
}

Reply errorReply(std::string value)
{
    return {.kind = Reply::Kind::error, .integer = 0, .text = std::move(value), .elements = {}};
}

Reply frame(std::vector<Reply> elements)
{
    return {.kind = Reply::Kind::array, .integer = 0, .text = {}, .elements = std::move(elements)};
}

Reply integerReply(std::int64_t value)
{
    return {.kind = Reply::Kind::integer, .integer = value, .text = {}, .elements = {}};
}

Reply subscribed(const std::string& channel)
{
    return frame({text("subscribe"), text(channel), integerReply(1)});
}

Reply unsubscribed(const std::string& channel)
{
    return frame({text("unsubscribe"), text(channel), integerReply(0)});
}

Reply message(const std::string& channel)
{
    return frame({text("message"), text(channel), text("0")});
}

/// Expects a frame to have this meaning, for this listener (0: for none).
void expectFrame(Table& table, const Reply& reply, Incoming::Kind kind, int listener)
{
    const auto incoming = table.received(reply);
    EXPECT_EQ(incoming.kind, kind);
    EXPECT_EQ(incoming.listeners.empty() ? 0 : incoming.listeners.front(), listener);
}

TEST(SubscriptionTable, TheFirstWishSubscribesAndTheLastDropUnsubscribes)
{
    Table table;
    EXPECT_TRUE(table.want("a", 1));
    EXPECT_FALSE(table.want("a", 2));
    EXPECT_TRUE(table.want("b", 2));
    EXPECT_EQ(table.size(), 2U);
    EXPECT_FALSE(table.drop("a", 3)) << "who never wanted it takes nobody's away";
    EXPECT_FALSE(table.drop("a", 1));
    EXPECT_TRUE(table.drop("a", 2));
    EXPECT_FALSE(table.drop("a", 2)) << "nobody wants it any more";
    EXPECT_FALSE(table.drop("never wanted", 1));
    EXPECT_EQ(table.size(), 1U);
    EXPECT_TRUE(table.want("a", 3)) << "wanted anew";
    table.drop("a", 3);
    table.drop("b", 2);
    EXPECT_TRUE(table.empty());
}

TEST(SubscriptionTable, ConfirmationsAndMessagesGoToTheirListener)
{
    Table table;
    table.want("a", 1);
    table.want("b", 2);
    table.sent("a");
    table.sent("b");
    EXPECT_EQ(table.unanswered(), 2U);
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 1);
    expectFrame(table, message("a"), Incoming::Kind::message, 1);
    expectFrame(table, subscribed("b"), Incoming::Kind::confirmed, 2);
    expectFrame(table, message("b"), Incoming::Kind::message, 2);
    EXPECT_EQ(table.unanswered(), 0U);
}

TEST(SubscriptionTable, AMessageForNobodyIsDropped)
{
    Table table;
    table.want("a", 1);
    table.sent("a");
    table.received(subscribed("a"));
    table.drop("a", 1);
    table.sent("a");
    expectFrame(table, message("a"), Incoming::Kind::message, 0);
    expectFrame(table, unsubscribed("a"), Incoming::Kind::nothing, 0);
    EXPECT_EQ(table.unanswered(), 0U);
}

TEST(SubscriptionTable, AChannelThatWasDroppedAndWantedAgainIsToldOfEveryConfirmation)
{
    Table table;
    table.want("a", 1);
    table.sent("a");
    table.drop("a", 1);
    table.sent("a");
    table.want("a", 2);
    table.sent("a");
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 2);
    expectFrame(table, unsubscribed("a"), Incoming::Kind::nothing, 0);
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 2);
    EXPECT_EQ(table.unanswered(), 0U);
}

TEST(SubscriptionTable, TheConfirmationOfAChannelThatWasDroppedMeansNothing)
{
    Table table;
    table.want("a", 1);
    table.sent("a");
    table.drop("a", 1);
    table.sent("a");
    expectFrame(table, subscribed("a"), Incoming::Kind::nothing, 0);
    expectFrame(table, unsubscribed("a"), Incoming::Kind::nothing, 0);
}

TEST(SubscriptionTable, ARefusalIsToldToTheChannelThatWasAskedFor)
{
    Table table;
    table.want("a", 1);
    table.want("b", 2);
    table.sent("a");
    table.sent("b");
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 1);
    expectFrame(table,
                errorReply("NOPERM this user has no permissions to access one of the channels used as arguments"),
                Incoming::Kind::refused, 2);
    EXPECT_EQ(table.unanswered(), 0U);
}

TEST(SubscriptionTable, AChannelThatIsRefusedForNowIsAskedForAgainAndItsListenersAreToldOnce)
{
    Table table;
    table.want("a", 1);
    const auto answer = [&table](const Reply& reply, Incoming::Kind kind, int listener) {
        table.sent("a");
        expectFrame(table, reply, kind, listener);
    };
    answer(errorReply("no upstream host"), Incoming::Kind::refused, 1);
    EXPECT_THAT(table.refusedForNow(), UnorderedElementsAre("a"));
    answer(errorReply("no upstream host"), Incoming::Kind::nothing, 0);
    answer(subscribed("a"), Incoming::Kind::confirmed, 1);
    EXPECT_THAT(table.refusedForNow(), IsEmpty());
    answer(errorReply("BUSY Redis is busy"), Incoming::Kind::refused, 1);
    answer(errorReply("NOPERM this user has no permissions"), Incoming::Kind::nothing, 0);
    EXPECT_THAT(table.refusedForNow(), IsEmpty()) << "that does not pass";
    answer(errorReply("BUSY Redis is busy"), Incoming::Kind::refused, 1);
    table.drop("a", 1);
    EXPECT_THAT(table.refusedForNow(), IsEmpty());
}

TEST(SubscriptionTable, ARefusalOfWhatNobodyWantsAnyMoreMeansNothing)
{
    Table table;
    table.want("a", 1);
    table.sent("a");
    table.drop("a", 1);
    expectFrame(table, errorReply("NOPERM"), Incoming::Kind::nothing, 0);
}

TEST(SubscriptionTable, AnswersToPingMeanNothingWhateverTheirForm)
{
    Table table;
    for (const Reply& pong : {status("PONG"), frame({text("pong"), text("")}), errorReply("BUSY Redis is busy")}) {
        table.want("a", 1);
        table.sent("");
        expectFrame(table, pong, Incoming::Kind::nothing, 0);
        EXPECT_EQ(table.unanswered(), 0U);
    }
}

TEST(SubscriptionTable, WhatWasNotAskedForIsUnexpected)
{
    struct Case {
        const char* name;
        Reply reply;
    };
    const Case cases[] = {
        {"a confirmation", subscribed("a")},
        {"an end of a subscription", unsubscribed("a")},
        {"an answer to PING", status("PONG")},
        {"an error", errorReply("ERR something")},
        {"an integer", integerReply(1)},
        {"a text", text("message")},
        {"nil", Reply{}},
        {"an empty array", frame({})},
        {"an array of one", frame({text("message")})},
        {"another kind of frame", frame({text("pmessage"), text("a"), text("a"), text("0")})},
        {"a frame of numbers", frame({integerReply(1), integerReply(2), integerReply(3)})},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Table table;
        table.want("a", 1);
        expectFrame(table, c.reply, Incoming::Kind::unexpected, 0);
    }
}

TEST(SubscriptionTable, ASubscriptionThatTheServerEndsByItselfIsUnexpected)
{
    Table table;
    table.want("a", 1);
    table.sent("a");
    table.received(subscribed("a"));
    expectFrame(table, unsubscribed("a"), Incoming::Kind::unexpected, 0);
}

TEST(SubscriptionTable, ANewConnectionSubscribesToAllAndForgetsWhatWasUnderWay)
{
    Table table;
    table.want("a", 1);
    table.want("b", 2);
    table.want("c", 3);
    table.drop("c", 3);
    table.sent("a");
    table.sent("b");
    EXPECT_THAT(table.connected(), UnorderedElementsAre("a", "b"));
    EXPECT_EQ(table.unanswered(), 0U);
    expectFrame(table, subscribed("a"), Incoming::Kind::unexpected, 0);
    table.sent("b");
    expectFrame(table, subscribed("b"), Incoming::Kind::confirmed, 2);
    EXPECT_THAT(Table().connected(), IsEmpty());
}

TEST(SubscriptionTable, EveryListenerOfAChannelIsTold)
{
    Table table;
    table.want("a", 1);
    table.want("a", 2);
    table.sent("a");
    EXPECT_THAT(table.received(subscribed("a")).listeners, ElementsAre(1, 2));
    const auto frame = message("a");
    const auto incoming = table.received(frame);
    EXPECT_THAT(incoming.listeners, ElementsAre(1, 2));
    EXPECT_EQ(incoming.text, "0");
    table.drop("a", 1);
    EXPECT_THAT(table.received(message("a")).listeners, ElementsAre(2));
}

TEST(SubscriptionTable, ChannelsMayHaveAnyBytes)
{
    Table table;
    const std::string odd("a\0\r\n{\xff", 6);
    table.want(odd, 1);
    table.want("a", 2);
    table.sent(odd);
    expectFrame(table, subscribed(odd), Incoming::Kind::confirmed, 1);
    expectFrame(table, message(odd), Incoming::Kind::message, 1);
    EXPECT_TRUE(table.drop(odd, 1));
    EXPECT_EQ(table.size(), 1U);
}

} // namespace
} // namespace redislock::detail
