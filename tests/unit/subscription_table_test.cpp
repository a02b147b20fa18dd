#include "link/request/channels.hpp"
#include "link/subscriptions.hpp"
#include "support/replies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace redislock::detail {
namespace {

using Table = SubscriptionTable<int>;
using Incoming = Table::Incoming;
using test::arrayReply;
using test::errorReply;
using test::numberReply;
using test::textReply;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Reply status(std::string value)
{
    return {.kind = Reply::Kind::status, .integer = 0, .text = std::move(value), .elements = {}};
}

Reply subscribed(const std::string& channel)
{
    return arrayReply({textReply("subscribe"), textReply(channel), numberReply(1)});
}

Reply unsubscribed(const std::string& channel)
{
    return arrayReply({textReply("unsubscribe"), textReply(channel), numberReply(0)});
}

Reply message(const std::string& channel)
{
    return arrayReply({textReply("message"), textReply(channel), textReply("0")});
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

Reply frame(const char* what, const std::string& channel)
{
    return arrayReply({textReply(what), textReply(channel), textReply("0")});
}

TEST(SubscriptionTable, KeepsShardedChannelsApartFromTheOthers)
{
    Table table;
    EXPECT_TRUE(table.want(">a", 1));
    EXPECT_TRUE(table.want("a", 2));
    table.sent(">a");
    table.sent("a");
    expectFrame(table, frame("ssubscribe", "a"), Incoming::Kind::confirmed, 1);
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 2);
    expectFrame(table, frame("smessage", "a"), Incoming::Kind::message, 1);
    expectFrame(table, message("a"), Incoming::Kind::message, 2);
}

TEST(SubscriptionTable, UnderstandsThatTheServerEndsASubscription)
{
    Table table;
    table.want(">a", 1);
    table.sent(">a");
    table.received(frame("ssubscribe", "a"));
    table.sent("");
    expectFrame(table, frame("sunsubscribe", "a"), Incoming::Kind::ended, 1);
    EXPECT_THAT(table.refusedForNow(), ElementsAre(">a")) << "it is asked for again";
    EXPECT_EQ(table.unanswered(), 1U) << "which was no answer";
    table.drop(">a", 1);
    table.sent(">a", true);
    table.received(status("PONG"));
    expectFrame(table, frame("sunsubscribe", "a"), Incoming::Kind::nothing, 0);
    expectFrame(table, frame("sunsubscribe", "a"), Incoming::Kind::nothing, 0);
}

TEST(SubscriptionTable, UnderstandsThatAnotherNodeHasTheChannel)
{
    Table table;
    table.want(">a", 1);
    table.want(">b", 2);
    table.sent(">a");
    expectFrame(table, errorReply("MOVED 15495 127.0.0.1:7001"), Incoming::Kind::ended, 1);
    const auto taken = table.take([](const std::string& channel) { return channel == ">a"; });
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].first, ">a");
    EXPECT_THAT(taken[0].second, ElementsAre(1));
    EXPECT_THAT(table.refusedForNow(), IsEmpty());
    EXPECT_EQ(table.size(), 1U);
}

TEST(SubscriptionTable, TakesTheOtherChannelsWhereThereAreNoShardedOnes)
{
    Table table;
    table.want(">a", 1);
    table.sent(">a");
    expectFrame(table, errorReply("ERR unknown command 'SSUBSCRIBE'"), Incoming::Kind::unsharded, 0);
    EXPECT_THAT(table.channels(), ElementsAre("a"));
    table.sent("a");
    expectFrame(table, subscribed("a"), Incoming::Kind::confirmed, 1);
    expectFrame(table, message("a"), Incoming::Kind::message, 1);
    EXPECT_TRUE(table.drop(">a", 1));
    EXPECT_TRUE(table.want(">b", 1));
    EXPECT_THAT(table.channels(), ElementsAre("b"));
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
    for (const Reply& pong :
         {status("PONG"), arrayReply({textReply("pong"), textReply("")}), errorReply("BUSY Redis is busy")}) {
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
        {"an integer", numberReply(1)},
        {"a text", textReply("message")},
        {"nil", Reply{}},
        {"an empty array", arrayReply({})},
        {"an array of one", arrayReply({textReply("message")})},
        {"another kind of frame", arrayReply({textReply("pmessage"), textReply("a"), textReply("a"), textReply("0")})},
        {"a frame of numbers", arrayReply({numberReply(1), numberReply(2), numberReply(3)})},
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

/// The protocol around the table, fed by hand.
class SubscriptionsTest : public ::testing::Test {
protected:
    static constexpr std::chrono::milliseconds timeout{100}, heartbeat{2000};

    void open()
    {
        FinishedCalls finished;
        connection.connecting();
        connection.opened(now, finished);
    }
    void hear(Reply reply)
    {
        FinishedCalls finished;
        (void)connection.received(reply, now, finished);
    }
    std::string write()
    {
        std::string bytes;
        if (connection.hasBytes()) {
            connection.takeBytes(bytes, now);
        }
        return bytes;
    }
    std::string pulse()
    {
        now = connection.dueAt();
        EXPECT_FALSE(connection.timeIsOver(now));
        return write();
    }

    TimePoint now{std::chrono::hours(1)};
    Subscriptions connection{timeout, heartbeat, 1};
    const std::string subscribe = "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n", ping = "*1\r\n$4\r\nPING\r\n";
};

TEST_F(SubscriptionsTest, EachConnectionListensAgainAndIsSilentIfThatIsNotAnswered)
{
    EXPECT_FALSE(connection.attemptAt());
    connection.want("a", {});
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(connection.attemptAt());
        open();
        EXPECT_EQ(connection.dueAt(), now + heartbeat) << "nothing is written yet";
        EXPECT_EQ(write(), subscribe);
        now = connection.dueAt();
        EXPECT_TRUE(connection.timeIsOver(now));
        FinishedCalls finished;
        (void)connection.lost({Failure::lostReply, Cause::silent}, now, finished);
    }
}

TEST_F(SubscriptionsTest, AQuietConnectionIsAskedForASignOfLife)
{
    connection.want("a", {});
    open();
    write();
    hear(subscribed("a"));
    EXPECT_EQ(pulse(), ping);
    EXPECT_EQ(connection.dueAt(), now + timeout);
    hear(arrayReply({textReply("pong"), textReply("")}));
    EXPECT_EQ(pulse(), ping);
}

TEST_F(SubscriptionsTest, ARefusedChannelIsAskedForAgainAfterASecond)
{
    connection.want("a", {});
    open();
    write();
    hear(errorReply("LOADING Redis is loading the dataset in memory"));
    EXPECT_EQ(connection.dueAt(), now + std::chrono::seconds(1));
    EXPECT_EQ(pulse(), subscribe);
}

} // namespace
} // namespace redislock::detail
