// Host names whose look-up is slow, wrong, or has another result than before.
//
// The whole program, including the library, uses the getaddrinfo() of this file.
#include "fault/fault_test.hpp"
#include "redislock/lock_monitor.hpp"

#include <boost/asio/use_future.hpp>

#include <dlfcn.h>
#include <netdb.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstring>

namespace {

/// The result of looking up the host name of these tests.
struct Lookup {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> addresses; ///< none: there is no such host
    bool isSlow = false;
    int asked = 0;
    int hanging = 0;
};

Lookup& lookup()
{
    static Lookup& instance = *new Lookup; // a thread that hangs in a look-up outlives the test
    return instance;
}

constexpr const char* hostName = "redis.fault.test";

} // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result)
{
    static const auto original = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (node == nullptr || std::strcmp(node, hostName) != 0) {
        return original(node, service, hints, result);
    }
    std::unique_lock lock(lookup().mutex);
    ++lookup().asked;
    ++lookup().hanging;
    lookup().changed.wait(lock, [] { return !lookup().isSlow; });
    --lookup().hanging;
    *result = nullptr;
    addrinfo** next = result;
    for (const auto& address : lookup().addresses) {
        if (original(address.c_str(), service, hints, next) == 0) {
            while (*next != nullptr) {
                next = &(*next)->ai_next;
            }
        }
    }
    return *result != nullptr ? 0 : EAI_NONAME;
}

namespace redislock::test {
namespace {

class NameLookup : public FaultTest {
protected:
    NameLookup()
    {
        config.endpoint.host = hostName;
        set({"127.0.0.1"});
    }
    ~NameLookup() override { set({"127.0.0.1"}); }

    static void set(std::vector<std::string> addresses, bool isSlow = false)
    {
        const std::lock_guard guard(lookup().mutex);
        lookup().addresses = std::move(addresses);
        lookup().isSlow = isSlow;
        lookup().changed.notify_all();
    }

    static int asked()
    {
        const std::lock_guard guard(lookup().mutex);
        return lookup().asked;
    }

    static bool isHanging()
    {
        const std::lock_guard guard(lookup().mutex);
        return lookup().hanging > 0;
    }
};

TEST_F(NameLookup, ThatHangsKeepsNoHoldFromBeingRenewed)
{
    const RedisLock held = lock();
    held.lock();
    set({"127.0.0.1"}, true);
    EXPECT_TRUE(seen->await(Event::renewed, 3));
    expectFault(isHanging(), "a look-up that hangs");
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(NameLookup, ThatHangsIsToldToACallerWhoseWaitIsShort)
{
    set({"127.0.0.1"}, true);
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(100ms, 10s, ec));
    EXPECT_EQ(ec, Cause::lookupFailed);
    expectFault(isHanging(), "a look-up that hangs");
    set({"127.0.0.1"});
}

TEST_F(NameLookup, HappensAgainForEachConnection)
{
    config.unreachableAfter = 20s;
    lock().lock(20s);
    const int before = asked();
    set({"127.0.0.2"}); // nobody listens there
    proxy.closeAll(FaultProxy::Close::reset);
    auto unlocked = std::async(std::launch::async, [this] { return lock().forceUnlock(); });
    EXPECT_TRUE(seen->await(Event::disconnected, 2)) << "the old address was used";
    set({"127.0.0.1"});
    EXPECT_TRUE(unlocked.get());
    expectFault(asked() >= before + 2, "a name with another address");
    EXPECT_THAT(lock().unlock(), ::testing::AnyOf(Unlocked::alreadyLost, Unlocked::released));
}

TEST_F(NameLookup, TriesEveryAddress)
{
    set({"127.0.0.2", "::1", "127.0.0.1"});
    const Stopwatch watch;
    lock().lock(20s);
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    expectFault(asked() > 0, "addresses where nobody listens");
}

/// An address at which nobody answers.
class SilentAddress {
public:
    enum class Kind {
        opens,    ///< connections are made, but no bytes come
        swallows, ///< packets are lost
    };

    SilentAddress(const char* host, std::uint16_t port, Kind kind) : sockets_{tcp(), tcp(), tcp(), tcp()}
    {
        address_.sin_family = AF_INET;
        address_.sin_port = htons(port);
        ::inet_pton(AF_INET, host, &address_.sin_addr);
        const int on = 1;
        ::setsockopt(sockets_[0], SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        EXPECT_EQ(::bind(sockets_[0], generic(), sizeof address_), 0) << std::strerror(errno);
        EXPECT_EQ(::listen(sockets_[0], kind == Kind::opens ? 16 : 0), 0);
        if (kind == Kind::swallows) { // a queue that is full
            for (std::size_t i = 1; i < sockets_.size(); ++i) {
                ::connect(sockets_[i], generic(), sizeof address_);
            }
        }
    }
    SilentAddress(const SilentAddress&) = delete;
    SilentAddress& operator=(const SilentAddress&) = delete;
    ~SilentAddress()
    {
        for (const int one : sockets_) {
            ::close(one);
        }
    }

private:
    static int tcp() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
    [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address_); }

    std::array<int, 4> sockets_;
    sockaddr_in address_{};
};

TEST_F(NameLookup, GoesOnToTheNextAddressWhileOneIsSilent)
{
    for (const auto kind : {SilentAddress::Kind::opens, SilentAddress::Kind::swallows}) {
        SCOPED_TRACE(kind == SilentAddress::Kind::opens ? "opens" : "swallows");
        const SilentAddress silent("127.0.0.2", proxy.port(), kind);
        set({"127.0.0.2", "127.0.0.1"});
        forgetClient();
        const int before = asked();
        std::error_code ec;
        EXPECT_TRUE(lock().tryLock(20s, 20s, ec)) << ec.message();
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        expectFault(asked() > before, "an address that is silent");
    }
}

/// The server behind the proxy, at 127.0.0.1, becomes a replica of another server, at 127.0.0.2 and the same port.
class DemotedMaster : public NameLookup {
protected:
    void SetUp() override
    {
        config.watchdogTimeout = 20s;
        config.unreachableAfter = 20s;
        set({"127.0.0.1", "127.0.0.2"});
    }

    void demote()
    {
        redis.command({"REPLICAOF", "127.0.0.2", std::to_string(proxy.port())});
        const bool isReplica = eventually([&] { return redis.info("role") == "slave"; });
        expectFault(isReplica, "a demoted master");
    }

    void TearDown() override
    {
        redis.command({"REPLICAOF", "NO", "ONE"});
        set({"127.0.0.1"});
        forgetClient();
        redis.command({"FLUSHALL"});
        NameLookup::TearDown();
    }

    testing::RedisServer master{
        {.arguments = {"--port", std::to_string(proxy.port()), "--bind", "127.0.0.2"}, .unixSocketOnly = true}};
    RawRedis truth{master};
};

TEST_F(DemotedMaster, IsLeftForAnotherAddressOfTheName)
{
    EXPECT_TRUE(lock().tryLock(20s, 20s));
    const int before = asked();
    demote();
    std::error_code ec;
    EXPECT_TRUE(lockOf("wanted").tryLock(20s, 20s, ec)) << ec.message();
    EXPECT_TRUE(truth.exists("wanted"));
    EXPECT_GT(asked(), before);
    EXPECT_EQ(lockOf("wanted").unlock(), Unlocked::released);
    EXPECT_FALSE(truth.exists("wanted"));
}

TEST_F(DemotedMaster, IsLeftByASingleAttemptToo)
{
    EXPECT_TRUE(lock().tryLock(20s, 20s));
    demote();
    std::error_code ec;
    EXPECT_TRUE(lockOf("wanted").tryLock(ec)) << ec.message();
    EXPECT_TRUE(truth.exists("wanted"));
}

TEST_F(DemotedMaster, IsLeftByAsynchronousCallsToo)
{
    const auto first = lock().asyncTryLock(20s, 20s, boost::asio::use_future).get();
    EXPECT_TRUE(first);
    demote();
    const auto wanted = lockOf("wanted").asyncTryLock(20s, 20s, boost::asio::use_future).get();
    EXPECT_TRUE(wanted);
    EXPECT_TRUE(truth.exists("wanted"));
}

TEST_F(DemotedMaster, IsLeftByTheConnectionThatListensToo)
{
    const auto channel = detail::lockChannel(name);
    const auto listens = [&](RawRedis& at) {
        return eventually([&] { return at.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer() == 1; });
    };
    foreignLock(60s);
    truth.command({"HSET", name, foreigner, "1"});
    truth.command({"PEXPIRE", name, "60000"});
    auto waiter = waitInBackground(60s);
    ASSERT_TRUE(listens(redis));
    demote();
    EXPECT_TRUE(lockOf("wanted").tryLock(20s, 20s)); // the client finds this out
    EXPECT_TRUE(listens(truth));
    truth.command({"DEL", name});
    truth.command({"PUBLISH", channel, "0"});
    EXPECT_TRUE(waiter.get().granted);
    EXPECT_EQ(lockOf("wanted").unlock(), Unlocked::released);
}

TEST_F(DemotedMaster, LosesNoLockThatTheNewMasterHas)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    ASSERT_TRUE(seen->await(Event::renewed));
    // the new master has the data that the old one replicated
    const auto hash = redis.hash(name);
    ASSERT_EQ(hash.size(), 1U);
    truth.command({"HSET", name, hash.begin()->first, hash.begin()->second});
    truth.command({"PEXPIRE", name, "20000"});
    const auto renewed = seen->count(Event::renewed);
    demote();
    EXPECT_TRUE(seen->await(Event::renewed, renewed + 2));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(truth.exists(name));
}

TEST_F(DemotedMaster, ThatANewClientMeetsFirstIsPassedOver)
{
    demote();
    std::error_code ec;
    client().connect(ec);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_TRUE(lockOf("wanted").tryLock(20s, ec)) << ec.message();
    EXPECT_TRUE(truth.exists("wanted"));
    const auto seenByMonitor = LockMonitor(config).find("wanted", ec);
    EXPECT_TRUE(seenByMonitor && seenByMonitor->holders.size() == 1U) << ec.message();
    EXPECT_EQ(lockOf("wanted").unlock(), Unlocked::released);
}

TEST_F(DemotedMaster, WithoutAnotherAddressIsSatOutUntilTheNameLeadsToTheNewMaster)
{
    demote();
    set({"127.0.0.1"});
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(ec));
    EXPECT_EQ(ec, Cause::readOnly);
    EXPECT_FALSE(lock().tryLock(300ms, 20s, ec));
    EXPECT_EQ(ec, Cause::readOnly) << "though it waited for a connection at its end";
    auto waiter = waitInBackground(20s);
    const int before = asked();
    std::this_thread::sleep_for(3s); // the pauses have grown to their full length
    const int often = asked() - before;
    EXPECT_GE(often, 2) << "a pause is up to a second, and each attempt takes its time";
    EXPECT_LE(often, 12) << "it is flooded";
    EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
    set({"127.0.0.2"});
    const Stopwatch watch;
    const auto waited = waiter.get();
    EXPECT_TRUE(waited.granted) << waited.error.message();
    EXPECT_EQ(waited.unlocked, Unlocked::released);
    EXPECT_LT(watch.elapsed(), 1200ms + slack);
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(NameLookup, OfAHostThatDoesNotExistIsToldInTheResolversWords)
{
    set({});
    config.unreachableAfter = 300ms;
    const std::string where = std::string(hostName) + ":" + std::to_string(config.endpoint.port);
    try {
        lock().lock();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Cause::hostNotFound);
        EXPECT_EQ(error.code(), Errc::unreachable);
        EXPECT_STREQ(error.what(), ("lock \"" + name + "\" at " + where +
                                    ": the host name is not known: Host not found (authoritative); correct the "
                                    "name, or the resolver")
                                       .c_str());
    }
    set({"127.0.0.1"});
    expectFault(asked() > 0, "a name that is not found");
}

TEST_F(NameLookup, ThatDoesNotEndIsTold)
{
    set({"127.0.0.1"}, true);
    config.connectTimeout = 200ms;
    config.unreachableAfter = 300ms;
    std::error_code ec;
    lock().lock(ec);
    EXPECT_EQ(ec, Cause::lookupFailed);
    EXPECT_EQ(ec, Errc::unreachable);
    const bool hung = isHanging();
    set({"127.0.0.1"});
    expectFault(hung, "a look-up that hangs");
}

TEST_F(NameLookup, OfAHostThatDoesNotExistYetIsRepeated)
{
    set({});
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(ec));
    EXPECT_EQ(ec, Errc::unreachable);
    config.unreachableAfter = 20s;
    forgetClient();
    auto waiter = waitInBackground(20s);
    const int before = asked();
    EXPECT_TRUE(eventually([&] { return asked() >= before + 2; }));
    set({"127.0.0.1"});
    expectGranted(waiter.get());
    expectFault(true, "a name without address");
}

TEST_F(NameLookup, ThatIsSlowKeepsNobodyBeyondTheTimeToConnect)
{
    config.watchdogTimeout = 6s;
    config.commandTimeout = 20s; // so that no connection ends on a busy machine, and no other look-up follows
    const RedisLock held = lock();
    held.lock();
    ASSERT_TRUE(seen->await(Event::renewed)); // its two connections are made
    const int before = asked();
    set({"127.0.0.1"}, true); // until the end of the test
    Config others = config;
    others.observer = nullptr;
    others.connectTimeout = 300ms;
    others.commandTimeout = 300ms;
    const Client other(others);
    std::error_code ec;
    EXPECT_FALSE(other.getLock("wanted").tryLock(ec)) << "it came back though the lookup did not";
    EXPECT_EQ(ec, Errc::unreachable);
    expectFault(asked() > before, "a slow lookup");
    const auto renewed = seen->count(Event::renewed);
    EXPECT_TRUE(seen->await(Event::renewed, renewed + 1)) << "renewals wait for somebody else's lookup";
    EXPECT_TRUE(isHanging()) << "the lookup came to its end";
    set({"127.0.0.1"});
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(NameLookup, ThatHangsKeepsNoClientFromEnding)
{
    set({}, true);
    config.connectTimeout = 200ms;
    const int before = asked();
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(ec));
    EXPECT_EQ(ec, Errc::unreachable);
    expectFault(asked() > before, "a lookup that hangs");
    forgetClient();
    EXPECT_TRUE(isHanging()) << "the lookup came to its end";
    set({"127.0.0.1"});
}

} // namespace
} // namespace redislock::test
