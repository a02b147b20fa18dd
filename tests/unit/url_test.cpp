#include "redislock/config.hpp"
#include "redislock/error.hpp"
#include "values/server_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
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
        {"valkey://127.0.0.1", {}},
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
    EXPECT_EQ(config.durability, Durability::none());
    EXPECT_EQ(Config::fromUrl("redis://h?durability_within=70&durability=replicas:2").durability,
              Durability::replicas(2, 70ms));
    EXPECT_EQ(Config::fromUrl("redis://h?durability=disk:0").durability, Durability::disk(0));
    EXPECT_EQ(Config::fromUrl("redis-sentinel://h/main?durability=none").durability, Durability::none());
}

TEST(Url, SaysWhatIsCheckedWithTls)
{
    const Config config = Config::fromUrl(
        "rediss://:p%2540s%25@[::1]:6380/2?ca_file=/a%20b.pem&ca_path=/cas&cert_file=c.pem&key_file=c.key&"
        "key_password=%26%3d&server_name=redis.example&verify=chain&min_tls=1.3");
    EXPECT_EQ(config.password, "p%40s%");
    EXPECT_EQ(config.endpoint.str(), "[::1]:6380");
    EXPECT_EQ(config.database, 2U);
    ASSERT_TRUE(config.tls);
    EXPECT_EQ(*config.tls, (Tls{.caFile = "/a b.pem",
                                .caPath = "/cas",
                                .certFile = "c.pem",
                                .keyFile = "c.key",
                                .keyPassword = "&=",
                                .serverName = "redis.example",
                                .verify = Tls::Verify::chain,
                                .minVersion = Tls::Version::v1_3}));
    EXPECT_EQ(*Config::fromUrl("Rediss://h").tls, Tls());
    EXPECT_EQ(Config::fromUrl("rediss://h?verify=none").tls->verify, Tls::Verify::none);
    EXPECT_FALSE(Config::fromUrl("redis://h").tls);
}

TEST(Url, IsRefusedForOptionsOfTlsThatMeanNothing)
{
    struct Case {
        const char* url;
        const char* message;
    };
    const Case cases[] = {
        {"redis://h?ca_file=/a", "the option ca_file is for rediss://, rediss-sentinel:// and rediss-cluster:// only"},
        {"unix:///s?verify=none", "the option verify is for rediss://, rediss-sentinel:// and rediss-cluster:// only"},
        {"redis-sentinel://a/main?ca_file=/a", "the option ca_file is for rediss://"},
        {"rediss-sentinel://a/main?verify=none&cert_file=c.pem", "tls.certFile is \"c.pem\", but needs tls.keyFile"},
        {"redis-sentinel://a/main?sentinel_tls=yes&cert_file=c.pem", "tls.certFile is \"c.pem\", but needs"},
        {"rediss://h?verify=maybe", "the option verify must be full, chain or none, not \"maybe\""},
        {"rediss://h?min_tls=1.1", "the option min_tls must be 1.2 or 1.3, not \"1.1\""},
        {"rediss://h?server_name=", "the option server_name is empty"},
        {"rediss://h?server_name=10.0.0.1", "tls.serverName is \"10.0.0.1\", but must be a host name"},
        {"rediss://h?server_name=::1", "tls.serverName is \"::1\", but must be a host name"},
        {"rediss://h?ca_file=/a%2", "a '%' must be followed by two hexadecimal digits"},
        {"rediss://h?cert_file=c.pem", "tls.certFile is \"c.pem\", but needs tls.keyFile"},
        {"rediss://h?key_file=c.key", "tls.keyFile is \"c.key\", but needs tls.certFile"},
        {"rediss://h?key_password=hunter2", "tls.keyPassword is ***, but needs tls.keyFile"},
    };
    for (const auto& each : cases) {
        const auto refused = refusal(each.url);
        EXPECT_EQ(refused.code, Errc::badConfig) << each.url;
        EXPECT_THAT(refused.message, HasSubstr(each.message));
    }
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

TEST(Url, NamesAMasterThatSentinelsWatch)
{
    struct Case {
        const char* url;
        const char* server;
    };
    const Case cases[] = {
        {"redis-sentinel://a/main", "the master \"main\" of a:26379"},
        {"Redis-Sentinel://a:1,b,[::1],[2001:db8::7]:65535/main",
         "the master \"main\" of a:1, b:26379, [::1]:26379, [2001:db8::7]:65535"},
        {"redis-sentinel://orders:s%2Fe@a,b:2/my%2Fmaster/3?client_name=x", "the master \"my/master\" of a:26379, b:2"},
        {"redis-sentinel://a/main/", "the master \"main\" of a:26379"},
        {"redis-sentinel://10.0.0.1:26380,10.0.0.1:26380/0/0", "the master \"0\" of 10.0.0.1:26380, 10.0.0.1:26380"},
    };
    for (const Case& c : cases) {
        const Config config = Config::fromUrl(c.url);
        EXPECT_EQ(detail::serverText(config), c.server);
        EXPECT_FALSE(config.tls || config.sentinels->tls) << c.url;
    }
    const Config config = Config::fromUrl(
        "redis-sentinel://orders:s%2Fe@a/main/3?sentinel_password=p%26w&client_name=x&sentinel_username=watcher");
    EXPECT_EQ(config.username, "orders");
    EXPECT_EQ(config.password, "s/e");
    EXPECT_EQ(config.database, 3U);
    EXPECT_EQ(config.clientName, "x");
    EXPECT_EQ(config.sentinels->username, "watcher");
    EXPECT_EQ(config.sentinels->password, "p&w");
    EXPECT_EQ(Config::fromUrl("redis-sentinel://a/main?database=3").database, 3U);
    EXPECT_FALSE(Config::fromUrl("redis://a").sentinels);
}

TEST(Url, SaysWithWhomOfServersAndSentinelsTlsIsSpoken)
{
    struct Case {
        const char* url;
        bool withServers;
        bool withSentinels;
    };
    const Case cases[] = {
        {"rediss-sentinel://a/main?ca_file=/ca", true, true},
        {"rediss-sentinel://a/main?sentinel_tls=yes&ca_file=/ca", true, true},
        {"rediss-sentinel://a/main?ca_file=/ca&sentinel_tls=no", true, false},
        {"redis-sentinel://a/main?ca_file=/ca&sentinel_tls=yes", false, true},
        {"redis-sentinel://a/main?sentinel_tls=no", false, false},
    };
    for (const Case& c : cases) {
        const Config config = Config::fromUrl(c.url);
        const auto expected = [](bool has) { return has ? std::optional<Tls>(Tls{.caFile = "/ca"}) : std::nullopt; };
        EXPECT_EQ(config.tls, expected(c.withServers)) << c.url;
        EXPECT_EQ(config.sentinels->tls, expected(c.withSentinels)) << c.url;
    }
}

TEST(Url, IsRefusedForAnythingElseAboutSentinels)
{
    struct Case {
        const char* url;
        const char* reason;
    };
    const Case cases[] = {
        {"redis-sentinel://", "the host is empty"},
        {"redis-sentinel:///main", "the host is empty"},
        {"redis-sentinel://a,/main", "the host is empty"},
        {"redis-sentinel://a,,b/main", "the host is empty"},
        {"redis-sentinel://a;b/main", "host names do not have"},
        {"redis-sentinel://a,::1/main", "the host is empty"},
        {"redis-sentinel://a,[::1/main", "must stand in brackets"},
        {"redis-sentinel://a:0/main", "port must be"},
        {"redis-sentinel://a,b:65536/main", "port must be"},
        {"redis-sentinel://a", "must stand the name of the master: redis-sentinel://HOST,.../NAME"},
        {"redis-sentinel://a,b/", "must stand the name of the master"},
        {"redis-sentinel://a//3", "must stand the name of the master"},
        {"redis-sentinel://a?database=3", "must stand the name of the master"},
        {"redis-sentinel://a/main/x", "after the name of the master must be the number of a database"},
        {"redis-sentinel://a/main/1/2", "after the name of the master must be the number of a database"},
        {"redis-sentinel://a/main/1?database=1", "\"database\" is given twice"},
        {"redis-sentinel://a/main%20x", "sentinels.name is \"main x\", but must be the name of a master"},
        {"redis-sentinel://a/main?sentinel_username=u", "sentinels.username is ***, but needs a password"},
        {"redis-sentinel://a/main?sentinel_tls=maybe", "the option sentinel_tls must be no or yes, not \"maybe\""},
        {"redis-sentinel://a/main?sentinel_tls", "name=value"},
        {"redis-sentinel://a/main?sentinel_tls=no&sentinel_tls=no", "\"sentinel_tls\" is given twice"},
        {"redis-sentinel://a/main?sentinel_name=x", "no option \"sentinel_name\""},
        {"redis://a?sentinel_password=x", "the option sentinel_password is for redis-sentinel://"},
        {"rediss://a?sentinel_tls=yes", "the option sentinel_tls is for redis-sentinel://"},
        {"unix:///s?sentinel_tls=no", "the option sentinel_tls is for redis-sentinel://"},
    };
    for (const Case& c : cases) {
        const Refusal refused = refusal(c.url);
        EXPECT_EQ(refused.code, Errc::badConfig) << c.url;
        EXPECT_THAT(refused.message, HasSubstr(c.reason)) << c.url;
    }
}

TEST(Url, NamesNodesOfACluster)
{
    const Config plain = Config::fromUrl("redis-cluster://u:p@a,b:7001,[::1]:7002?notifications=both&max_hold=60000");
    EXPECT_EQ(plain.username, "u");
    ASSERT_EQ(plain.cluster.size(), 3U);
    EXPECT_EQ(plain.cluster[0].str(), "a:6379");
    EXPECT_EQ(plain.cluster[1].str(), "b:7001");
    EXPECT_EQ(plain.cluster[2].str(), "[::1]:7002");
    EXPECT_EQ(plain.notifications, Notifications::both);
    EXPECT_FALSE(plain.tls);
    EXPECT_EQ(Config::fromUrl("Redis-Cluster://a/").notifications, Notifications::automatic);
    EXPECT_TRUE(Config::fromUrl("rediss-cluster://a?ca_file=/ca").tls);
    struct Case {
        const char* url;
        const char* reason;
    };
    const Case cases[] = {
        {"redis-cluster://", "the host is empty"},
        {"redis-cluster://a,,b", "the host is empty"},
        {"redis-cluster://a:0", "the port must be"},
        {"redis-cluster://a/3", "database is 3, but must be 0 with a cluster"},
        {"redis-cluster://a/x", "must be the number of a database"},
        {"redis-cluster://a?database=1", "database is 1, but must be 0 with a cluster"},
        {"redis-cluster://a?notifications=loud", "must be auto, sharded, classic or both, not \"loud\""},
        {"redis-cluster://a?ca_file=/ca", "the option ca_file is for rediss://"},
        {"redis-cluster://a?sentinel_password=x", "the option sentinel_password is for redis-sentinel://"},
        {"redis://a?notifications=both", "the option notifications is for redis-cluster://"},
    };
    for (const Case& c : cases) {
        const Refusal refused = refusal(c.url);
        EXPECT_EQ(refused.code, Errc::badConfig) << c.url;
        EXPECT_THAT(refused.message, HasSubstr(c.reason)) << c.url;
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
        {"no scheme", "127.0.0.1:6379", "did you mean redis://127.0.0.1:6379?"},
        {"no scheme, by name", "localhost", "did you mean redis://localhost?"},
        {"no scheme, another host", "redis:6380", "did you mean redis://HOST:PORT?"},
        {"no scheme, a path", "/run/redis.sock", "did you mean unix://PATH?"},
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
        {"durability of no replica", "redis://h?durability=replicas:0",
         "durability is replicas:0 within 1000 ms, but must"},
        {"durability of too many", "redis://h?durability=disk:256",
         "durability is disk:256 within 1000 ms, but must be"},
        {"durability without a number", "redis://h?durability=replicas", "must be none, replicas:N or disk:N, not"},
        {"durability of none", "redis://h?durability=none:0", "none, replicas:N or disk:N, not \"none:0\""},
        {"durability of another kind", "redis://h?durability=quorum:2", "not \"quorum:2\""},
        {"durability of a fraction", "redis://h?durability=disk:1.5", "not \"disk:1.5\""},
        {"durability without time", "redis://h?durability=disk:1&durability_within=0", "within 0 ms, but must be"},
        {"durability for longer than a lease", "redis://h?durability=disk:1&durability_within=30001",
         "durability.within is 30001 ms, but must not be longer than watchdogTimeout"},
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
                EXPECT_THAT(detail::serverText(config), Not(HasSubstr("62342"))) << ::testing::PrintToString(url);
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
