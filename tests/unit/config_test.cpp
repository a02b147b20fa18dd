#include "redislock/config.hpp"

#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The message of the refusal; empty when the configuration is accepted.
std::string refusal(const Config& config)
{
    try {
        config.validate();
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Errc::badConfig);
        return error.what();
    }
    return {};
}

const Sentinels watchers{
    .name = "main",
    .endpoints = {{.host = "s1", .port = 26379, .unixSocket = ""}, {.host = "s2", .port = 26379, .unixSocket = ""}}};

TEST(Config, IsValidAsItComes)
{
    EXPECT_NO_THROW(Config().validate());
}

TEST(Config, NamesTheFieldThatBreaksItsRuleAndItsValue)
{
    struct Case {
        const char* name;
        void (*breakIt)(Config&);
        const char* message;
    };
    const Case cases[] = {
        {"empty host", [](Config& c) { c.endpoint.host.clear(); }, "endpoint.host is \"\", but must be a host name"},
        {"host with a space", [](Config& c) { c.endpoint.host = "a b"; }, "endpoint.host is \"a b\", but"},
        {"host with a line break", [](Config& c) { c.endpoint.host = "a\r\nb"; },
         R"(endpoint.host is "a\x0d\x0ab", but)"},
        {"host with a NUL", [](Config& c) { c.endpoint.host = "a\0b"s; }, R"(endpoint.host is "a\x00b", but)"},
        {"host that is a URL", [](Config& c) { c.endpoint.host = "redis://a"; }, "endpoint.host is \"redis://a\", but"},
        {"host in brackets", [](Config& c) { c.endpoint.host = "[::1]"; }, "endpoint.host is \"[::1]\", but"},
        {"host too long", [](Config& c) { c.endpoint.host.assign(254, 'a'); }, "endpoint.host is \"aaa"},
        {"port zero", [](Config& c) { c.endpoint.port = 0; }, "endpoint.port is 0, but must be 1 to 65535"},
        {"socket path too long", [](Config& c) { c.endpoint.unixSocket.assign(108, 'a'); },
         "endpoint.unixSocket is aaa"},
        {"socket path with a NUL", [](Config& c) { c.endpoint.unixSocket = "/a\0b"s; },
         R"(endpoint.unixSocket is /a\x00b, but)"},
        {"TLS on a unix socket",
         [](Config& c) {
             c.endpoint.unixSocket = "/s";
             c.tls.emplace();
         },
         "tls is set, but is not for unix sockets"},
        {"file of TLS with a NUL", [](Config& c) { c.tls.emplace().caFile = "a\0b"s; },
         R"(tls.caFile is "a\x00b", but)"},
        {"credentials twice",
         [](Config& c) {
             c.password = "secret";
             c.credentials = [](const Endpoint&) { return Credentials(); };
         },
         "credentials is a function, but needs username and password to be empty"},
        {"user without a password", [](Config& c) { c.username = "orders"; }, "username is ***, but needs a password"},
        {"database", [](Config& c) { c.database = 65536; }, "database is 65536, but must be 0 to 65535"},
        {"client name with a space", [](Config& c) { c.clientName = "a b"; }, "clientName is \"a b\", but"},
        {"client name with a line break", [](Config& c) { c.clientName = "a\nb"; }, R"(clientName is "a\x0ab", but)"},
        {"client name not ASCII", [](Config& c) { c.clientName = "\xc3\xa4"; }, R"(clientName is "\xc3\xa4", but)"},
        {"client name too long", [](Config& c) { c.clientName.assign(65, 'a'); }, "clientName is \"aaa"},
        {"connectTimeout low", [](Config& c) { c.connectTimeout = 9ms; },
         "connectTimeout is 9 ms, but must be 10 ms to 1 min"},
        {"connectTimeout high", [](Config& c) { c.connectTimeout = 60'001ms; }, "connectTimeout is 60001 ms, but"},
        {"commandTimeout low", [](Config& c) { c.commandTimeout = 0ms; },
         "commandTimeout is 0 ms, but must be 10 ms to 1 min"},
        {"commandTimeout high", [](Config& c) { c.commandTimeout = milliseconds::max(); },
         "commandTimeout is 9223372036854775807 ms, but"},
        {"unreachableAfter low", [](Config& c) { c.unreachableAfter = -1ms; },
         "unreachableAfter is -1 ms, but must be 10 ms to 1 h"},
        {"unreachableAfter high", [](Config& c) { c.unreachableAfter = 1h + 1ms; },
         "unreachableAfter is 3600001 ms, but"},
        {"watchdogTimeout low", [](Config& c) { c.watchdogTimeout = 99ms; },
         "watchdogTimeout is 99 ms, but must be 100 ms to 30 days"},
        {"watchdogTimeout high", [](Config& c) { c.watchdogTimeout = maxLease + 1ms; },
         "watchdogTimeout is 2592000001 ms, but"},
        {"maxHold below watchdogTimeout", [](Config& c) { c.maxHold = 29'999ms; },
         "maxHold is 29999 ms, but must be zero or at least watchdogTimeout"},
        {"maxHold negative", [](Config& c) { c.maxHold = -1ms; }, "maxHold is -1 ms, but"},
        {"pollInterval low", [](Config& c) { c.pollInterval = 9ms; },
         "pollInterval is 9 ms, but must be 10 ms to 1 min"},
        {"pollInterval high", [](Config& c) { c.pollInterval = milliseconds::min(); },
         "pollInterval is -9223372036854775808 ms, but"},
        {"turn negative", [](Config& c) { c.turn = -1us; }, "turn is -1 us, but must be 0 to 100 ms"},
        {"turn high", [](Config& c) { c.turn = 100'001us; }, "turn is 100001 us, but"},
    };
    for (const Case& c : cases) {
        Config config;
        c.breakIt(config);
        EXPECT_THAT(refusal(config), StartsWith(c.message)) << c.name;
    }
}

TEST(Config, NamesTheFieldOfSentinelsThatBreaksItsRuleAndItsValue)
{
    struct Case {
        void (*breakIt)(Sentinels&);
        const char* message;
    };
    const Case cases[] = {
        {[](Sentinels& s) { s.name.clear(); }, "sentinels.name is \"\", but must be the name of a master"},
        {[](Sentinels& s) { s.name = "a\nb"; }, R"(sentinels.name is "a\x0ab", but)"},
        {[](Sentinels& s) { s.name.assign(254, 'm'); }, "sentinels.name is \"mmm"},
        {[](Sentinels& s) { s.endpoints.clear(); },
         "sentinels.endpoints is empty, but must name at least one Sentinel"},
        {[](Sentinels& s) { s.endpoints[1].host.clear(); }, "sentinels.endpoints is :26379, but must be host names"},
        {[](Sentinels& s) { s.endpoints[1].port = 0; }, "sentinels.endpoints is s2:0, but must be"},
        {[](Sentinels& s) { s.endpoints[0].unixSocket = "/s"; }, "sentinels.endpoints is unix:/s, but must be"},
        {[](Sentinels& s) { s.username = "orders"; }, "sentinels.username is ***, but needs a password"},
        {[](Sentinels& s) { s.tls.emplace().certFile = "c.pem"; }, "tls.certFile is \"c.pem\", but needs tls.keyFile"},
        {[](Sentinels& s) { s.tls.emplace().keyPassword = "x"; }, "tls.keyPassword is ***, but needs tls.keyFile"},
    };
    for (const Case& c : cases) {
        Config config;
        config.tls.emplace().caFile = "ca.pem";
        config.sentinels = watchers;
        c.breakIt(*config.sentinels);
        EXPECT_THAT(refusal(config), StartsWith(c.message));
    }
    Config config;
    config.endpoint.unixSocket = "/s";
    config.sentinels = watchers;
    EXPECT_THAT(refusal(config), StartsWith("sentinels is set, but is not for unix sockets"));
}

TEST(Config, IsValidAtTheEndsOfItsRanges)
{
    struct Case {
        const char* name;
        void (*change)(Config&);
    };
    const Case cases[] = {
        {"longest host", [](Config& c) { c.endpoint.host.assign(253, 'a'); }},
        {"IPv6", [](Config& c) { c.endpoint.host = "fe80::1%eth0"; }},
        {"lowest port", [](Config& c) { c.endpoint.port = 1; }},
        {"highest port", [](Config& c) { c.endpoint.port = 65535; }},
        {"longest socket path", [](Config& c) { c.endpoint.unixSocket.assign(107, 'a'); }},
        {"a socket makes host and port meaningless",
         [](Config& c) { c.endpoint = {.host = "", .port = 0, .unixSocket = "/tmp/r.sock"}; }},
        {"Sentinels make host and port meaningless",
         [](Config& c) {
             c.endpoint = {.host = "", .port = 0, .unixSocket = ""};
             c.sentinels = watchers;
         }},
        {"everything about Sentinels",
         [](Config& c) {
             c.sentinels = watchers;
             c.sentinels->name.assign(253, '/');
             c.sentinels->endpoints = {{.host = "fe80::1%eth0", .port = 65535, .unixSocket = ""}};
             c.sentinels->username = c.sentinels->password = "x";
             c.sentinels->tls.emplace().caFile = "ca.pem";
             c.addressMap = [](const Endpoint& announced) { return announced; };
         }},
        {"map of addresses that nobody announces",
         [](Config& c) { c.addressMap = [](const Endpoint& announced) { return announced; }; }},
        {"password alone", [](Config& c) { c.password = "\0\n\xff"s; }},
        {"user and password", [](Config& c) { c.username = c.password = "x"; }},
        {"highest database", [](Config& c) { c.database = 65535; }},
        {"longest client name", [](Config& c) { c.clientName.assign(64, '~'); }},
        {"shortest times",
         [](Config& c) {
             c.connectTimeout = c.commandTimeout = c.unreachableAfter = c.pollInterval = 10ms;
             c.watchdogTimeout = c.maxHold = 100ms;
         }},
        {"longest times",
         [](Config& c) {
             c.connectTimeout = c.commandTimeout = c.pollInterval = 1min;
             c.unreachableAfter = 1h;
             c.watchdogTimeout = maxLease;
             c.maxHold = milliseconds::max();
         }},
    };
    for (const Case& c : cases) {
        Config config;
        c.change(config);
        EXPECT_EQ(refusal(config), "") << c.name;
    }
}

TEST(Config, TellsTheFirstOfSeveralBrokenRules)
{
    Config config;
    config.pollInterval = 0ms;
    config.database = 1'000'000;
    EXPECT_THAT(refusal(config), StartsWith("database is 1000000"));
    config.endpoint.host.clear();
    EXPECT_THAT(refusal(config), StartsWith("endpoint.host is"));
}

TEST(Config, ShowsNoSecretWhateverElseIsWrong)
{
    void (*const breaks[])(Config&) = {
        [](Config& c) { c.sentinels->endpoints[0].port = 0; },
        [](Config& c) { c.sentinels->endpoints[1].host.clear(); },
        [](Config& c) { c.database = 65536; },
        [](Config& c) { c.clientName = "\n"; },
        [](Config& c) { c.maxHold = 1ms; },
        [](Config& c) { c.pollInterval = 0ms; },
        [](Config& c) { c.watchdogTimeout = 0ms; },
        [](Config& c) { c.commandTimeout = 0ms; },
        [](Config& c) { c.password.clear(); },
        [](Config& c) { c.connectTimeout = 0ms; },
        [](Config& c) { c.unreachableAfter = 0ms; },
        [](Config& c) { c.sentinels->password.clear(); },
        [](Config& c) { c.sentinels->name = "\n"; },
        [](Config& c) { c.sentinels->endpoints.clear(); },
    };
    for (const auto breakIt : breaks) {
        Config config;
        config.username = "u53r";
        config.password = "hunter2";
        config.sentinels = watchers;
        config.sentinels->username = "u53r";
        config.sentinels->password = "hunter2";
        breakIt(config);
        const std::string message = refusal(config);
        EXPECT_NE(message, "");
        EXPECT_THAT(message, Not(HasSubstr("u53r")));
        EXPECT_THAT(message, Not(HasSubstr("hunter2")));
    }
}

TEST(Config, EndsItsMessageWithTheErrorsOwn)
{
    Config config;
    config.endpoint.port = 0;
    EXPECT_EQ(refusal(config), "endpoint.port is 0, but must be 1 to 65535");
}

TEST(Endpoint, IsShownAsPeopleWriteIt)
{
    struct Case {
        const char* name;
        Endpoint endpoint;
        const char* text;
    };
    const Case cases[] = {
        {"default", {}, "127.0.0.1:6379"},
        {"host name", {.host = "redis.internal", .port = 6380, .unixSocket = ""}, "redis.internal:6380"},
        {"IPv6", {.host = "::1", .port = 6379, .unixSocket = ""}, "[::1]:6379"},
        {"unix socket", {.host = "ignored", .port = 1, .unixSocket = "/tmp/r.sock"}, "unix:/tmp/r.sock"},
        {"foreign bytes", {.host = "a\nb", .port = 1, .unixSocket = ""}, R"(a\x0ab:1)"},
        {"foreign bytes in a path", {.host = "", .port = 1, .unixSocket = "/\x1b"}, R"(unix:/\x1b)"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(c.endpoint.str(), c.text) << c.name;
    }
}

} // namespace
} // namespace redislock
