// The proxy on connections whose frames it cannot read.
#include "redislock/testing/child_process.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/fault_proxy_test.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A proxy that passes bytes, in front of a plain Redis.
class FaultBytes : public FaultProxyTest {
protected:
    FaultBytes() { proxy_.passBytes(); }
};

TEST_F(FaultBytes, PassAsTheyComeAndAreNotLogged)
{
    EXPECT_EQ(client_.command({"ECHO", "a"}).text(), "a");
    EXPECT_EQ(proxy_.requests("ECHO"), 0U);
    const auto byCommand = proxy_.add({.command = "ECHO", .nth = 0}, Action::cut());
    EXPECT_EQ(client_.command({"ECHO", "a"}).text(), "a");
    EXPECT_EQ(proxy_.hits(byCommand), 0U);
}

TEST_F(FaultBytes, EndAtTheirPlaceInEachDirection)
{
    RawSocket asking(proxy_.port());
    const auto requests = proxy_.add({.atByte = 20}, Action::cut());
    asking.send("SET a 1\r\n");
    EXPECT_EQ(asking.read(5), "+OK\r\n");
    asking.send("SET b 1\r\nSET c 1\r\n"); // of the last command two bytes come through
    asking.read();
    EXPECT_EQ(proxy_.hits(requests), 1U);
    EXPECT_TRUE(eventually([&] { return direct_.exists("b"); }));
    EXPECT_FALSE(direct_.exists("c"));
    proxy_.clear();

    const auto replies = proxy_.add({.direction = Direction::reply, .atByte = 3}, Action::cut());
    for (const std::string answer : {"+PO", "+PONG\r\n"}) {
        RawSocket answered(proxy_.port());
        answered.send("PING\r\n");
        EXPECT_EQ(answered.read(answer.size()), answer) << "only the first connection is cut";
    }
    EXPECT_EQ(proxy_.hits(replies), 1U);
}

TEST_F(FaultBytes, ComeOneByOneInBothDirections)
{
    const auto there = proxy_.add({.nth = 0}, Action::split(1ms));
    const auto back = proxy_.add({.direction = Direction::reply, .nth = 0}, Action::split(1ms));
    const Stopwatch watch;
    EXPECT_EQ(client_.command({"ECHO", "0123456789"}).text(), "0123456789");
    EXPECT_GE(watch.elapsed(), 45ms) << "30 bytes there, 17 back";
    EXPECT_EQ(proxy_.hits(there), 1U);
    EXPECT_GE(proxy_.hits(back), 1U);
}

TEST_F(FaultBytes, StopAtTheirPlaceUntilTheyAreLetGo)
{
    const auto rule = proxy_.add({.direction = Direction::reply, .atByte = 3}, Action::stallDirection());
    RawSocket client(proxy_.port());
    client.send("SET a 1\r\n");
    EXPECT_TRUE(proxy_.awaitHits(rule));
    EXPECT_TRUE(direct_.exists("a"));
    proxy_.resume();
    EXPECT_EQ(client.read(5), "+OK\r\n");
}

TEST_F(FaultBytes, AreChangedAtTheirPlace)
{
    proxy_.add({.atByte = 5}, Action::replace("b\r\n"));
    RawSocket client(proxy_.port());
    client.send("ECHO a\r\n");
    EXPECT_EQ(client.read(7), "$1\r\nb\r\n");
}

TEST(FaultBytesOfTls, PassThroughAProxyOfAServerThatSpeaksIt)
{
    const testing::RedisServer server({.password = "p@ss", .tls = serverTls()});
    FaultProxy proxy(server);
    EXPECT_THAT(proxy.url(), StartsWith("rediss://:p%40ss@127.0.0.1:" + std::to_string(proxy.port()) + "?ca_file=%2F"));
    const auto ping = [&] {
        const testing::detail::TemporaryFolder folder;
        testing::detail::ChildProcess cli({testing::detail::findExecutable("redis-cli"), "-p",
                                           std::to_string(proxy.port()), "-a", "p@ss", "--tls", "--cacert",
                                           Authority::trusted().caFile(), "ping"},
                                          folder.path() / "log");
        cli.awaitEnd(10s);
        return testing::detail::readFile(folder.path() / "log");
    };
    EXPECT_THAT(ping(), HasSubstr("PONG"));
    proxy.add({.nth = 0}, Action::split(10us));
    proxy.add({.direction = Direction::reply, .nth = 0}, Action::split(10us));
    EXPECT_THAT(ping(), HasSubstr("PONG")) << "byte by byte";
    proxy.clear();
    const auto rule =
        proxy.add({.direction = Direction::reply, .nth = 0, .atByte = 600}, Action::replace(std::string(2000, 'x')));
    EXPECT_THAT(ping(), Not(HasSubstr("PONG"))) << "changed on the way";
    EXPECT_GE(proxy.hits(rule), 1U);
    EXPECT_EQ(proxy.requests("PING"), 0U);
}

} // namespace
} // namespace redislock::test
