// What the proxy passes on, and what it does to whole connections.
#include "support/fault_proxy_test.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RedisServer;

TEST_F(FaultProxyTest, PassesEverythingOnAndLogsIt)
{
    const std::string large(3 * 1024 * 1024, 'x');
    const auto before = bootTime();
    EXPECT_EQ(client_.command({"SET", "a", large}).text(), "OK");
    EXPECT_EQ(client_.command({"get", "a"}).text(), large);
    RawRedis second(proxy_.host(), proxy_.port());
    EXPECT_TRUE(second.command({"GET", "b"}).isNil());

    const auto log = proxy_.requestLog();
    ASSERT_EQ(log.size(), 3U);
    EXPECT_EQ(log[0].arguments.at(2).size(), 8192U);
    EXPECT_THAT(log[1].arguments, ElementsAre("get", "a"));
    EXPECT_EQ(log[1].connection, 1U);
    EXPECT_EQ(log[2].connection, 2U);
    EXPECT_LE(before, log[0].time);
    EXPECT_LE(log[0].time, log[1].time);
    EXPECT_LE(log[2].time, bootTime());
    EXPECT_EQ(proxy_.requests("GET"), 2U);
    EXPECT_EQ(proxy_.requests({.command = "get", .script = "b"}), 1U);
    proxy_.clearRequestLog();
    EXPECT_EQ(proxy_.requests("GET"), 0U);
    EXPECT_EQ(proxy_.connections(), 2U);
    EXPECT_EQ(proxy_.accepted(), 2U);
}

TEST_F(FaultProxyTest, KeepsPipelinesInlineCommandsAndTransactionsInStep)
{
    for (int i = 0; i < 500; ++i) {
        client_.send({"INCR", "n"});
    }
    for (int i = 1; i <= 500; ++i) {
        ASSERT_EQ(client_.receive().integer(), i);
    }
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::replace("+caught\r\n"));
    client_.sendBytes("\r\nPING\r\nMULTI\r\nINCR n\r\nEXEC\r\nECHO done\r\n");
    EXPECT_EQ(client_.receive().text(), "PONG");
    EXPECT_EQ(client_.receive().text(), "OK");
    EXPECT_EQ(client_.receive().text(), "QUEUED");
    EXPECT_EQ(client_.receive().elements.at(0).integer(), 501);
    EXPECT_EQ(client_.receive().text(), "caught");
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, PassesOnWhatIsNotResp)
{
    client_.sendBytes("*1\r\n+nonsense\r\n");
    EXPECT_THAT(client_.receive().text(), HasSubstr("Protocol error"));
    EXPECT_THROW(client_.receive(), std::runtime_error);
}

TEST_F(FaultProxyTest, CarriesReplication)
{
    direct_.command({"CONFIG", "SET", "repl-diskless-sync", "no"}); // the snapshot looks like RESP, but is not
    direct_.command({"SET", "a", std::string(100'000, 'x')});
    const RedisServer replica({.arguments = {"--replicaof", proxy_.host() + " " + std::to_string(proxy_.port())}});
    RawRedis reader(replica);
    EXPECT_TRUE(eventually([&] { return reader.info("master_link_status") == "up"; }));
    direct_.command({"SET", "b", "later"});
    EXPECT_TRUE(eventually([&] { return reader.get("b") == "later"; }));
    proxy_.stall();
    direct_.command({"SET", "c", "unseen"});
    EXPECT_EQ(reader.get("c"), std::nullopt);
    proxy_.resume();
    EXPECT_TRUE(eventually([&] { return reader.get("c") == "unseen"; }));
}

TEST_F(FaultProxyTest, CloseAllEndsEveryConnectionAndAcceptsNewOnes)
{
    RawRedis second(proxy_.host(), proxy_.port());
    client_.command({"PING"});
    second.command({"PING"});
    proxy_.closeAll();
    EXPECT_EQ(proxy_.connections(), 0U);
    EXPECT_THROW(client_.receive(), std::runtime_error);
    EXPECT_EQ(second.command({"PING"}).text(), "PONG");
    EXPECT_EQ(proxy_.accepted(), 3U);
}

TEST_F(FaultProxyTest, CloseAllEndsOrderlyOrWithAReset)
{
    RawSocket orderly(proxy_.port());
    proxy_.closeAll(FaultProxy::Close::orderly);
    EXPECT_EQ(orderly.read(), "");
    EXPECT_EQ(orderly.readError(), 0);
    RawSocket reset(proxy_.port());
    proxy_.closeAll(FaultProxy::Close::reset);
    EXPECT_EQ(reset.read(), "");
    EXPECT_EQ(reset.readError(), ECONNRESET);
}

TEST_F(FaultProxyTest, RefusesNewConnectionsAndKeepsTheOldOnes)
{
    client_.command({"PING"});
    for (int i = 0; i < 20; ++i) {
        proxy_.refuse();
        EXPECT_EQ(RawSocket(proxy_.port()).connectError(), ECONNREFUSED);
        EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
        proxy_.accept();
        EXPECT_EQ(RawRedis(proxy_.host(), proxy_.port()).command({"PING"}).text(), "PONG");
    }
}

TEST_F(FaultProxyTest, NothingPassesWhileStalled)
{
    client_.command({"PING"});
    proxy_.stall();
    client_.send({"INCR", "n"});
    RawRedis fresh(proxy_.host(), proxy_.port());
    fresh.send({"INCR", "n"});
    EXPECT_EQ(client_.receive(20ms), std::nullopt);
    EXPECT_EQ(fresh.receive(1ms), std::nullopt);
    EXPECT_EQ(counter("n"), 0);
    EXPECT_EQ(proxy_.requests("INCR"), 0U);
    proxy_.resume();
    EXPECT_TRUE(client_.receive().isInteger());
    EXPECT_TRUE(fresh.receive().isInteger());
    EXPECT_EQ(counter("n"), 2);
}

TEST_F(FaultProxyTest, EndOfTheServerPassesOnlyAfterAStall)
{
    client_.command({"PING"});
    proxy_.stall();
    server_.kill();
    EXPECT_EQ(client_.receive(20ms), std::nullopt);
    proxy_.resume();
    EXPECT_THROW(client_.receive(), std::runtime_error);
}

TEST_F(FaultProxyTest, EndOfAClientReachesTheServer)
{
    const auto clients = [&] { return direct_.info("connected_clients"); };
    client_.command({"PING"});
    EXPECT_EQ(clients(), "2");
    client_.disconnect();
    EXPECT_TRUE(eventually([&] { return clients() == "1"; }));
    EXPECT_TRUE(eventually([&] { return proxy_.connections() == 0; }));
}

TEST_F(FaultProxyTest, SurvivesItsServer)
{
    client_.command({"PING"});
    server_.kill();
    EXPECT_THROW(client_.command({"PING"}), std::runtime_error);
    EXPECT_THROW(client_.command({"PING"}), std::runtime_error);
    server_.restart();
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
}

TEST_F(FaultProxyTest, LeadsNewConnectionsToAnotherServer)
{
    const RedisServer other;
    client_.command({"PING"});
    proxy_.setUpstream(other);
    EXPECT_EQ(client_.info("process_id"), std::to_string(server_.pid()));
    proxy_.closeAll();
    EXPECT_EQ(client_.info("process_id"), std::to_string(other.pid()));
    EXPECT_THROW(proxy_.setUpstream("no.such.host", 1), std::invalid_argument);
    proxy_.setUpstream(server_);
}

TEST_F(FaultProxyTest, WaitsForHitsAndRequestsOfOtherThreads)
{
    const auto rule = proxy_.add({.command = "INCR", .nth = 0}, Action::pass());
    EXPECT_FALSE(proxy_.awaitHits(rule, 1, 5ms));
    EXPECT_FALSE(proxy_.awaitRequests("INCR", 1, 5ms));
    std::thread other([&] {
        client_.command({"INCR", "n"});
        client_.command({"INCR", "n"});
    });
    EXPECT_TRUE(proxy_.awaitHits(rule, 2));
    EXPECT_TRUE(proxy_.awaitRequests("INCR", 2));
    EXPECT_TRUE(proxy_.awaitRequests({.command = "INCR"}, 2));
    other.join();
}

TEST_F(FaultProxyTest, KnowsThePasswordOfItsServer)
{
    const RedisServer guarded({.password = "se/cret"});
    const FaultProxy proxy(guarded);
    EXPECT_EQ(proxy.url(), "redis://:se%2Fcret@127.0.0.1:" + std::to_string(proxy.port()));
    EXPECT_EQ(proxy_.url(), "redis://127.0.0.1:" + std::to_string(proxy_.port()));
}

TEST_F(FaultProxyTest, StaysWholeUnderLoadAndFaults)
{
    std::atomic<int> done = 0;
    std::atomic<int> answered = 0;
    const auto rule = proxy_.add({.command = "INCR", .nth = 0}, Action::pass());
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
        clients.emplace_back([&] {
            RawRedis redis(proxy_.host(), proxy_.port());
            for (int n = 0; n < 200; ++n) {
                try {
                    answered += redis.command({"INCR", "n"}).isInteger() ? 1 : 0;
                } catch (const std::runtime_error&) {
                    continue; // closed by the test
                }
            }
            ++done;
        });
    }
    for (std::size_t i = 1; done < 4 && i <= 20; ++i) {
        proxy_.closeAll(i % 2 == 0 ? FaultProxy::Close::orderly : FaultProxy::Close::reset);
        EXPECT_TRUE(proxy_.awaitHits(rule, std::min<std::size_t>(i * 20, 400)));
        proxy_.stall();
        proxy_.resume();
    }
    for (auto& client : clients) {
        client.join();
    }
    EXPECT_GT(answered, 0);
    EXPECT_GE(counter("n"), answered);
    EXPECT_EQ(proxy_.hits(rule), proxy_.requests("INCR"));
}

TEST(FaultProxy, EndsAtOnceWithConnectionsStalledAndDelayed)
{
    const RedisServer server;
    std::optional<FaultProxy> proxy(std::in_place, server);
    proxy->add({}, Action::delay(1h));
    RawRedis delayed(proxy->host(), proxy->port());
    delayed.send({"PING"});
    EXPECT_TRUE(proxy->awaitHits(redislock::test::RuleId{1}));
    proxy->stall();
    const Stopwatch watch;
    proxy.reset();
    EXPECT_LT(watch.elapsed(), 15s);
    EXPECT_THROW(delayed.receive(), std::runtime_error);
}

} // namespace
} // namespace redislock::test
