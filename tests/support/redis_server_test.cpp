// Servers for tests: they start, end, freeze and come back.
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::RedisServer;
using ::testing::ThrowsMessage;

bool processExists(pid_t pid)
{
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

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

TEST(RedisServer, KilledKeepsItsPortFromAllWhoLookForAFreeOne)
{
    RedisServer server;
    server.kill();
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const whole = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(fd, whole, sizeof(address)), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_EQ(::bind(fd, whole, sizeof(address)), -1) << "another server would have it now";
    ::close(fd);
    server.restart();
    EXPECT_EQ(RawRedis(server).command({"PING"}).text(), "PONG");
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

TEST(RedisServer, OlderThanRedis7StartsWithoutTheOptionThatItDoesNotKnow)
{
    const testing::detail::TemporaryFolder folder;
    const auto older = folder.path() / "older-server";
    std::ofstream(older)
        << "#!/bin/sh\n"
           "case \"$*\" in *enable-debug-command*) echo \">>> 'enable-debug-command'\"; exit 1 ;; esac\n"
           "exec redis-server \"$@\"\n";
    std::filesystem::permissions(older, std::filesystem::perms::owner_all);
    RedisServer server({.executable = older.string()});
    EXPECT_THAT(server.log(), HasSubstr(">>> 'enable-debug-command'"));
    EXPECT_EQ(RawRedis(server).command({"PING"}).text(), "PONG");
    server.restart();
    EXPECT_EQ(RawRedis(server).command({"PING"}).text(), "PONG");
}

TEST(RedisServer, SaysThatItsPortWasTaken)
{
    RedisServer server({.startTimeout = 3s});
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

} // namespace
} // namespace redislock::test
