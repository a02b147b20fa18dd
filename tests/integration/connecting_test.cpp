// How a client connects to its server, and what it reports if it cannot.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "integration/fake_server.hpp"
#include "support/fault_proxy.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Connecting : public LockTest {
protected:
    static Config configFor(std::uint16_t port, const std::string& host = "127.0.0.1")
    {
        Config config;
        config.endpoint = {host, port, {}};
        config.watchdogTimeout = 1200ms;
        return config;
    }

    static std::error_code connect(const Client& client)
    {
        std::error_code ec;
        client.connect(ec);
        return ec;
    }

    static std::error_code asyncConnect(const Client& client)
    {
        try {
            client.asyncConnect(boost::asio::use_future).get();
            return {};
        } catch (const boost::system::system_error& e) {
            return e.code();
        }
    }

    /// Expects a client of these settings to lock, unlock and answer.
    static void expectUsable(const Config& config)
    {
        const Client client(config);
        EXPECT_EQ(connect(client), std::error_code());
        EXPECT_EQ(asyncConnect(client), std::error_code());
        const auto lock = client.getLock("usable");
        EXPECT_EQ(D::lock(lock), true);
        EXPECT_EQ(D::isLocked(lock), true);
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }

    /// Expects a call that throws, an asynchronous call and the observer to report the cause of a failure at an address
    /// in the same words. @param words the text after the address
    static void expectTold(Config config, Cause cause, const std::string& words)
    {
        const auto seen = std::make_shared<RecordingObserver>();
        config.observer = seen;
        if (cause == Cause::silent || cause == Cause::connectTimedOut) { // a busy machine may need all of the time
            config.connectTimeout = 500ms;
        }
        config.unreachableAfter = 700ms;
        const std::string server = config.endpoint.str();
        const Client client(config);
        const auto lock = client.getLock("stock:42");
        const auto messageOf = [&](auto call) -> std::string {
            try {
                call();
            } catch (const LockError& error) {
                EXPECT_EQ(error.code(), cause) << error.what();
                EXPECT_EQ(error.code(), errcOf(cause)) << error.what();
                return error.what();
            }
            return "nothing was thrown";
        };
        EXPECT_EQ(messageOf([&] { client.connect(); }), "connect to " + server + ": " + words);
        EXPECT_EQ(messageOf([&] { (void)lock.tryLock(); }), "tryLock \"stock:42\" at " + server + ": " + words);
        EXPECT_EQ(messageOf([&] { lock.lock(); }), "lock \"stock:42\" at " + server + ": " + words);
        EXPECT_EQ(messageOf([&] { (void)client.getSemaphore("room").tryAcquire(); }),
                  "tryAcquire \"room\" at " + server + ": " + words);
        try {
            (void)lock.asyncTryLock(boost::asio::use_future).get();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const boost::system::system_error& error) {
            EXPECT_TRUE(error.code() == cause) << error.what();
            EXPECT_TRUE(error.code() == errcOf(cause)) << error.what();
            EXPECT_EQ(std::string(error.what()), "asyncTryLock \"stock:42\" at " + server + ": " + words);
        }
        ASSERT_TRUE(seen->await("disconnected:commands"));
        const auto told = seen->of("disconnected:commands").front();
        EXPECT_EQ(told.error, cause) << told.why;
        EXPECT_EQ(told.why, server + ": " + words);
    }
    /// What a message says of it, and in whose words.
    static std::string textOf(Cause cause, const std::string& said = {})
    {
        return std::string(LockError(cause, "", said).what()).substr(2);
    }

    /// Expects every call that asks Redis to give this error at once, however long it would be ready to wait.
    static void expectAtOnce(const Config& config, Errc error)
    {
        using Call = std::error_code (*)(const RedisLock&);
        const std::array<Call, 5> calls{[](const RedisLock& lock) { return D::lock(lock).error; },
                                        [](const RedisLock& lock) { return D::tryLock(lock).error; },
                                        [](const RedisLock& lock) { return D::tryLock(lock, 1h, 10s).error; },
                                        [](const RedisLock& lock) { return D::isLocked(lock).error; },
                                        [](const RedisLock& lock) { return D::forceUnlock(lock).error; }};
        for (const auto call : calls) {
            const Client fresh(config); // a fresh client has no reason to pause between its tries
            const auto lock = fresh.getLock("unusable");
            const Stopwatch watch;
            EXPECT_EQ(call(lock), error);
            EXPECT_LT(watch.elapsed(), soon);
            EXPECT_EQ(call(lock), error);
            EXPECT_EQ(lock.holdCount(), 0U);
        }
        EXPECT_EQ(asyncConnect(Client(config)), error);
        const Client client(config);
        EXPECT_EQ(connect(client), error);
        try {
            client.connect();
            FAIL() << "connected";
        } catch (const LockError& e) {
            EXPECT_EQ(e.code(), error);
            EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
        }
    }
};

TEST_F(Connecting, PasswordIsSent)
{
    testing::RedisServer locked({.password = "secret: @/?#%20é"});
    expectUsable(Config::fromUrl(locked.url()));
    expectUsable(Config::fromUrl(locked.unixUrl()));
}

TEST_F(Connecting, WrongOrMissingPasswordIsToldAtOnceAndNeverShown)
{
    testing::RedisServer locked({.password = "right"});
    Config config = configFor(locked.port());
    expectAtOnce(config, Errc::authFailed);
    config.password = "secret";
    expectAtOnce(config, Errc::authFailed);
    config.username = "nobody";
    expectAtOnce(config, Errc::authFailed);
    EXPECT_EQ(RawRedis(locked).command({"DBSIZE"}).integer(), 0);
}

TEST_F(Connecting, UserOfTheServerIsUsed)
{
    testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"ACL", "SETUSER", "orders", "on", ">secret", "~*", "&*", "+@all"});
    Config config = configFor(own.port());
    config.username = "orders";
    config.password = "secret";
    config.clientName = "of-orders";
    const Client client(config);
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::lock(lock), true);
    EXPECT_NE(admin.command({"CLIENT", "LIST"}).text().find("user=orders"), std::string::npos);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    config.password = "secret2";
    expectAtOnce(config, Errc::authFailed);
}

TEST_F(Connecting, UserWithoutPermissionIsToldAtOnce)
{
    testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"ACL", "SETUSER", "orders", "on", ">secret", "~stock:*", "&*", "+@all", "-evalsha", "-eval"});
    admin.command({"ACL", "SETUSER", "stocks", "on", ">secret", "~stock:*", "&*", "+@all"});
    Config config = configFor(own.port());
    config.username = "orders";
    config.password = "secret";
    const Client orders(config);
    EXPECT_EQ(D::lock(orders.getLock("stock:1")), Errc::permissionDenied) << "commands";
    config.username = "stocks";
    const Client stocks(config);
    EXPECT_EQ(D::tryLock(stocks.getLock("other:1"), 1h), Errc::permissionDenied) << "keys";
    EXPECT_EQ(D::lock(stocks.getLock("stock:1")), true);
    EXPECT_EQ(D::unlock(stocks.getLock("stock:1")), Unlocked::released);
}

TEST_F(Connecting, WaitersOfAUserWithoutChannelsPoll)
{
    testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"ACL", "SETUSER", "silent", "on", ">secret", "~*", "resetchannels", "+@all"});
    Config config = observed(configFor(own.port()));
    config.username = "silent";
    config.password = "secret";
    config.pollInterval = 100ms;
    const Client client(config);
    const Client other(configFor(own.port()));
    Worker thread;
    EXPECT_EQ(D::lock(other.getLock("stock"), 30s), true);
    auto waiter = thread.start([lock = client.getLock("stock")] { return D::lock(lock); });
    EXPECT_TRUE(observer()->await("subscribeRefused", "stock"));
    EXPECT_EQ(D::unlock(other.getLock("stock")), Unlocked::released);
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(thread.run([lock = client.getLock("stock")] { return D::unlock(lock); }), Unlocked::released)
        << "a refused message is no failed unlock";
}

TEST_F(Connecting, DatabaseIsSelectedOnEveryConnection)
{
    Config config = observed(configFor(server().port()));
    config.database = 3;
    config.clientName = "in-three";
    const Client client(config);
    const Client beside([&] {
        Config far = configFor(server().port());
        far.database = 3;
        return far;
    }());
    const auto lock = client.getLock(uniqueName());
    raw.command({"SELECT", "3"});
    EXPECT_EQ(D::lock(beside.getLock(lock.name()), 300ms), true);
    EXPECT_EQ(D::lock(lock), true); // this wait makes all three connections
    EXPECT_TRUE(observer()->await("renewed", lock.name(), 2));
    EXPECT_TRUE(raw.exists(lock.name()));
    raw.command({"SELECT", "0"});
    EXPECT_FALSE(raw.exists(lock.name()));
    const auto clients = raw.command({"CLIENT", "LIST"}).text();
    std::size_t count = 0;
    for (auto at = clients.find("name=in-three:"); at != std::string::npos;
         at = clients.find("name=in-three:", at + 1)) {
        const auto line = clients.substr(at, clients.find('\n', at) - at);
        EXPECT_NE(line.find(" db=3 "), std::string::npos) << line;
        ++count;
    }
    EXPECT_EQ(count, 3U);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Connecting, ConnectionsLeadFromAHolderToItsHostAndProcess)
{
    const Client client(configFor(server().port()));
    const auto lock = client.getLock(uniqueName());
    const LockGuard held(lock);
    std::array<char, 256> host{};
    ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
    const auto holder = raw.hash(lock.name()).begin()->first;
    const auto name = " name=redislock:" + holder.substr(0, holder.find(':')) + ":" + host.data() + ":" +
                      std::to_string(::getpid()) + " ";
    const auto clients = raw.command({"CLIENT", "LIST"}).text();
    EXPECT_NE(clients.find(name), std::string::npos) << name << '\n' << clients;
}

TEST_F(Connecting, ConnectionsHaveTheGivenNameAloneWhereThatIsWanted)
{
    testing::RedisServer own;
    RawRedis admin(own);
    Config config = configFor(own.port());
    config.naming = Naming::asGiven;
    for (const std::string name : {"", "orders"}) {
        config.clientName = name;
        const Client client(config);
        client.connect();
        const auto clients = admin.command({"CLIENT", "LIST"}).text();
        EXPECT_EQ(clients.find("redislock"), std::string::npos) << clients;
        EXPECT_NE(clients.find(" name=" + name + " "), std::string::npos) << clients;
    }
}

TEST_F(Connecting, MissingDatabaseIsToldAtOnce)
{
    Config config = configFor(server().port());
    config.database = 16;
    expectAtOnce(config, Errc::noSuchDatabase);
}

TEST_F(Connecting, UnixSocketsServe)
{
    testing::RedisServer own({.unixSocketOnly = true});
    expectUsable(Config::fromUrl(own.url()));
    Config config = Config::fromUrl(own.unixUrl());
    config.database = 2;
    expectUsable(config);
}

TEST_F(Connecting, HostNamesAreLookedUp)
{
    expectUsable(configFor(server().port(), "localhost"));
}

TEST_F(Connecting, AddressesOfTheNewProtocolServe)
{
    const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 loopback{};
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr = in6addr_loopback;
    const bool available =
        probe >= 0 && ::bind(probe, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
    ::close(probe);
    if (!available) {
        GTEST_SKIP() << "this machine has no IPv6 loopback";
    }
    testing::RedisServer own({.arguments = {"--bind", "127.0.0.1", "::1"}});
    expectUsable(configFor(own.port(), "::1"));
    expectUsable(Config::fromUrl("redis://[::1]:" + std::to_string(own.port())));
}

TEST_F(Connecting, RefusedConnectionIsUnreachableAtOnceOrWhenTheWaitOrThePatienceIsOver)
{
    const RefusingPort port;
    Config config = configFor(port.port());
    config.unreachableAfter = 400ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    const auto expectUnreachable = [&](auto call, milliseconds after) {
        const Stopwatch watch;
        EXPECT_EQ(call(), Errc::unreachable);
        EXPECT_GE(watch.elapsed(), after);
        EXPECT_LT(watch.elapsed(), after + soon);
    };
    EXPECT_EQ(connect(client), Errc::unreachable);
    EXPECT_EQ(asyncConnect(client), Errc::unreachable);
    expectUnreachable([&] { return D::tryLock(lock); }, 0ms);
    expectUnreachable([&] { return D::tryLock(lock, 0ms); }, 0ms);
    expectUnreachable([&] { return D::tryLock(lock, 200ms); }, 200ms);
    expectUnreachable([&] { return D::tryLock(lock, 1h); }, 400ms);
    expectUnreachable([&] { return D::lock(lock); }, 400ms);
    expectUnreachable([&] { return D::isLocked(lock); }, 400ms);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(D::unlock(lock), Errc::notHeld);
}

TEST_F(Connecting, RefusedConnectionIsTold)
{
    const RefusingPort port;
    expectTold(configFor(port.port()), Cause::connectionRefused,
               textOf(Cause::connectionRefused, "Connection refused"));
}

TEST_F(Connecting, AddressOfANameThatRefusesIsTold)
{
    const RefusingPort port;
    const Client client(configFor(port.port(), "localhost"));
    std::error_code ec;
    EXPECT_FALSE(client.getLock("stock").tryLock(ec));
    EXPECT_EQ(ec, Cause::connectionRefused);
    try {
        (void)client.getLock("stock").tryLock();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const LockError& error) {
        const std::string what = error.what();
        const auto address = ":" + std::to_string(port.port());
        EXPECT_NE(what.find("at localhost" + address + ": nothing listens at the address: "), std::string::npos)
            << what;
        EXPECT_NE(what.find(address + ": Connection refused; start the server"), std::string::npos) << what;
    }
}

TEST_F(Connecting, SocketThatDoesNotExistIsTold)
{
    Config config;
    config.endpoint.unixSocket = server().folder() / "nobody.sock";
    expectTold(config, Cause::socketNotFound, textOf(Cause::socketNotFound, "No such file or directory"));
}

TEST_F(Connecting, SocketThatTheUserMayNotOpenIsTold)
{
    /// Runs as a user without rights: root may open everything.
    class AsNobody {
    public:
        AsNobody() { EXPECT_TRUE(owner_ != 0 || ::seteuid(65534) == 0); }
        AsNobody(const AsNobody&) = delete;
        AsNobody& operator=(const AsNobody&) = delete;
        ~AsNobody() { EXPECT_EQ(::seteuid(owner_), 0); }

    private:
        const uid_t owner_ = ::geteuid();
    };
    const testing::RedisServer own;
    Config config = Config::fromUrl(own.unixUrl());
    std::filesystem::permissions(config.endpoint.unixSocket, std::filesystem::perms::none);
    {
        const AsNobody nobody;
        expectTold(config, Cause::accessDenied, textOf(Cause::accessDenied, "Permission denied"));
    }
    std::filesystem::permissions(config.endpoint.unixSocket, std::filesystem::perms::owner_all);
    expectUsable(config);
}

TEST_F(Connecting, AddressWithoutARouteIsTold)
{
    const std::string broadcast = "255.255.255.255"; // no TCP connection to this address is possible
    expectTold(configFor(6379, broadcast), Cause::noRoute, textOf(Cause::noRoute, "Network is unreachable"));
}

/// An address of this machine that servers take for another machine's: from Redis 7.2 on, 127.0.0.2 is none.
std::string outerAddress()
{
    std::string found = "127.0.0.2";
    ifaddrs* all = nullptr;
    EXPECT_EQ(::getifaddrs(&all), 0);
    for (const auto* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
            (each->ifa_flags & IFF_LOOPBACK) == 0) {
            std::array<char, INET_ADDRSTRLEN> text{};
            const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
            found = ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
        }
    }
    ::freeifaddrs(all);
    return found;
}

TEST_F(Connecting, ServerInProtectedModeIsTold)
{
    const testing::RedisServer open({.arguments = {"--protected-mode", "yes"}});
    FaultProxy proxy(open);
    proxy.connectFrom(outerAddress());
    const auto config = configFor(proxy.port());
    try {
        Client(config).connect();
        FAIL() << "connected";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Cause::protectedMode);
        EXPECT_TRUE(
            std::string(error.what())
                .starts_with("connect to " + config.endpoint.str() + ": the server is in protected mode: \"DENIED "))
            << error.what();
    }
}

TEST_F(Connecting, PortThatLosesPacketsIsTold)
{
    const SwallowingPort port;
    expectTold(configFor(port.port()), Cause::connectTimedOut, textOf(Cause::connectTimedOut));
}

TEST_F(Connecting, SilentServerIsTold)
{
    const FakeServer silent("");
    expectTold(configFor(silent.port()), Cause::silent, textOf(Cause::silent));
}

TEST_F(Connecting, ServerThatHangsUpAsOneThatExpectsTlsIsTold)
{
    const auto fake = FakeServer::thatHangsUp();
    expectTold(configFor(fake->port()), Cause::hungUp, textOf(Cause::hungUp));
}

TEST_F(Connecting, ServerThatSpeaksTlsIsTold)
{
    const FakeServer fake(std::string("\x15\x03\x01\0\x02\x02\x46", 7)); // a fatal alert: protocol_version
    expectTold(configFor(fake.port()), Cause::tlsSpoken, textOf(Cause::tlsSpoken));
}

TEST_F(Connecting, PasswordThatIsWrongMissingOrNotSetIsToldInTheServersWords)
{
    testing::RedisServer locked({.password = "right"});
    Config config = configFor(locked.port());
    expectTold(config, Cause::passwordWanted, textOf(Cause::passwordWanted, "\"NOAUTH Authentication required.\""));
    config.password = "secret";
    const std::string refused =
        textOf(Cause::wrongPassword, "\"WRONGPASS invalid username-password pair or user is disabled.\"");
    expectTold(config, Cause::wrongPassword, refused);
    config.username = "nobody";
    expectTold(config, Cause::wrongPassword, refused);
    config.username.clear();
    config.endpoint = Config::fromUrl(server().url()).endpoint;
    expectTold(config, Cause::noPasswordSet,
               textOf(Cause::noPasswordSet, "\"ERR AUTH <password> called without any password configured for the "
                                            "default user. Are you sure your configuration is correct?\""));
}

TEST_F(Connecting, ServerThatRepeatsThePasswordIsNotQuoted)
{
    const FakeServer echo("-ERR unknown command `AUTH`, with args beginning with: `secret`\r\n");
    Config config = configFor(echo.port());
    config.password = "secret";
    expectAtOnce(config, Errc::authFailed);
    const FakeServer bare("secret is what you said\r\n");
    config.endpoint.port = bare.port();
    expectAtOnce(config, Errc::notRedis);
}

TEST_F(Connecting, FullServerIsTold)
{
    testing::RedisServer full;
    RawRedis admin(full);
    admin.command({"CONFIG", "SET", "maxclients", "1"});
    expectTold(configFor(full.port()), Cause::tooManyClients,
               textOf(Cause::tooManyClients, "\"ERR max number of clients reached\""));
}

TEST_F(Connecting, SocketThatDoesNotExistIsUnreachable)
{
    Config config;
    config.endpoint.unixSocket = server().folder() / "nobody.sock";
    const Client client(config);
    const Stopwatch watch;
    EXPECT_EQ(D::tryLock(client.getLock("stock")), Errc::unreachable);
    EXPECT_LT(watch.elapsed(), soon);
}

TEST_F(Connecting, HostThatDoesNotExistIsUnreachableWithinTheTimeToConnect)
{
    Config config = configFor(6379, "no-such-host.invalid");
    config.connectTimeout = 300ms;
    const Client client(config);
    const Stopwatch watch;
    EXPECT_EQ(connect(client), Errc::unreachable);
    EXPECT_EQ(D::tryLock(client.getLock("stock")), Errc::unreachable);
    EXPECT_LT(watch.elapsed(), 600ms + soon);
}

TEST_F(Connecting, ServerOfAnotherProtocolIsToldAtOnce)
{
    const std::array<std::string, 4> answers{"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                                             "220 mail.example.org ESMTP\r\n", "+OK\r\n", "$3\r\nabc\r\n"};
    for (const auto& answer : answers) {
        SCOPED_TRACE(answer);
        const FakeServer fake(answer);
        Config config = configFor(fake.port());
        config.naming = Naming::asGiven; // the first answer is the one to PING
        expectAtOnce(config, Errc::notRedis);
    }
    const FakeServer fake("$3\r\nabc\r\n");
    expectAtOnce(configFor(fake.port()), Errc::notRedis);
}

TEST_F(Connecting, PasswordOfAServerOfAnotherProtocolIsNotShownEither)
{
    const FakeServer fake("HTTP/1.1 400 Bad Request\r\n\r\n");
    Config config = configFor(fake.port());
    config.password = "secret";
    expectAtOnce(config, Errc::notRedis);
}

TEST_F(Connecting, SilentServerIsUnreachableWhenTheTimeToConnectIsOver)
{
    const FakeServer silent("");
    Config config = configFor(silent.port());
    config.connectTimeout = 200ms;
    config.unreachableAfter = 500ms;
    const Client client(config);
    const auto lock = client.getLock("stock");
    Stopwatch watch;
    EXPECT_EQ(connect(client), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 200ms);
    watch.restart();
    EXPECT_EQ(asyncConnect(client), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 200ms);
    watch.restart();
    EXPECT_EQ(D::tryLock(lock), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 200ms + soon);
    watch.restart();
    EXPECT_EQ(D::lock(lock), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 500ms);
    EXPECT_LT(watch.elapsed(), 500ms + soon);
    EXPECT_GE(silent.accepted(), 2) << "one for each connection; the pauses between attempts grow";
}

TEST_F(Connecting, WhoWaitsForLessThanTheTimeToConnectIsToldHowFarItCame)
{
    const FakeServer silent("");
    const SwallowingPort lossy;
    const std::pair<std::uint16_t, Cause> cases[] = {{silent.port(), Cause::silent},
                                                     {lossy.port(), Cause::connectTimedOut}};
    for (const auto& [port, cause] : cases) {
        Config config = configFor(port);
        config.watchdogTimeout = 30s;
        const Client client(config);
        const auto lock = client.getLock("stock");
        std::error_code ec;
        EXPECT_FALSE(lock.tryLock(200ms, 10s, ec));
        EXPECT_EQ(ec, cause);
        try {
            (void)lock.asyncTryLock(200ms, boost::asio::use_future).get();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const boost::system::system_error& error) {
            EXPECT_TRUE(error.code() == cause) << error.what();
        }
    }
}

TEST_F(Connecting, ServerThatRefusesWhatIsOptionalByAnErrorOrByItsEndIsUsable)
{
    for (const std::string command : {"HELLO", "CLIENT", "PING"}) {
        for (const bool hangsUp : {false, true}) {
            for (const std::uint32_t database : {0U, 3U}) {
                SCOPED_TRACE(command + (hangsUp ? " ends the connection" : " is an error"));
                FaultProxy proxy(server());
                const Match match{
                    .command = command, .direction = hangsUp ? Direction::request : Direction::reply, .nth = 0};
                proxy.add(match, hangsUp ? Action::cut() : Action::replace("-NOT here, in no way\r\n"));
                Config config = configFor(proxy.port());
                config.database = database;
                {
                    const Client client(config);
                    EXPECT_EQ(D::tryLock(client.getLock("at-once")), true) << "by the first attempt";
                    EXPECT_EQ(D::unlock(client.getLock("at-once")), Unlocked::released);
                }
                expectUsable(config);
            }
        }
    }
}

TEST_F(Connecting, ServerThatHangsUpWhenAskedForItsKindIsAskedOnceMoreWithout)
{
    FaultProxy proxy(server());
    const auto hangUp = proxy.add({.command = "HELLO", .nth = 0}, Action::cut());
    const Client client(configFor(proxy.port()));
    EXPECT_EQ(connect(client), std::error_code());
    EXPECT_EQ(proxy.hits(hangUp), 1U);
    EXPECT_EQ(proxy.accepted(), 2U);
}

TEST_F(Connecting, ServerThatHangsUpIsNotFlooded)
{
    const auto fake = FakeServer::thatHangsUp();
    EXPECT_EQ(D::tryLock(Client(configFor(fake->port())).getLock("stock"), 1s), Errc::unreachable);
    EXPECT_GE(fake->accepted(), 4);
    EXPECT_LE(fake->accepted(), 8);
}

TEST_F(Connecting, AsynchronouslyIsCancelledAndEndsWithTheClient)
{
    const FakeServer silent("");
    Config config = configFor(silent.port());
    config.watchdogTimeout = 30s; // or its connection gives up sooner
    config.connectTimeout = config.commandTimeout = 1min;
    std::optional<Client> client(config);
    boost::asio::cancellation_signal cancel;
    auto cancelled = client->asyncConnect(boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    cancel.emit(boost::asio::cancellation_type::partial);
    const auto errorOf = [](auto& future) {
        try {
            future.get();
            return boost::system::error_code();
        } catch (const boost::system::system_error& e) {
            return e.code();
        }
    };
    EXPECT_EQ(errorOf(cancelled), boost::asio::error::operation_aborted);
    auto ended = client->asyncConnect(boost::asio::use_future);
    ASSERT_TRUE(eventually([&] { return silent.accepted() > 0; }));
    client.reset();
    EXPECT_EQ(errorOf(ended), Errc::shutdown);
}

TEST_F(Connecting, ServerThatFallsSilentLaterIsUnreachableAfterTheTimeForACommand)
{
    FaultProxy proxy(server());
    Config config = configFor(proxy.port());
    config.commandTimeout = 300ms;
    config.connectTimeout = 300ms;
    config.unreachableAfter = 700ms;
    const Client client(config);
    const auto lock = client.getLock(uniqueName());
    EXPECT_EQ(connect(client), std::error_code());
    proxy.stall();
    Stopwatch watch;
    EXPECT_EQ(D::tryLock(lock), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 300ms);
    EXPECT_LT(watch.elapsed(), 300ms + soon);
    watch.restart();
    EXPECT_EQ(D::lock(lock), Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 700ms);
    EXPECT_LT(watch.elapsed(), 700ms + soon);
    proxy.resume();
    EXPECT_EQ(D::lock(lock), true);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Connecting, ServerThatComesLaterIsFoundByThoseWhoWait)
{
    testing::RedisServer late;
    late.kill();
    Config config = configFor(late.port());
    const Client client(config);
    const auto lock = client.getLock("stock");
    EXPECT_EQ(D::tryLock(lock), Errc::unreachable);
    Worker thread;
    auto waiter = thread.start([&] { return D::lock(lock); });
    EXPECT_EQ(waiter.wait_for(100ms), std::future_status::timeout);
    late.restart();
    EXPECT_EQ(waiter.get(), true);
    EXPECT_EQ(thread.run([&] { return D::unlock(lock); }), Unlocked::released);
}

} // namespace
} // namespace redislock::test
