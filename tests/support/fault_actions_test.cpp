// What the proxy does to the frames that a rule hits.
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/fault_proxy_test.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST_F(FaultProxyTest, DroppedRequestIsNeverExecuted)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::drop());
    client_.send({"INCR", "n"});
    EXPECT_TRUE(proxy_.awaitHits(rule));
    EXPECT_EQ(counter("n"), 0);
    EXPECT_EQ(proxy_.requests("INCR"), 0U);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, LosesAllThatComesBehindALostRequestOrReply)
{
    for (const auto& [direction, action] :
         {std::pair(Direction::request, Action::drop()), std::pair(Direction::request, Action::swallow()),
          std::pair(Direction::reply, Action::drop())}) {
        const auto executed = counter("n") + (action.kind() == Action::Kind::swallow || direction == Direction::reply);
        const auto rule = proxy_.add({.command = "INCR", .direction = direction}, action);
        RawRedis lost(proxy_.host(), proxy_.port());
        RawRedis other(proxy_.host(), proxy_.port());
        lost.send({"ECHO", "first"});
        lost.send({"INCR", "n"});
        lost.send({"ECHO", "second"});
        EXPECT_EQ(lost.receive().text(), "first");
        EXPECT_TRUE(proxy_.awaitHits(rule));
        EXPECT_EQ(other.command({"PING"}).text(), "PONG") << "other connections stay";
        EXPECT_TRUE(eventually([&] { return counter("n") == executed; }));
        proxy_.closeAll();
        EXPECT_THROW(lost.receive(), std::runtime_error) << "the second is no answer to the lost one";
    }
}

TEST_F(FaultProxyTest, DroppedReplyIsThatOfItsRequest)
{
    const auto rule = proxy_.add({.command = "INCR", .direction = Direction::reply, .nth = 2}, Action::drop());
    client_.send({"INCR", "n"});
    client_.send({"PING"});
    client_.send({"INCR", "n"});
    client_.send({"ECHO", "last"});
    EXPECT_EQ(client_.receive().integer(), 1);
    EXPECT_EQ(client_.receive().text(), "PONG");
    EXPECT_TRUE(proxy_.awaitHits(rule));
    EXPECT_EQ(counter("n"), 2);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, SwallowedRequestIsExecutedWithoutReply)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::swallow());
    client_.send({"INCR", "n"});
    EXPECT_TRUE(eventually([&] { return counter("n") == 1; }));
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, DelayedFramesComeLaterAndInOrder)
{
    for (const auto direction : {Direction::request, Direction::reply}) {
        const auto rule = proxy_.add({.command = "INCR", .direction = direction}, Action::delay(60ms));
        const Stopwatch watch;
        client_.send({"INCR", "n"});
        client_.send({"PING"});
        EXPECT_TRUE(client_.receive().isInteger());
        EXPECT_GE(watch.elapsed(), 60ms);
        EXPECT_EQ(client_.receive().text(), "PONG");
        EXPECT_EQ(proxy_.hits(rule), 1U);
    }
    EXPECT_EQ(counter("n"), 2);
}

TEST_F(FaultProxyTest, DoubledRequestIsExecutedTwiceAndAnsweredOnce)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::duplicate());
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    EXPECT_EQ(counter("n"), 2);
    EXPECT_EQ(proxy_.requests("INCR"), 2U);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, DoubledReplyComesTwice)
{
    const auto rule = proxy_.add({.command = "INCR", .direction = Direction::reply}, Action::duplicate());
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_EQ(client_.receive().integer(), 1);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, CutRequestIsNotExecutedAndTheConnectionCloses)
{
    const auto rule = proxy_.add({.command = "INCR", .script = "n"}, Action::cut());
    EXPECT_THAT([&] { client_.command({"INCR", "n"}); }, ThrowsMessage<std::runtime_error>(HasSubstr("closed")));
    EXPECT_EQ(counter("n"), 0);
    EXPECT_EQ(proxy_.hits(rule), 1U);
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
}

TEST_F(FaultProxyTest, CutReplyIsLostAfterTheEarlierOnesCame)
{
    const auto rule = proxy_.add({.command = "INCR", .direction = Direction::reply}, Action::cut());
    client_.send({"PING"});
    client_.send({"INCR", "n"});
    EXPECT_EQ(client_.receive().text(), "PONG");
    EXPECT_THROW(client_.receive(), std::runtime_error);
    EXPECT_EQ(counter("n"), 1);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, CutAfterForwardExecutesTheRequestButLosesItsReply)
{
    const auto rule = proxy_.add({.command = "EVAL"}, Action::cutAfterForward());
    server_.freeze(); // the client's side closes before the server even looks
    client_.send({"EVAL", incrementScript, "1", "n"});
    EXPECT_THAT([&] { client_.receive(); }, ThrowsMessage<std::runtime_error>(HasSubstr("closed the connection")));
    EXPECT_TRUE(proxy_.awaitRequests("EVAL"));
    server_.thaw();
    EXPECT_TRUE(eventually([&] { return counter("n") == 1; }));
    EXPECT_EQ(proxy_.hits(rule), 1U);
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 2);
    EXPECT_EQ(proxy_.connections(), 1U);
}

TEST_F(FaultProxyTest, CutAfterForwardOfAReplyDeliversIt)
{
    const auto rule = proxy_.add({.command = "INCR", .direction = Direction::reply}, Action::cutAfterForward());
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_THROW(client_.receive(), std::runtime_error);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, TruncatedRequestIsNotExecuted)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::truncate(12));
    EXPECT_THROW(client_.command({"INCR", "n"}), std::runtime_error);
    EXPECT_EQ(counter("n"), 0);
    EXPECT_EQ(proxy_.requests("INCR"), 0U);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, TruncatedReplyEndsInTheMiddle)
{
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::truncate(6));
    RawSocket socket(proxy_.port());
    socket.send("PING\r\nECHO abcdef\r\nPING\r\n");
    EXPECT_EQ(socket.read(), "+PONG\r\n$6\r\nab");
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, SplitReplyComesByteByByte)
{
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::split(5ms));
    RawSocket socket(proxy_.port());
    const Stopwatch watch;
    socket.send("ECHO abcdef\r\n");
    EXPECT_EQ(socket.read(12), "$6\r\nabcdef\r\n");
    EXPECT_GE(watch.elapsed(), 11 * 5ms) << "the pauses between twelve bytes";
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, SplitRequestIsExecutedAsItWas)
{
    const auto rule = proxy_.add({.command = "SET"}, Action::split());
    EXPECT_EQ(client_.command({"SET", "a", std::string(500, 'x')}).text(), "OK");
    EXPECT_EQ(direct_.get("a"), std::string(500, 'x'));
    EXPECT_EQ(proxy_.requests("SET"), 1U);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, ReplacedFramesAreWhatTheOtherSideSees)
{
    const auto request = proxy_.add({.command = "GET"}, Action::replace("*2\r\n$4\r\nECHO\r\n$3\r\nnew\r\n"));
    const auto reply = proxy_.add({.command = "EVALSHA", .direction = Direction::reply},
                                  Action::replace("-NOSCRIPT No matching script.\r\n"));
    EXPECT_EQ(client_.command({"GET", "a"}).text(), "new");
    const auto sha = direct_.command({"SCRIPT", "LOAD", incrementScript}).text();
    EXPECT_THAT(client_.command({"EVALSHA", sha, "1", "n"}).text(), HasSubstr("NOSCRIPT"));
    EXPECT_EQ(counter("n"), 1);
    EXPECT_EQ(client_.command({"EVALSHA", sha, "1", "n"}).integer(), 2);
    EXPECT_EQ(proxy_.hits(request), 1U);
    EXPECT_EQ(proxy_.hits(reply), 1U);
}

TEST_F(FaultProxyTest, StalledRequestsAreExecutedAfterTheResume)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::stallDirection());
    client_.send({"INCR", "n"});
    client_.send({"PING"});
    EXPECT_TRUE(proxy_.awaitHits(rule));
    RawRedis other(proxy_.host(), proxy_.port());
    EXPECT_EQ(other.command({"PING"}).text(), "PONG");
    EXPECT_EQ(client_.receive(20ms), std::nullopt);
    EXPECT_EQ(counter("n"), 0);
    proxy_.resume();
    EXPECT_EQ(client_.receive().integer(), 1);
    EXPECT_EQ(client_.receive().text(), "PONG");
}

TEST_F(FaultProxyTest, StalledRepliesHoldNothingBackFromTheServer)
{
    const auto rule = proxy_.add({.command = "INCR", .direction = Direction::reply}, Action::stallDirection());
    client_.send({"INCR", "n"});
    EXPECT_TRUE(proxy_.awaitHits(rule));
    client_.send({"INCR", "n"});
    EXPECT_TRUE(eventually([&] { return counter("n") == 2; }));
    EXPECT_EQ(client_.receive(20ms), std::nullopt);
    proxy_.resume();
    EXPECT_EQ(client_.receive().integer(), 1);
    EXPECT_EQ(client_.receive().integer(), 2);
}

} // namespace
} // namespace redislock::test
