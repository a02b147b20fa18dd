// The plain client with which tests check what is really in Redis.
#include "redislock/testing/redis_server.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::RedisServer;
using ::testing::ThrowsMessage;

class RawRedisTest : public ::testing::Test {
protected:
    void TearDown() override { server_.kill(); } // faster than the server's destructor

    RedisServer server_;
    RawRedis redis_{server_};
};

TEST_F(RawRedisTest, ReadsEveryKindOfAnswer)
{
    EXPECT_EQ(redis_.command({"SET", "a", std::string_view("x\0\r\ny", 5)}).text(), "OK");
    EXPECT_EQ(redis_.command({"GET", "a"}).text(), std::string("x\0\r\ny", 5));
    EXPECT_TRUE(redis_.command({"GET", "b"}).isNil());
    EXPECT_EQ(redis_.command({"STRLEN", "a"}).integer(), 5);
    EXPECT_TRUE(redis_.command({"LPUSH", "a", "1"}).isError());
    const auto nested = redis_.command(RawRedis::Arguments{"EVAL", "return {1, {'two', false}, {}}", "0"});
    EXPECT_EQ(::testing::PrintToString(nested), "[1, [\"two\", (nil)], []]");
    EXPECT_EQ(nested.elements.at(1).elements.at(0).text(), "two");
}

TEST_F(RawRedisTest, ShowsTheAnswerThatHadTheWrongKind)
{
    EXPECT_THAT([&] { (void)redis_.command({"PING"}).integer(); }, ThrowsMessage<std::logic_error>(HasSubstr("PONG")));
    EXPECT_THAT(
        [&] {
            (void)redis_.command({"GET", "b"}).text();
        },
        ThrowsMessage<std::logic_error>(HasSubstr("(nil)")));
}

TEST_F(RawRedisTest, LooksAtKeysAndStatistics)
{
    redis_.command({"HSET", "h", "a", "1", "b", "2"});
    EXPECT_THAT(redis_.hash("h"), ElementsAre(Pair("a", "1"), Pair("b", "2")));
    EXPECT_TRUE(redis_.hash("none").empty());
    EXPECT_EQ(redis_.pttl("h"), -1ms);
    EXPECT_EQ(redis_.pttl("none"), -2ms);
    EXPECT_TRUE(redis_.exists("h"));
    EXPECT_EQ(redis_.get("none"), std::nullopt);
    EXPECT_EQ(redis_.commandCalls("hset"), 1U);
    EXPECT_EQ(redis_.commandCalls("evalsha"), 0U);
    redis_.command({"CLIENT", "SETNAME", "x"});
    EXPECT_EQ(redis_.commandCalls("client|setname"), 1U);
    EXPECT_EQ(redis_.info("role"), "master");
    EXPECT_THROW(redis_.info("no_such_field"), std::runtime_error);
}

TEST_F(RawRedisTest, ReconnectsAfterARestartButNeverSendsTwice)
{
    redis_.command({"PING"});
    server_.restart();
    EXPECT_EQ(redis_.command({"PING"}).text(), "PONG");
    EXPECT_THROW(redis_.command({"SHUTDOWN", "NOSAVE"}), std::runtime_error);
    server_.restart();
    EXPECT_EQ(redis_.commandCalls("shutdown"), 0U);
}

TEST_F(RawRedisTest, GivesUpWhenNoAnswerComes)
{
    redis_.setTimeout(50ms);
    redis_.command({"PING"});
    server_.freeze();
    EXPECT_THAT([&] { redis_.command({"PING"}); }, ThrowsMessage<std::runtime_error>(HasSubstr("did not answer")));
    server_.thaw();
    EXPECT_EQ(redis_.command({"PING"}).text(), "PONG");
}

TEST_F(RawRedisTest, ReceivesMessages)
{
    RawRedis subscriber(server_);
    EXPECT_EQ(subscriber.command({"SUBSCRIBE", "news"}).elements.at(0).text(), "subscribe");
    EXPECT_EQ(redis_.command({"PUBLISH", "news", "hello"}).integer(), 1);
    EXPECT_EQ(subscriber.receive().elements.at(2).text(), "hello");
    EXPECT_EQ(subscriber.receive(1ms), std::nullopt);
}

TEST_F(RawRedisTest, MovesWithItsConnection)
{
    const auto id = redis_.command({"CLIENT", "ID"});
    auto moved = std::move(redis_);
    EXPECT_EQ(moved.command({"CLIENT", "ID"}), id);
}

} // namespace
} // namespace redislock::test
