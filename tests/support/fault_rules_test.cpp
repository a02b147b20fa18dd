// Which frames a rule of the proxy hits.
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/fault_proxy_test.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace redislock::test {
namespace {

using ::testing::HasSubstr;

TEST_F(FaultProxyTest, RulesCountOverAllConnections)
{
    RawRedis second(proxy_.host(), proxy_.port());
    const auto third = proxy_.add({.command = "incr", .nth = 3}, Action::replace("PING\r\n"));
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_EQ(second.command({"INCR", "n"}).integer(), 2);
    EXPECT_EQ(client_.command({"INCR", "n"}).text(), "PONG");
    EXPECT_EQ(second.command({"INCR", "n"}).integer(), 3);
    EXPECT_EQ(proxy_.hits(third), 1U);
}

TEST_F(FaultProxyTest, RulesHitEveryFrameUpToTheirLimit)
{
    const auto every = proxy_.add({.command = "INCR", .nth = 0}, Action::replace("PING\r\n"), 2);
    EXPECT_EQ(client_.command({"INCR", "n"}).text(), "PONG");
    EXPECT_EQ(client_.command({"INCR", "n"}).text(), "PONG");
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_EQ(proxy_.hits(every), 2U);
}

TEST_F(FaultProxyTest, RulesHitOneInSoManyFramesByLot)
{
    const auto rule = proxy_.add({.command = "INCR", .oneIn = 4}, Action::replace("PING\r\n"));
    std::string hits;
    for (int i = 0; i < 400; ++i) {
        hits += client_.command({"INCR", "n"}).isStatus() ? 'x' : '.';
    }
    EXPECT_GT(proxy_.hits(rule), 70U);
    EXPECT_LT(proxy_.hits(rule), 130U);
    EXPECT_EQ(static_cast<std::size_t>(std::count(hits.begin(), hits.end(), 'x')), proxy_.hits(rule));
    EXPECT_NE(hits.find("xx"), std::string::npos) << "not by lot";
    EXPECT_NE(hits.find("........"), std::string::npos) << "not by lot";
}

TEST_F(FaultProxyTest, RulesPickScriptsByHashByKeyAndByText)
{
    const auto sha = direct_.command({"SCRIPT", "LOAD", incrementScript}).text();
    const auto pong = Action::replace("PING\r\n");
    const auto byHash = proxy_.add({.command = "EVALSHA", .script = sha.substr(0, 8)}, pong);
    EXPECT_EQ(client_.command({"EVALSHA", sha, "1", "n"}).text(), "PONG");
    const auto byText = proxy_.add({.command = "EVAL", .script = "redis.call('incr'"}, pong);
    EXPECT_EQ(client_.command({"EVAL", "return 'other'", "0"}).text(), "other");
    EXPECT_EQ(client_.command({"EVAL", incrementScript, "1", "n"}).text(), "PONG");
    const auto byKey = proxy_.add({.script = "{n}:x", .nth = 1}, pong);
    EXPECT_TRUE(client_.command({"GET", "{n}:y"}).isNil());
    EXPECT_EQ(client_.command({"GET", "{n}:x"}).text(), "PONG");
    const auto byTwoWords = proxy_.add({.command = "script load"}, pong);
    EXPECT_TRUE(client_.command({"SCRIPT", "EXISTS", sha}).isArray());
    EXPECT_EQ(client_.command({"SCRIPT", "LOAD", "return 1"}).text(), "PONG");
    for (const auto rule : {byHash, byText, byKey, byTwoWords}) {
        EXPECT_EQ(proxy_.hits(rule), 1U);
    }
}

TEST_F(FaultProxyTest, FirstDueRuleHitsAndTheOthersCount)
{
    const auto first = proxy_.add({.command = "GET", .nth = 2}, Action::replace("ECHO first\r\n"));
    const auto second = proxy_.add({.nth = 0}, Action::replace("ECHO second\r\n"));
    const auto third = proxy_.add({.command = "GET", .nth = 1}, Action::replace("ECHO third\r\n"));
    EXPECT_EQ(client_.command({"GET", "a"}).text(), "second");
    EXPECT_EQ(client_.command({"GET", "a"}).text(), "first");
    EXPECT_EQ(proxy_.hits(first), 1U);
    EXPECT_EQ(proxy_.hits(second), 1U);
    EXPECT_EQ(proxy_.hits(third), 0U);
}

TEST_F(FaultProxyTest, RemovedRulesHitNothingMore)
{
    const auto one = proxy_.add({.nth = 0}, Action::pass());
    const auto two = proxy_.add({.direction = Direction::reply, .nth = 0}, Action::pass());
    client_.command({"PING"});
    proxy_.remove(one);
    client_.command({"PING"});
    proxy_.clear();
    client_.command({"PING"});
    EXPECT_EQ(proxy_.hits(one), 1U);
    EXPECT_EQ(proxy_.hits(two), 2U);
}

TEST_F(FaultProxyTest, MessagesArePushesAndDoNotCountAsReplies)
{
    const auto drop =
        proxy_.add({.command = "message", .script = "news", .direction = Direction::push, .nth = 2}, Action::drop());
    const auto twice = proxy_.add({.script = "three", .direction = Direction::push}, Action::duplicate());
    const auto ping = proxy_.add({.command = "PING", .direction = Direction::reply}, Action::replace("+ping\r\n"));
    client_.send({"SUBSCRIBE", "news", "other"});
    EXPECT_EQ(client_.receive().elements.at(2).integer(), 1);
    EXPECT_EQ(client_.receive().elements.at(2).integer(), 2);
    for (const auto* text : {"one", "two", "three"}) {
        direct_.command({"PUBLISH", "news", text});
    }
    client_.send({"PING"});
    EXPECT_EQ(client_.receive().elements.at(2).text(), "one");
    EXPECT_EQ(client_.receive().elements.at(2).text(), "three");
    EXPECT_EQ(client_.receive().elements.at(2).text(), "three");
    EXPECT_EQ(client_.receive().text(), "ping");
    EXPECT_EQ(proxy_.hits(drop) + proxy_.hits(twice) + proxy_.hits(ping), 3U);
}

TEST_F(FaultProxyTest, ConfirmationsAreRepliesOnePerChannel)
{
    const auto second =
        proxy_.add({.command = "SUBSCRIBE", .direction = Direction::reply, .nth = 2}, Action::replace("+second\r\n"));
    client_.send({"SUBSCRIBE", "a", "b", "c"});
    client_.send({"PSUBSCRIBE", "d*"});
    EXPECT_EQ(client_.receive().elements.at(1).text(), "a");
    EXPECT_EQ(client_.receive().text(), "second");
    EXPECT_EQ(client_.receive().elements.at(1).text(), "c");
    EXPECT_EQ(client_.receive().elements.at(1).text(), "d*");

    const auto third =
        proxy_.add({.command = "UNSUBSCRIBE", .direction = Direction::reply, .nth = 3}, Action::replace("+third\r\n"));
    const auto echo = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::replace("+echo\r\n"));
    client_.send({"UNSUBSCRIBE"});
    client_.send({"PUNSUBSCRIBE"});
    client_.send({"UNSUBSCRIBE"});
    client_.send({"ECHO", "x"});
    EXPECT_EQ(client_.receive().elements.at(0).text(), "unsubscribe");
    EXPECT_EQ(client_.receive().elements.at(0).text(), "unsubscribe");
    EXPECT_EQ(client_.receive().text(), "third");
    EXPECT_EQ(client_.receive().elements.at(0).text(), "punsubscribe");
    EXPECT_TRUE(client_.receive().elements.at(1).isNil());
    EXPECT_EQ(client_.receive().text(), "echo");
    EXPECT_EQ(proxy_.hits(second) + proxy_.hits(third) + proxy_.hits(echo), 3U);
}

TEST_F(FaultProxyTest, AnswerThatLooksLikeAMessageIsAReply)
{
    const auto rule = proxy_.add({.direction = Direction::push, .nth = 0}, Action::drop());
    EXPECT_EQ(client_.command({"EVAL", "return {'message', 'a', 'b'}", "0"}).elements.size(), 3U);
    EXPECT_EQ(client_.command({"EVAL", "return {'subscribe', 'a', 1}", "0"}).elements.size(), 3U);
    EXPECT_EQ(proxy_.hits(rule), 0U);
}

TEST_F(FaultProxyTest, RefusedSubscribeIsOneReply)
{
    direct_.command({"ACL", "SETUSER", "default", "resetchannels"});
    const auto rule = proxy_.add({.command = "PING", .direction = Direction::reply}, Action::replace("+caught\r\n"));
    client_.send({"SUBSCRIBE", "a", "b"});
    client_.send({"PING"});
    EXPECT_THAT(client_.receive().text(), HasSubstr("NOPERM"));
    EXPECT_EQ(client_.receive().text(), "caught");
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, UnderstandsResp3)
{
    EXPECT_FALSE(client_.command({"PING"}).isError());
    RawSocket socket(proxy_.port());
    const auto drop = proxy_.add({.direction = Direction::push}, Action::drop());
    socket.send("HELLO 3\r\nSUBSCRIBE news\r\n");
    EXPECT_TRUE(eventually([&] { return direct_.command({"PUBLISH", "news", "lost"}).integer() == 1; }));
    EXPECT_TRUE(proxy_.awaitHits(drop));
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::cutAfterForward());
    socket.send("ECHO end\r\n");
    EXPECT_THAT(socket.read(), ::testing::EndsWith("$4\r\nnews\r\n:1\r\n$3\r\nend\r\n"));
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

} // namespace
} // namespace redislock::test
