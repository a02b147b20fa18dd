#include "redislock/config.hpp"
#include "redislock/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace std::string_view_literals;
using ::testing::HasSubstr;
using ::testing::Not;

struct Refusal {
    std::error_code code;
    std::string message;
};

/// How a URL is refused; no code when it is accepted.
Refusal refusal(std::string_view url)
{
    try {
        Config::fromUrl(url);
    } catch (const LockError& error) {
        return {error.code(), error.what()};
    }
    return {};
}

TEST(Url, SaysWhereTheServerListens)
{
    struct Case {
        const char* url;
        Endpoint endpoint;
    };
    const Case cases[] = {
        {"redis://127.0.0.1:6379", {}},
        {"redis://127.0.0.1", {}},
        {"redis://127.0.0.1/", {}},
        {"REDIS://127.0.0.1", {}},
        {"redis://redis.internal", {.host = "redis.internal", .port = 6379, .unixSocket = ""}},
        {"redis://my_redis-1:1", {.host = "my_redis-1", .port = 1, .unixSocket = ""}},
        {"redis://h:65535", {.host = "h", .port = 65535, .unixSocket = ""}},
        {"redis://[::1]", {.host = "::1", .port = 6379, .unixSocket = ""}},
        {"redis://:pw@[2001:db8::7]:6380/1", {.host = "2001:db8::7", .port = 6380, .unixSocket = ""}},
        {"redis://[fe80::1%25eth0]:6380", {.host = "fe80::1%eth0", .port = 6380, .unixSocket = ""}},
        {"redis://[::ffff:127.0.0.1]", {.host = "::ffff:127.0.0.1", .port = 6379, .unixSocket = ""}},
        {"unix:///tmp/r.sock", {.host = "127.0.0.1", .port = 6379, .unixSocket = "/tmp/r.sock"}},
        {"unix://:pw@/tmp/r.sock", {.host = "127.0.0.1", .port = 6379, .unixSocket = "/tmp/r.sock"}},
        {"unix:///tmp/a%20b%40c%3F.sock", {.host = "127.0.0.1", .port = 6379, .unixSocket = "/tmp/a b@c?.sock"}},
    };
    for (const Case& c : cases) {
        const Config config = Config::fromUrl(c.url);
        EXPECT_EQ(config.endpoint.str(), c.endpoint.str()) << c.url;
        EXPECT_EQ(config.endpoint, c.endpoint) << c.url;
    }
}

TEST(Url, SaysWhoConnects)
{
    struct Case {
        const char* url;
        std::string username;
        std::string password;
    };
    const Case cases[] = {
        {"redis://h", "", ""},
        {"redis://:@h", "", ""},
        {"redis://:pw@h:6380/3?client_name=x", "", "pw"},
        {"redis://orders:secret@h", "orders", "secret"},
        {"redis://orders:a:b:c@h", "orders", "a:b:c"},
        {"redis://user:p%40ss@h", "user", "p@ss"},
        {"redis://%75ser:%70%3a%2F%3f%23%5B%5D%25@h", "user", "p:/?#[]%"},
        {"redis://:%00%0d%0a%ff%FF@h", "", "\0\r\n\xff\xff"s},
        {"redis://a%3Ab:!$&'()*+,;=-._~@h", "a:b", "!$&'()*+,;=-._~"},
        {"unix://:p%2Fw@/tmp/r.sock", "", "p/w"},
        {"unix://orders:secret@/tmp/r.sock?database=1", "orders", "secret"},
    };
    for (const Case& c : cases) {
        const Config config = Config::fromUrl(c.url);
        EXPECT_EQ(config.username, c.username) << c.url;
        EXPECT_EQ(config.password, c.password) << c.url;
    }
}

TEST(Url, NamesTheDatabaseInItsPathOrAsAnOption)
{
    for (const char* url : {"redis://h/3", "redis://h:1/3", "redis://h?database=3", "redis://h/?database=3",
                            "unix:///tmp/r.sock?database=3", "redis://:pw@[::1]:6380/3?client_name=x"}) {
        EXPECT_EQ(Config::fromUrl(url).database, 3U) << url;
    }
    EXPECT_EQ(Config::fromUrl("redis://h/65535").database, 65535U);
    EXPECT_EQ(Config::fromUrl("redis://h/0").database, 0U);
    EXPECT_EQ(Config::fromUrl("redis://h").database, 0U);
}

TEST(Url, SetsEveryOption)
{
    const Config config =
        Config::fromUrl("redis://h?client_name=a%2Fb%7e&naming=as_given&connect_timeout=11&command_timeout=12"
                        "&unreachable_after=13&watchdog_timeout=114&max_hold=115&poll_interval=16&turn_us=17");
    EXPECT_EQ(config.clientName, "a/b~");
    EXPECT_EQ(config.naming, Naming::asGiven);
    EXPECT_EQ(config.connectTimeout, 11ms);
    EXPECT_EQ(config.commandTimeout, 12ms);
    EXPECT_EQ(config.unreachableAfter, 13ms);
    EXPECT_EQ(config.watchdogTimeout, 114ms);
    EXPECT_EQ(config.maxHold, 115ms);
    EXPECT_EQ(config.pollInterval, 16ms);
    EXPECT_EQ(config.turn, 17us);
}

TEST(Url, SetsTimesExactly)
{
    for (const std::int64_t time :
         {std::int64_t{30'000}, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 62) + 1,
          std::numeric_limits<std::int64_t>::max() - 1, std::numeric_limits<std::int64_t>::max()}) {
        EXPECT_EQ(Config::fromUrl("redis://h?max_hold=" + std::to_string(time)).maxHold.count(), time);
    }
}

TEST(Url, LeavesTheDefaultsWhereItSaysNothing)
{
    const Config config = Config::fromUrl("redis://127.0.0.1?client_name=");
    const Config defaults;
    EXPECT_EQ(config.endpoint, defaults.endpoint);
    EXPECT_EQ(config.clientName, "");
    EXPECT_EQ(config.naming, Naming::identified);
    EXPECT_EQ(Config::fromUrl("redis://h?naming=identified").naming, Naming::identified);
    EXPECT_EQ(config.commandTimeout, defaults.commandTimeout);
    EXPECT_EQ(config.watchdogTimeout, defaults.watchdogTimeout);
    EXPECT_EQ(config.maxHold, defaults.maxHold);
}

TEST(Url, IsRefusedForWhatComesWithALaterVersion)
{
    for (const char* url :
         {"rediss://h", "rediss://:hunter2@h:6380", "redis-sentinel://a,b/main", "Redis-Cluster://a"}) {
        const Refusal refused = refusal(url);
        EXPECT_EQ(refused.code, Errc::unsupported) << url;
        EXPECT_THAT(refused.message, HasSubstr("comes with a later version")) << url;
        EXPECT_THAT(refused.message, Not(HasSubstr("hunter2")));
    }
}

TEST(Url, IsRefusedForAnythingElse)
{
    struct Case {
        const char* name;
        std::string url;
        const char* reason;
    };
    const Case cases[] = {
        {"empty", "", "must begin with"},
        {"no scheme", "127.0.0.1:6379", "must begin with"},
        {"other scheme", "http://h", "must begin with"},
        {"half a scheme", "redis:/h", "must begin with"},
        {"only a scheme", "redis://", "host is empty"},
        {"no host", "redis:///3", "host is empty"},
        {"no host, but a port", "redis://:6379", "host is empty"},
        {"no host after the password", "redis://:pw@", "host is empty"},
        {"host with a percent", "redis://a%20b", "host names do not have"},
        {"two hosts", "redis://a,b", "host names do not have"},
        {"space", "redis://a b", "must be percent-encoded"},
        {"line break", "redis://a\r\n", "must be percent-encoded"},
        {"NUL", "redis://a\0b"s, "must be percent-encoded"},
        {"not ASCII", "redis://\xc3\xa4", "must be percent-encoded"},
        {"fragment", "redis://h#1", "must be percent-encoded"},
        {"empty port", "redis://h:", "port must be"},
        {"port zero", "redis://h:0", "port must be"},
        {"port too high", "redis://h:65536", "port must be"},
        {"port far too high", "redis://h:99999999999999999999999", "port must be"},
        {"signed port", "redis://h:+1", "port must be"},
        {"negative port", "redis://h:-1", "port must be"},
        {"fractional port", "redis://h:1.5", "port must be"},
        {"hexadecimal port", "redis://h:0x1", "port must be"},
        {"two ports", "redis://h:1:2", "port must be"},
        {"IPv6 without brackets", "redis://::1", "host is empty"},
        {"longer IPv6 without brackets", "redis://2001:db8::7:6379", "must stand in brackets"},
        {"bracket left open", "redis://[::1", "must stand in brackets"},
        {"something after the bracket", "redis://[::1]x", "must stand in brackets"},
        {"no port after the colon", "redis://[::1]:", "port must be"},
        {"no address in brackets", "redis://[]", "must be an IPv6 address"},
        {"a name in brackets", "redis://[h]", "must be an IPv6 address"},
        {"IPv4 in brackets", "redis://[127.0.0.1]", "must be an IPv6 address"},
        {"NUL in brackets", "redis://[::1%00]", "must be an IPv6 address"},
        {"user without a colon", "redis://user@h", "must be user:password"},
        {"nothing before the @", "redis://@h", "must be user:password"},
        {"user without a password", "redis://user:@h", "needs a password"},
        {"@ in the password", "redis://:p@ss@h", "must be written as %40"},
        {"/ and @ in the password", "redis://:p/@ss@h", "must be percent-encoded"},
        {"bad escape", "redis://:%zz@h", "two hexadecimal digits"},
        {"cut escape", "redis://:%4@h", "two hexadecimal digits"},
        {"lonely percent", "redis://:%@h", "two hexadecimal digits"},
        {"database name", "redis://h/main", "number of a database"},
        {"negative database", "redis://h/-1", "number of a database"},
        {"two databases", "redis://h/1/2", "number of a database"},
        {"slash after the database", "redis://h/1/", "number of a database"},
        {"database too high", "redis://h/65536", "database is 65536"},
        {"database far too high", "redis://h/4294967296", "number of a database"},
        {"database in path and option", "redis://h/1?database=1", "\"database\" is given twice"},
        {"option twice", "redis://h?max_hold=0&max_hold=0", "\"max_hold\" is given twice"},
        {"unknown option", "redis://h?conect_timeout=1", "no option \"conect_timeout\""},
        {"option in capitals", "redis://h?DATABASE=1", "no option \"DATABASE\""},
        {"option without a value", "redis://h?database", "name=value"},
        {"nothing after the ?", "redis://h?", "name=value"},
        {"empty option", "redis://h?database=1&", "name=value"},
        {"empty number", "redis://h?max_hold=", "max_hold must be a number, not \"\""},
        {"unit", "redis://h?max_hold=30s", "max_hold must be a number, not \"30s\""},
        {"negative time", "redis://h?max_hold=-1", "max_hold must be a number, not \"-1\""},
        {"fractional time", "redis://h?max_hold=1.5", "max_hold must be a number, not \"1.5\""},
        {"exponent", "redis://h?max_hold=1e3", "max_hold must be a number, not \"1e3\""},
        {"time too long to count", "redis://h?max_hold=9223372036854775808", "max_hold must be a number"},
        {"time out of its range", "redis://h?poll_interval=9", "pollInterval is 9 ms, but must be"},
        {"turn out of its range", "redis://h?turn_us=100001", "turn is 100001 us, but must be"},
        {"second = in an option", "redis://h?max_hold=1=2", "not \"1=2\""},
        {"@ in an option", "redis://h?client_name=a@b", "must be written as %40"},
        {"naming of another kind", "redis://h?naming=1", "naming must be identified or as_given, not \"1\""},
        {"client name with a space", "redis://h?client_name=a%20b", "clientName is \"a b\""},
        {"client name with a line break", "redis://h?client_name=%0a", R"(clientName is "\x0a")"},
        {"unix without a path", "unix://", "must begin with '/'"},
        {"unix with a relative path", "unix://tmp", "must begin with '/'"},
        {"unix with a host", "unix://h/tmp/r.sock", "nothing but user:password@"},
        {"unix with a path before the @", "unix://:p/w@/tmp/r.sock", "%2F"},
        {"unix with a @ in its path", "unix:///tmp/a@b", "%40"},
        {"unix with a / and a @ in its password", "unix://user:p@/ss@/tmp/r.sock", "%40"},
        {"unix with a NUL in its path", "unix:///tmp/a%00b", "endpoint.unixSocket is"},
        {"unix with a path too long", "unix:///" + std::string(107, 'a'), "endpoint.unixSocket is"},
        {"unix with a bad escape", "unix:///tmp/%", "two hexadecimal digits"},
    };
    for (const Case& c : cases) {
        const Refusal refused = refusal(c.url);
        EXPECT_EQ(refused.code, Errc::badConfig) << c.name;
        EXPECT_THAT(refused.message, HasSubstr(c.reason)) << c.name;
    }
}

TEST(Url, SaysHowToWriteAPasswordWithBytesThatMeanSomethingInAUrl)
{
    struct Case {
        char byte;
        const char* encoded;
    };
    for (const Case& c : {Case{'/', "%2F"}, Case{'@', "%40"}, Case{'?', "%3F"}, Case{'#', "%23"}}) {
        for (const std::string before : {"redis://:", "redis://user:", "unix://:", "unix://user:"}) {
            // Words, a port, a database: their wrong interpretation must not hide the real error.
            for (const auto& [one, two] :
                 {std::pair("Xq7Zk"s, "Wv9Jp"s), std::pair("63"s, "7"s), std::pair(""s, ""s)}) {
                for (const std::string after : {"@h", "@h:6379", "@h/3", "@h?client_name=x", "@/tmp/r.sock"}) {
                    const std::string url = before + one + c.byte + two + after;
                    const Refusal refused = refusal(url);
                    EXPECT_EQ(refused.code, Errc::badConfig) << url;
                    EXPECT_THAT(refused.message, HasSubstr("percent-encoded")) << url;
                    EXPECT_THAT(refused.message, HasSubstr(c.encoded)) << url;
                    EXPECT_THAT(refused.message, Not(HasSubstr("Xq7Zk"))) << url;
                    EXPECT_THAT(refused.message, Not(HasSubstr("Wv9Jp"))) << url;

                    const auto good = Config::fromUrl("redis://user:" + one + c.encoded + two + "@h");
                    EXPECT_EQ(good.password, one + c.byte + two) << url;
                }
            }
        }
    }
}

/// Bytes that mean something in a URL, or may not stand in one.
constexpr std::string_view separators = "0a\0\t\n\r\x1b !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\x7f\x80\xff"sv;

/// URLs that are wrong in many ways, with a user and a password that are each made of two pieces joined by a byte.
std::vector<std::string> urlsAround(const std::string& userInfo)
{
    std::vector<std::string> urls;
    for (const char* scheme : {"redis://", "unix://", "rediss://", "redis-sentinel://", "http://", "redis:/", ""}) {
        for (const char* tail :
             {"@h", "@h:6379/3?client_name=x", "@h:0", "@h:x", "@h/x", "@h?x=y", "@h?max_hold=x", "@h?max_hold", "@",
              "@@h", "@[::1", "@[x]", "@h h", "@/tmp/r.sock", "@/tmp/%zz", "@/tmp/r.sock?x=1", "@tmp"}) {
            urls.push_back(scheme + userInfo + tail);
        }
    }
    return urls;
}

TEST(Url, ShowsNoPieceOfAUserOrPasswordHoweverItIsBroken)
{
    // Digits too, because they may be taken for a port or a database.
    for (const auto& [one, two] : {std::pair("Xq7Zk"s, "Wv9Jp"s), std::pair("48151"s, "62342"s)}) {
        for (const char byte : separators) {
            const std::string secret = one + byte + two;
            for (const std::string& userInfo :
                 {":" + secret, "user:" + secret, secret + ":password", secret, one + two}) {
                for (const std::string& url : urlsAround(userInfo)) {
                    const Refusal refused = refusal(url);
                    ASSERT_THAT(refused.message, Not(HasSubstr(one))) << ::testing::PrintToString(url);
                    ASSERT_THAT(refused.message, Not(HasSubstr(two))) << ::testing::PrintToString(url);
                }
            }
        }
    }
}

TEST(Url, PutsNoPieceOfAPasswordIntoWhatIsShownLater)
{
    for (const char byte : separators) {
        const std::string secret = "48151"s + byte + "62342";
        for (const std::string& url : urlsAround("user:" + secret)) {
            try {
                const Config config = Config::fromUrl(url);
                EXPECT_THAT(config.endpoint.str(), Not(HasSubstr("62342"))) << ::testing::PrintToString(url);
                EXPECT_THAT(config.clientName, Not(HasSubstr("62342"))) << ::testing::PrintToString(url);
                EXPECT_EQ(config.password.find("48151"), 0U) << ::testing::PrintToString(url);
            } catch (const LockError&) {
                // the other test looks at the message
            }
        }
    }
}

} // namespace
} // namespace redislock
