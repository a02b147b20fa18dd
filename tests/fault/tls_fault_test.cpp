// TLS on hard ground: bytes that come one by one or not at all, what servers send unasked, and files that change.
#include "fault/fault_test.hpp"
#include "support/certificates.hpp"
#include "support/test_server.hpp"
#include "support/tls_peer.hpp"

#include <filesystem>
#include <latch>

namespace redislock::test {
namespace {

using ::testing::HasSubstr;
using Event = Recorder::Event;
using Version = TlsPeerOptions::Version;

/// A server that speaks TLS, and a proxy in front of it that sees nothing but bytes.
class TlsFault : public FaultTest {
protected:
    TlsFault() : FaultTest({.tls = serverTls()})
    {
        proxy.passBytes();
        config.tls = testConfig(server).tls;
    }

    /// Makes the client connect somewhere else.
    void moveTo(std::uint16_t port)
    {
        forgetClient();
        config.endpoint.port = port;
    }
};

/// A peer between the client and a plain Redis.
class TlsPeerFault : public FaultTest {
protected:
    TlsPeerFault() { config.tls = peer.config().tls; }

    void begin(Version version)
    {
        options.version = version;
        peer.setOptions(options);
        config.endpoint.port = peer.port();
        forgetClient();
        client().connect();
    }

    TlsPeerOptions options;
    TlsPeer peer{server};
};

TEST_F(TlsFault, OfSingleBytesInBothDirectionsChangesNothing)
{
    inject({.nth = 0}, Action::split(1us));
    inject({.direction = Direction::reply, .nth = 0}, Action::split(1us));
    config.connectTimeout = 10s;
    config.commandTimeout = 3s;
    auto waited = [&] {
        const LockGuard guard(lock());
        EXPECT_EQ(countInRedis(), "1");
        auto future = waitInBackground(10s);
        EXPECT_TRUE(waiterSleeps());
        EXPECT_TRUE(seen->await(Event::renewed));
        return future;
    }();
    expectGranted(waited.get());
}

TEST_F(TlsFault, OfAConnectionThatIsCutAnywhereIsAnOutageLikeAnyOther)
{
    std::size_t cuts = 0;
    // 75 positions in the handshake of each direction, which has about 1 100 bytes there and 600 back, and 25 behind it
    for (const auto direction : {Direction::request, Direction::reply}) {
        for (std::size_t i = 0; i < 100; ++i) {
            const std::size_t handshake = direction == Direction::request ? 560 : 1000;
            const std::size_t at = i < 75 ? i * handshake / 75 : handshake + (i - 75) * 20;
            const auto rule = proxy.add({.direction = direction, .nth = 1, .atByte = at}, Action::cut(), 1);
            moveTo(proxy.port());
            std::error_code ec;
            const RedisLock held = lock();
            ASSERT_TRUE(held.tryLock(10s, 10s, ec)) << "cut at " << at << ": " << ec.message();
            ASSERT_EQ(countInRedis(), "1") << at;
            ASSERT_EQ(held.unlock(ec), Unlocked::released) << at << ": " << ec.message();
            cuts += proxy.hits(rule);
            proxy.remove(rule);
        }
    }
    expectFault(cuts >= 190, "at least 190 cuts");
}

TEST_F(TlsPeerFault, RecordsOfAFewBytesWithTicketsAndKeysBetweenThemChangeNothing)
{
    for (const auto version : {Version::v1_2, Version::v1_3}) {
        options.recordSize = 3;
        if (version == Version::v1_3) {
            options.beforeEachRecord = {TlsEvent::ticket, TlsEvent::keyUpdate, TlsEvent::mutualKeyUpdate};
        }
        begin(version);
        for (int i = 0; i < 20; ++i) {
            const LockGuard guard(lock());
            EXPECT_EQ(countInRedis(), "1");
        }
        auto held = std::make_unique<LockGuard>(lock());
        auto waited = waitInBackground(10s);
        EXPECT_TRUE(waiterSleeps());
        held.reset();
        expectGranted(waited.get());
        EXPECT_EQ(seen->count(Event::disconnected), 0U);
    }
    expectFault(peer.seen().keyUpdates > 20, "the client had to change its keys");
}

TEST_F(TlsPeerFault, TicketsAndKeysOnAnIdleConnectionDoNotCloseIt)
{
    begin(Version::v1_3);
    EXPECT_EQ(lock().tryLock(), true);
    const auto before = peer.seen();
    std::size_t sent = 0;
    for (int i = 0; i < 5; ++i) {
        for (const auto event : {TlsEvent::ticket, TlsEvent::keyUpdate, TlsEvent::mutualKeyUpdate}) {
            sent += peer.send(event);
        }
        EXPECT_EQ(lock().tryLock(), true);
        EXPECT_EQ(lock().unlock(), Unlocked::stillHeld);
    }
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(sent > 0, "something was sent unasked");
    EXPECT_EQ(peer.seen().accepted, before.accepted);
    EXPECT_EQ(seen->count(Event::disconnected), 0U);
}

TEST_F(TlsPeerFault, AnswerOnAnIdleConnectionIsNobodysAnswer)
{
    begin(Version::v1_3);
    EXPECT_EQ(lock().tryLock(), true);
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(peer.send(std::string(":0\r\n")) > 0, "an answer that nobody asked for");
    EXPECT_EQ(lock().tryLock(10s, 10s), true);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    EXPECT_TRUE(seen->await(Event::disconnected));
}

TEST_F(TlsPeerFault, RenegotiationIsRefusedAndTheHoldGoesOn)
{
    begin(Version::v1_2);
    const LockGuard held(lock());
    expectFault(peer.send(TlsEvent::renegotiation) > 0, "a renegotiation was asked for");
    EXPECT_TRUE(seen->await(Event::renewed, 3));
    EXPECT_EQ(peer.seen().handshakes, peer.seen().accepted) << "no second handshake on a connection";
    EXPECT_TRUE(held);
}

TEST_F(TlsPeerFault, EndOfAConnectionWithoutAWordIsAnOutageAndNoFailureOfTls)
{
    for (const auto how : {TlsPeer::Close::notified, TlsPeer::Close::silent, TlsPeer::Close::reset}) {
        begin(Version::any);
        const RedisLock held = lock();
        held.lock();
        expectFault(peer.closeAll(how) > 0, "connections were ended");
        EXPECT_EQ(held.tryLock(), true);
        EXPECT_EQ(held.unlock(), Unlocked::stillHeld);
        EXPECT_EQ(held.unlock(), Unlocked::released);
        for (const auto& told : seen->all(Event::disconnected)) {
            EXPECT_NE(told.error, Errc::tlsFailed);
        }
    }
}

TEST_F(TlsPeerFault, ServerThatStopsInTheHandshakeIsUnreachableWhenTheTimeToConnectIsOver)
{
    for (const auto how : {TlsPeerOptions::Handshake::half, TlsPeerOptions::Handshake::silent}) {
        options.handshake = how;
        peer.setOptions(options);
        config.endpoint.port = peer.port();
        config.connectTimeout = 200ms;
        forgetClient();
        try {
            client().connect();
            FAIL() << "connected";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Cause::silent);
            EXPECT_THAT(error.what(), HasSubstr("does the server speak TLS on this port?"));
        }
    }
    expectFault(peer.seen().accepted >= 2 && peer.seen().handshakes == 0, "no handshake was finished");
    options.handshake = TlsPeerOptions::Handshake::whole;
    peer.setOptions(options);
}

TEST_F(TlsPeerFault, CertificateThatExpiresCostsNoHoldIfAnotherComesInTime)
{
    config.watchdogTimeout = 4s;
    begin(Version::any);
    const LockGuard held(lock());
    options.certificate = Authority::trusted().issue({.until = "20210101000000Z"});
    peer.setOptions(options);
    peer.closeAll(TlsPeer::Close::notified);
    EXPECT_TRUE(eventually([&] {
        for (const auto& told : seen->all(Event::disconnected)) {
            if (told.error == Cause::certificateExpired) {
                return true;
            }
        }
        return false;
    }));
    expectFault(true, "an expired certificate was shown");
    const auto before = peer.seen().accepted;
    std::this_thread::sleep_for(1s);
    EXPECT_LT(peer.seen().accepted, before + 20) << "tries come with pauses";
    options.certificate = Authority::trusted().server();
    peer.setOptions(options);
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
    EXPECT_TRUE(held);
    EXPECT_EQ(seen->count(Event::lost), 0U);
}

TEST_F(TlsFault, OfRepliesLargerThanARecordChangesNothing)
{
    constexpr std::size_t locks = 300; // of one page, with names of 300 bytes
    for (std::size_t i = 0; i < locks; ++i) {
        foreignLock(std::to_string(i) + ":" + std::string(300, 'x'), 60s);
    }
    const auto large = inject({.direction = Direction::reply, .nth = 0}, Action::pass());
    EXPECT_EQ(LockMonitor(config).list().size(), locks);
    expectFault(proxy.hits(large) >= 5, "a reply of more than 64 KiB");
    redis.command({"FLUSHALL"});
}

TEST_F(TlsFault, OfManyThreadsOnOneSessionGivesEachItsOwnAnswer)
{
    constexpr int threads = 64;
    inject({.nth = 0}, Action::pass());
    config.commandTimeout = 3s;
    client().connect();
    std::latch begin(threads);
    std::vector<std::jthread> running;
    std::atomic<int> granted{0};
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&, own = lockOf(name + std::to_string(i))] {
            begin.arrive_and_wait();
            for (int round = 0; round < 50; ++round) {
                const bool got = own.tryLock(0ms, 10s);
                granted += got && own.unlock() == Unlocked::released ? 1 : 0;
            }
        });
    }
    running.clear();
    EXPECT_EQ(granted, threads * 50);
    EXPECT_EQ(seen->count(Event::disconnected), 0U);
}

/// A client whose own certificate changes on disk. The peer tells whose certificate it was shown last.
class TlsRotation : public TlsPeerFault {
protected:
    TlsRotation()
    {
        options.clientCaFile = Authority::trusted().caFile();
        put(Authority::trusted().client());
        config.tls->certFile = certFile.string();
        config.tls->keyFile = keyFile.string();
        begin(Version::any);
        expectShown("client");
    }

    static void replace(const std::filesystem::path& file, const std::string& by)
    {
        const auto fresh = file.string() + ".new";
        std::filesystem::copy_file(by, fresh, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::rename(fresh, file);
    }
    void put(const Certificate& certificate) const
    {
        replace(certFile, certificate.certFile);
        replace(keyFile, certificate.keyFile);
    }

    /// Makes the client connect anew.
    void connectAgain()
    {
        const auto before = seen->count(Event::connected);
        expectFault(peer.closeAll(TlsPeer::Close::notified) > 0, "the connections were ended");
        EXPECT_EQ(lock().tryLock(10s, 10s), true);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_TRUE(seen->await(Event::connected, before + 1));
    }
    void expectShown(const std::string& commonName) const { EXPECT_EQ(peer.seen().client, "/CN=" + commonName); }

    testing::detail::TemporaryFolder folder;
    std::filesystem::path certFile = folder.path() / "cert.pem";
    std::filesystem::path keyFile = folder.path() / "key.pem";
};

TEST_F(TlsRotation, OfFilesIsSeenByConnectionsThatAreMadeAfterIt)
{
    ASSERT_TRUE(seen->await(Event::connected, 1));
    const auto connected = seen->count(Event::connected);
    put(Authority::trusted().issue({.commonName = "second"}));
    EXPECT_EQ(lock().tryLock(), true);
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    EXPECT_EQ(seen->count(Event::connected), connected) << "connections that are there stay";
    connectAgain();
    expectShown("second");
    EXPECT_EQ(seen->count(Event::warned), 0U);
}

TEST_F(TlsRotation, OfALinkIsSeenLikeThatOfAFile)
{
    const auto third = Authority::trusted().issue({.commonName = "third"});
    std::filesystem::remove(certFile);
    std::filesystem::create_symlink(third.certFile, certFile);
    replace(keyFile, third.keyFile);
    connectAgain();
    expectShown("third");
}

TEST_F(TlsRotation, ToABrokenFileKeepsTheLastGoodOneAndIsToldOnce)
{
    replace(certFile, "/etc/hostname");
    connectAgain();
    connectAgain();
    expectShown("client");
    EXPECT_EQ(seen->count(Event::warned), 1U);
    EXPECT_THAT(seen->all(Event::warned).at(0).holder, HasSubstr("tls.certFile is \"" + certFile.string() + "\": "));
    put(Authority::trusted().issue({.commonName = "fourth"}));
    connectAgain();
    expectShown("fourth");
}

TEST_F(TlsRotation, OfCertificateAndKeyOneAfterTheOtherIsToldOnlyIfItLasts)
{
    const auto fifth = Authority::trusted().issue({.commonName = "fifth"});
    replace(certFile, fifth.certFile);
    connectAgain();
    expectShown("client");
    EXPECT_EQ(seen->count(Event::warned), 0U);
    replace(keyFile, fifth.keyFile);
    connectAgain();
    expectShown("fifth");
    replace(keyFile, Authority::trusted().client().keyFile);
    connectAgain();
    EXPECT_EQ(seen->count(Event::warned), 0U);
    EXPECT_TRUE(seen->await(Event::warned)) << "5 s later";
    EXPECT_THAT(seen->all(Event::warned).at(0).holder, HasSubstr("it is not the key of the certificate"));
    expectShown("fifth");
}

} // namespace
} // namespace redislock::test
