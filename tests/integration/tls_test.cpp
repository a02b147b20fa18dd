// TLS: whom it lets in, and what it says when it does not.
#include "integration/fake_server.hpp"
#include "redislock/redislock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"
#include "support/test_server.hpp"
#include "support/tls_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace redislock::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using Version = TlsPeerOptions::Version;

/// How connect() ends: the code, the sentence, and after how long.
struct Told {
    std::error_code code{};
    std::string sentence{};
    std::chrono::milliseconds time{0};
};

Told toldBy(const Config& config)
{
    Client client(config);
    const Stopwatch watch;
    try {
        client.connect();
        return {};
    } catch (const LockError& error) {
        return {error.code(), error.what(), watch.elapsedMs()};
    }
}

/// Expects that connect() and tryLock() fail at once with this cause.
void expectTold(const Config& config, Cause cause, const std::string& words)
{
    SCOPED_TRACE(words);
    const std::string message = make_error_code(cause).message();
    const auto told = toldBy(config);
    EXPECT_EQ(told.code, cause) << told.sentence;
    EXPECT_THAT(told.sentence, AllOf(HasSubstr(message.substr(0, message.find("; "))), HasSubstr(words)));
    EXPECT_LT(told.time, config.connectTimeout / 2);
    std::error_code ec;
    EXPECT_FALSE(Client(config).getLock("l").tryLock(20s, 1s, ec));
    EXPECT_EQ(ec, cause);
}

void expectUsable(const Config& config)
{
    Client client(config);
    const auto lock = client.getLock("l");
    EXPECT_NO_THROW(lock.lock());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

Config configFor(const TlsPeer& peer)
{
    Config config = peer.config();
    config.connectTimeout = 4s;
    return config;
}

void use(Config& config, const Certificate& certificate)
{
    config.tls->certFile = certificate.certFile;
    config.tls->keyFile = certificate.keyFile;
}

/// What a test of a certificate shows, and how it is judged by a client that connects to 127.0.0.1.
struct Shown {
    const char* what;
    CertificateRequest request;
    std::optional<Cause> cause;
    const char* words;
    std::string serverName{};
};

TEST(TlsCertificate, IsTakenOnlyFromTheServerThatIsMeant)
{
    const testing::RedisServer server;
    const Shown cases[] = {
        {"the address", {.names = "IP:127.0.0.1"}, std::nullopt, ""},
        {"another address",
         {.names = "IP:127.0.0.2"},
         Cause::certificateNameMismatch,
         "\"127.0.0.1\" was expected, the certificate is for 127.0.0.2"},
        {"the address as a name", {.names = "DNS:127.0.0.1"}, Cause::certificateNameMismatch, "for 127.0.0.1"},
        {"only the common name",
         {.names = "", .commonName = "127.0.0.1"},
         Cause::certificateNameMismatch,
         "the certificate is for no name"},
        {"only the common name, asked by name",
         {.names = "", .commonName = "redis.example"},
         Cause::certificateNameMismatch,
         "\"redis.example\" was expected, the certificate is for no name",
         "redis.example"},
        {"the name that is given instead", {.names = "DNS:redis.example"}, std::nullopt, "", "redis.example"},
        {"a wildcard for one label", {.names = "DNS:*.redis.example"}, std::nullopt, "", "a.redis.example"},
        {"a wildcard for two labels",
         {.names = "DNS:*.redis.example"},
         Cause::certificateNameMismatch,
         "for *.redis.example",
         "b.a.redis.example"},
        {"many names",
         {.names = "DNS:a,DNS:b,DNS:c,DNS:d,DNS:e,DNS:f"},
         Cause::certificateNameMismatch,
         "for a, b, c, d, e, ..."},
        {"expired", {.until = "20210101000000Z"}, Cause::certificateExpired, "expired Jan  1 00:00:00 2021 GMT"},
        {"not valid yet",
         {.from = "20480101000000Z"},
         Cause::certificateExpired,
         "not valid before Jan  1 00:00:00 2048 GMT"},
    };
    for (const Shown& each : cases) {
        SCOPED_TRACE(each.what);
        TlsPeerOptions options{.certificate = Authority::trusted().issue(each.request)};
        for (const auto version : {Version::v1_2, Version::v1_3}) {
            options.version = version;
            const TlsPeer peer(server, options);
            Config config = configFor(peer);
            config.tls->serverName = each.serverName;
            each.cause ? expectTold(config, *each.cause, each.words) : expectUsable(config);
            config.tls->verify = Tls::Verify::none;
            expectUsable(config);
            EXPECT_EQ(peer.seen().serverName, each.serverName) << "an address is not sent as a name";
            config.tls->verify = Tls::Verify::chain;
            each.cause == Cause::certificateExpired ? expectTold(config, *each.cause, each.words)
                                                    : expectUsable(config);
        }
    }
}

TEST(TlsCertificate, OfAnAuthorityThatIsNotTrustedIsRefused)
{
    const testing::RedisServer server;
    const TlsPeer stranger(server, {.certificate = Authority::stranger().issue()});
    Config config = configFor(stranger);
    expectTold(config, Cause::certificateNotTrusted, "certificate");
    config.tls->caFile.clear(); // those of the system
    expectTold(config, Cause::certificateNotTrusted, "certificate");

    const TlsPeer peer(server);
    config = configFor(peer);
    config.tls->caFile.clear();
    config.tls->caPath = Authority::trusted().caPath();
    expectUsable(config);
}

TEST(TlsCertificate, OfTheClientIsAskedForInWords)
{
    const testing::RedisServer server;
    for (const auto version : {Version::v1_2, Version::v1_3}) {
        const TlsPeer peer(server, {.clientCaFile = Authority::trusted().caFile(), .version = version});
        Config config = configFor(peer);
        expectTold(config, Cause::clientCertificateWanted, "tls.certFile is empty: ");
        use(config, Authority::stranger().client());
        expectTold(config, Cause::clientCertificateWanted, "that of tls.certFile was refused: ");
        use(config, Authority::trusted().client());
        expectUsable(config);
        use(config, Authority::trusted().issue({.commonName = "locked", .password = "hunter2"}));
        config.tls->keyPassword = "hunter2";
        expectUsable(config);
        EXPECT_EQ(peer.seen().client, "/CN=locked");
    }
}

TEST(TlsCertificate, ThatCannotBeUsedIsABadConfigurationBeforeAnyConnection)
{
    const auto folder = std::filesystem::path(Authority::trusted().caFile()).parent_path().string();
    const auto missing = folder + "/missing.pem";
    const auto broken = folder + "/broken.pem";
    std::ofstream(broken) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const auto locked = Authority::trusted().issue({.password = "hunter2"});
    const auto& client = Authority::trusted().client();
    const struct {
        Tls tls;
        std::string words;
    } cases[] = {
        {{.caFile = missing}, "tls.caFile is \"" + missing + "\": No such file or directory"},
        {{.caFile = broken}, "tls.caFile is \"" + broken + "\": "},
        {{.caFile = folder}, "tls.caFile is \"" + folder + "\": it is not a file"},
        {{.caPath = missing}, "tls.caPath is \"" + missing + "\": No such file or directory"},
        {{.caPath = broken}, "tls.caPath is \"" + broken + "\": Not a directory"},
        {{.certFile = broken, .keyFile = client.keyFile}, "tls.certFile is \"" + broken + "\": "},
        {{.certFile = client.certFile, .keyFile = locked.certFile}, "tls.keyFile is \"" + locked.certFile + "\": "},
        {{.certFile = client.certFile, .keyFile = Authority::stranger().client().keyFile},
         "it is not the key of the certificate in tls.certFile"},
        {{.certFile = locked.certFile, .keyFile = locked.keyFile}, "it is encrypted, and tls.keyPassword is empty"},
        {{.certFile = locked.certFile, .keyFile = locked.keyFile, .keyPassword = "hunter3"},
         "tls.keyPassword does not decrypt it"},
    };
    for (const auto& each : cases) {
        Config config;
        config.tls = each.tls;
        try {
            const Client made(config);
            FAIL() << each.words;
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::badConfig);
            EXPECT_THAT(error.what(), AllOf(HasSubstr(each.words), Not(HasSubstr("hunter"))));
        }
        EXPECT_THROW(LockMonitor{config}, LockError);
    }
}

TEST(TlsPort, ThatSpeaksSomethingElseIsToldInWords)
{
    const FakeServer plain("-ERR unknown command\r\n");
    Config config;
    config.tls.emplace();
    config.connectTimeout = 4s;
    config.endpoint.port = plain.port();
    expectTold(config, Cause::tlsNotSpoken, "");

    const testing::RedisServer redis; // waits for the end of a line
    config.connectTimeout = 200ms;
    config.endpoint.port = redis.port();
    auto told = toldBy(config);
    EXPECT_EQ(told.code, Cause::silent);
    EXPECT_THAT(told.sentence, HasSubstr("does the server speak TLS on this port?"));

    const testing::RedisServer secured({.tls = serverTls()});
    Config without = testConfig(secured);
    without.tls.reset();
    told = toldBy(without);
    EXPECT_EQ(told.code, Errc::unreachable);
    EXPECT_THAT(told.sentence, HasSubstr("rediss://"));
}

} // namespace
} // namespace redislock::test
