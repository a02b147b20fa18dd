/// The tools of the other tests, tested against a real server.
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"
#include "support/resp_framer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using redislock::test::Action;
using redislock::test::bootTime;
using redislock::test::Direction;
using redislock::test::eventually;
using redislock::test::FaultProxy;
using redislock::test::Frame;
using redislock::test::RawRedis;
using redislock::test::RespFramer;
using redislock::test::Stopwatch;
using redislock::test::Value;
using redislock::testing::RedisServer;
using redislock::testing::RedisServerOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

bool processExists(pid_t pid)
{
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

// ---------------------------------------------------------------------------------------------- RedisServer

TEST(RedisServer, AnswersOnItsPortAndOnItsUnixSocket)
{
    const RedisServer server;
    EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(server.unixUrl(), "unix://" + server.unixSocket());
    EXPECT_EQ(RawRedis(server.host(), server.port()).command({"PING"}).text(), "PONG");
    EXPECT_EQ(RawRedis(server.unixSocket()).info("process_id"), std::to_string(server.pid()));
    EXPECT_EQ(RawRedis(server).info("tcp_port"), std::to_string(server.port()));
}

TEST(RedisServer, TakesArgumentsAndAllowsDebug)
{
    const RedisServer server({.arguments = {"--maxmemory", "7mb"}});
    RawRedis redis(server);
    EXPECT_EQ(redis.command({"CONFIG", "GET", "maxmemory"}).elements.at(1).text(), "7340032");
    EXPECT_EQ(redis.command({"CONFIG", "GET", "save"}).elements.at(1).text(), "");
    EXPECT_EQ(redis.command({"DEBUG", "SLEEP", "0"}).text(), "OK");
}

TEST(RedisServer, TakesAConfigurationFileBeforeTheArguments)
{
    const RedisServer other;
    const auto file = (other.folder() / "extra.conf").string();
    std::ofstream(file) << "maxclients 77\n";
    const RedisServer server({.arguments = {file, "--maxmemory", "7mb"}});
    EXPECT_EQ(RawRedis(server).command({"CONFIG", "GET", "maxclients"}).elements.at(1).text(), "77");
    EXPECT_EQ(RawRedis(server).command({"CONFIG", "GET", "maxmemory"}).elements.at(1).text(), "7340032");
}

TEST(RedisServer, AsksForItsPassword)
{
    const RedisServer server({.password = "p@ss word"});
    EXPECT_THAT(server.url(), HasSubstr("redis://:p%40ss%20word@127.0.0.1:"));
    EXPECT_THAT(RawRedis(server.host(), server.port()).command({"GET", "a"}).text(), HasSubstr("NOAUTH"));
    EXPECT_EQ(RawRedis(server).command({"PING"}).text(), "PONG");
    RawRedis wrong(server.host(), server.port(), "wrong");
    EXPECT_THAT([&] { wrong.command({"PING"}); }, ThrowsMessage<std::runtime_error>(HasSubstr("refused the password")));
}

TEST(RedisServer, ListensOnTheUnixSocketOnly)
{
    const RedisServer server({.unixSocketOnly = true});
    EXPECT_EQ(server.port(), 0);
    EXPECT_EQ(server.url(), server.unixUrl());
    EXPECT_EQ(RawRedis(server).info("tcp_port"), "0");
}

TEST(RedisServer, KilledAndRestartedServesOnTheSamePortWithoutItsData)
{
    RedisServer server;
    const auto port = server.port();
    const auto first = server.pid();
    RawRedis redis(server);
    redis.command({"SET", "a", "1"});
    server.kill();
    EXPECT_FALSE(server.isRunning());
    EXPECT_EQ(server.pid(), 0);
    EXPECT_FALSE(processExists(first));
    EXPECT_THROW(redis.command({"PING"}), std::runtime_error);
    server.restart();
    EXPECT_EQ(server.port(), port);
    EXPECT_NE(server.pid(), first);
    EXPECT_FALSE(redis.exists("a"));
}

TEST(RedisServer, KeepsDataOverARestartWhenAskedTo)
{
    RedisServer server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
    RawRedis redis(server);
    redis.command({"SET", "a", "1"});
    server.kill();
    server.restart();
    EXPECT_EQ(redis.get("a"), "1");
    server.stop();
    EXPECT_FALSE(server.isRunning());
    EXPECT_THAT(server.log(), HasSubstr("bye bye"));
}

TEST(RedisServer, FrozenKeepsConnectionsAndAnswersAfterTheThaw)
{
    RedisServer server;
    RawRedis redis(server);
    redis.command({"PING"});
    server.freeze();
    server.freeze();
    redis.send({"PING"});
    EXPECT_EQ(redis.receive(30ms), std::nullopt);
    EXPECT_TRUE(server.isRunning());
    server.thaw();
    EXPECT_EQ(redis.receive().text(), "PONG");
}

TEST(RedisServer, EndsEvenWhenFrozenAndRemovesItsFolder)
{
    pid_t pid = 0;
    std::filesystem::path folder;
    {
        RedisServer server;
        pid = server.pid();
        folder = server.folder();
        EXPECT_TRUE(std::filesystem::is_directory(folder));
        server.freeze();
    }
    EXPECT_FALSE(processExists(pid));
    EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(RedisServer, EndsWithTheThreadThatStartedIt)
{
    std::optional<RedisServer> server;
    std::thread([&] { server.emplace(); }).join();
    EXPECT_TRUE(eventually([&] { return !server->isRunning(); }));
}

TEST(RedisServer, SeesThatItEndedByItself)
{
    RedisServer server;
    RawRedis(server).send({"SHUTDOWN", "NOSAVE"});
    EXPECT_TRUE(eventually([&] { return !server.isRunning(); }));
    EXPECT_THROW(server.freeze(), std::logic_error);
    server.kill();
    server.thaw();
}

TEST(RedisServer, SaysWhyItDidNotStart)
{
    EXPECT_THAT(
        [] {
            RedisServer server({.arguments = {"--no-such-thing", "1"}});
        },
        ThrowsMessage<std::runtime_error>(HasSubstr("no-such-thing")));
    EXPECT_THAT([] { RedisServer server({.executable = "no-such-server"}); },
                ThrowsMessage<std::runtime_error>(HasSubstr("no-such-server was not found in PATH")));
    EXPECT_THAT([] { RedisServer server({.executable = "/nowhere/redis-server"}); },
                ThrowsMessage<std::runtime_error>(HasSubstr("cannot run /nowhere/redis-server")));
}

TEST(RedisServer, SaysThatItsPortWasTaken)
{
    RedisServer server({.startTimeout = 100ms});
    server.kill();
    const RedisServer thief({.arguments = {"--port", std::to_string(server.port())}});
    EXPECT_THAT([&] { server.restart(); }, ThrowsMessage<std::runtime_error>(HasSubstr("Address already in use")));
    EXPECT_FALSE(server.isRunning());
}

TEST(RedisServer, ManyAtOnceGetPortsOfTheirOwn)
{
    std::vector<RedisServer> servers;
    for (int i = 0; i < 8; ++i) {
        servers.emplace_back();
    }
    for (const auto& server : servers) {
        EXPECT_EQ(RawRedis(server).info("process_id"), std::to_string(server.pid()));
    }
}

// ------------------------------------------------------------------------------------------------- RawRedis

class RawRedisTest : public ::testing::Test {
protected:
    void TearDown() override { server_.kill(); } // faster than its destructor

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

// ----------------------------------------------------------------------------------------------- RespFramer

std::vector<std::string> framesOf(std::string_view bytes, std::size_t piece)
{
    RespFramer framer;
    std::vector<std::string> frames;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        framer.feed(bytes.substr(0, piece));
        while (const auto frame = framer.next()) {
            frames.push_back(frame->bytes);
        }
    }
    EXPECT_FALSE(framer.broken());
    EXPECT_EQ(framer.rest(), "");
    return frames;
}

TEST(RespFramer, FindsTheSameFramesHoweverTheBytesArrive)
{
    const std::vector<std::string> expected = {
        "*2\r\n$3\r\nGET\r\n$4\r\n\r\n*1\r\n",
        "+OK\r\n",
        "-ERR no\r\n",
        ":-12\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "$0\r\n\r\n",
        "*3\r\n*2\r\n:1\r\n$-1\r\n*0\r\n+x\r\n",
        "PING hello\r\n",
        "\r\n",
        "%1\r\n+a\r\n*1\r\n:1\r\n",
        ">2\r\n+message\r\n$2\r\n\r\n\r\n",
        "_\r\n",
        "#t\r\n",
    };
    std::string stream;
    for (const auto& frame : expected) {
        stream += frame;
    }
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        EXPECT_EQ(framesOf(stream, piece), expected) << "in pieces of " << piece;
    }
}

TEST(RespFramer, GivesTheWordsOfAFrame)
{
    RespFramer framer;
    framer.feed("*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n:7\r\nECHO  a b\r\n");
    EXPECT_THAT(framer.next().value_or(Frame{}).words, ElementsAre("SET", "\r\n", "7"));
    EXPECT_THAT(framer.next().value_or(Frame{}).words, ElementsAre("ECHO", "a", "b"));
}

TEST(RespFramer, StopsAtBytesThatAreNotResp)
{
    for (const std::string bad :
         {"$x\r\n", "$-2\r\n", "*99999999999\r\n", "$1\r\nabc\r\n", "*1\r\nPING\r\n", "@1\r\n"}) {
        RespFramer framer;
        framer.feed("+OK\r\n" + bad + "+rest\r\n");
        EXPECT_TRUE(framer.next()) << bad;
        EXPECT_FALSE(framer.next()) << bad;
        EXPECT_TRUE(framer.broken()) << bad;
        EXPECT_EQ(framer.rest(), bad + "+rest\r\n");
    }
}

// ----------------------------------------------------------------------------------------------- FaultProxy

class FaultProxyTest : public ::testing::Test {
protected:
    /// Every test ends with a fresh client that works, once the faults are over.
    void TearDown() override
    {
        proxy_.clear();
        proxy_.accept();
        proxy_.resume();
        if (server_.isRunning()) {
            RawRedis fresh(proxy_.host(), proxy_.port());
            EXPECT_EQ(fresh.command({"ECHO", "fresh"}).text(), "fresh");
        }
        server_.kill(); // faster than its destructor
    }

    std::int64_t counter(std::string_view name) { return std::stoll(direct_.get(name).value_or("0")); }

    RedisServer server_;
    FaultProxy proxy_{server_};
    RawRedis direct_{server_};
    RawRedis client_{proxy_.host(), proxy_.port()};
};

constexpr std::string_view incrementScript = "return redis.call('incr', KEYS[1])";

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
    EXPECT_EQ(log[0].arguments.at(2).size(), 4096U);
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
    direct_.command({"CONFIG", "SET", "repl-diskless-sync", "no"}); // its snapshot looks like RESP, but is not
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

TEST_F(FaultProxyTest, DroppedRequestIsNeverExecuted)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::drop());
    client_.send({"INCR", "n"});
    EXPECT_TRUE(proxy_.awaitHits(rule));
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    EXPECT_EQ(counter("n"), 0);
    EXPECT_EQ(proxy_.requests("INCR"), 0U);
    EXPECT_EQ(client_.command({"INCR", "n"}).integer(), 1);
    EXPECT_EQ(proxy_.hits(rule), 1U);
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
    EXPECT_EQ(client_.receive().text(), "last");
    EXPECT_EQ(counter("n"), 2);
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, SwallowedRequestIsExecutedWithoutReply)
{
    const auto rule = proxy_.add({.command = "INCR"}, Action::swallow());
    client_.send({"INCR", "n"});
    EXPECT_EQ(client_.command({"PING"}).text(), "PONG");
    EXPECT_EQ(counter("n"), 1);
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

/// A connection that shows the bytes as they come.
class RawSocket {
public:
    explicit RawSocket(std::uint16_t port)
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
        error_ = connected_ ? 0 : errno;
    }
    RawSocket(const RawSocket&) = delete;
    RawSocket& operator=(const RawSocket&) = delete;
    ~RawSocket() { ::close(fd_); }

    int connectError() const { return error_; }
    void send(std::string_view bytes) const { EXPECT_GT(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0); }

    /// The pieces that recv() returned until the end or until there are @p size bytes.
    std::vector<std::string> pieces(std::size_t size)
    {
        std::vector<std::string> all;
        for (std::size_t total = 0; total < size; total += all.back().size()) {
            std::array<char, 1024> buffer{};
            const auto count = ::recv(fd_, buffer.data(), buffer.size(), 0);
            if (count <= 0) {
                error_ = count == 0 ? 0 : errno;
                break;
            }
            all.emplace_back(buffer.data(), static_cast<std::size_t>(count));
        }
        return all;
    }

    std::string all()
    {
        std::string bytes;
        for (const auto& piece : pieces(std::string::npos)) {
            bytes += piece;
        }
        return bytes;
    }

    /// Of the last recv(); 0 after an orderly end.
    int readError() const { return error_; }

private:
    int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected_ = false;
    int error_ = 0;
};

TEST_F(FaultProxyTest, TruncatedReplyEndsInTheMiddle)
{
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::truncate(6));
    RawSocket socket(proxy_.port());
    socket.send("PING\r\nECHO abcdef\r\nPING\r\n");
    EXPECT_EQ(socket.all(), "+PONG\r\n$6\r\nab");
    EXPECT_EQ(proxy_.hits(rule), 1U);
}

TEST_F(FaultProxyTest, SplitReplyComesByteByByte)
{
    const auto rule = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::split(1ms));
    RawSocket socket(proxy_.port());
    socket.send("ECHO abcdef\r\n");
    const auto pieces = socket.pieces(12);
    EXPECT_GE(pieces.size(), 6U);
    EXPECT_EQ(pieces.front(), "$");
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
    const auto second = proxy_.add({.command = "SUBSCRIBE", .direction = Direction::reply, .nth = 2}, Action::drop());
    client_.send({"SUBSCRIBE", "a", "b", "c"});
    client_.send({"PSUBSCRIBE", "d*"});
    EXPECT_EQ(client_.receive().elements.at(1).text(), "a");
    EXPECT_EQ(client_.receive().elements.at(1).text(), "c");
    EXPECT_EQ(client_.receive().elements.at(1).text(), "d*");

    const auto third = proxy_.add({.command = "UNSUBSCRIBE", .direction = Direction::reply, .nth = 3}, Action::drop());
    const auto echo = proxy_.add({.command = "ECHO", .direction = Direction::reply}, Action::replace("+echo\r\n"));
    client_.send({"UNSUBSCRIBE"});
    client_.send({"PUNSUBSCRIBE"});
    client_.send({"UNSUBSCRIBE"});
    client_.send({"ECHO", "x"});
    EXPECT_EQ(client_.receive().elements.at(0).text(), "unsubscribe");
    EXPECT_EQ(client_.receive().elements.at(0).text(), "unsubscribe");
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
    EXPECT_THAT(socket.all(), ::testing::EndsWith("$4\r\nnews\r\n:1\r\n$3\r\nend\r\n"));
    EXPECT_EQ(proxy_.hits(rule), 1U);
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
    EXPECT_EQ(orderly.all(), "");
    EXPECT_EQ(orderly.readError(), 0);
    RawSocket reset(proxy_.port());
    proxy_.closeAll(FaultProxy::Close::reset);
    EXPECT_EQ(reset.all(), "");
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
    EXPECT_LT(watch.elapsed(), 1s);
    EXPECT_THROW(delayed.receive(), std::runtime_error);
}

// ----------------------------------------------------------------------------------------------- eventually

TEST(Eventually, EndsWithThePredicateOrWithTheTime)
{
    int calls = 0;
    EXPECT_TRUE(eventually([&] { return ++calls == 4; }));
    EXPECT_EQ(calls, 4);
    const Stopwatch watch;
    EXPECT_FALSE(eventually([] { return false; }, 10ms));
    EXPECT_GE(watch.elapsedMs(), 10ms);
}

} // namespace
