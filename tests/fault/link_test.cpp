// Links that are dead, deaf, slow or lossy, and servers that accept no connections.
#include "fault/busy_clients.hpp"
#include "fault/fault_test.hpp"

#include <csignal>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace redislock::test {
namespace {

using ::testing::AnyOf;
using HalfOpenConnection = FaultTest;
using RefusedConnection = FaultTest;
using DeafServer = FaultTest;
using SlowLink = FaultTest;
using LossyLink = FaultTest;
using FullServer = FaultTest;
using NoFileDescriptors = FaultTest;
using BrokenPipe = FaultTest;

TEST_F(HalfOpenConnection, OfCommandsIsReplacedAfterTheTimeForACommandAndEveryCallerGoesOn)
{
    constexpr std::size_t callers = 4;
    client().connect();
    inject({.command = "EVALSHA"}, Action::stallDirection());
    const Stopwatch watch;
    std::vector<std::future<Unlocked>> results;
    for (std::size_t i = 0; i < callers; ++i) {
        results.push_back(std::async(std::launch::async, [one = lockOf("stock:" + std::to_string(100 + i))] {
            one.lock(20s);
            return one.unlock();
        }));
    }
    for (auto& result : results) {
        EXPECT_EQ(result.get(), Unlocked::released);
    }
    EXPECT_GE(watch.elapsed(), config.commandTimeout);
    EXPECT_LT(watch.elapsed(), 2 * config.commandTimeout + slack);
    EXPECT_GE(seen->count(Event::disconnected), 1U);
    proxy.closeAll(FaultProxy::Close::reset); // requests that are stuck in the dead link never arrive
}

TEST_F(HalfOpenConnection, OfRenewalsIsReplacedAndTheHoldGoesOn)
{
    config.watchdogTimeout = 1800ms;
    const RedisLock held = lock();
    held.lock();
    ASSERT_TRUE(seen->await(Event::renewed));
    const auto dead = inject(request(redisLockRenew), Action::stallDirection());
    ASSERT_TRUE(proxy.awaitHits(dead));
    EXPECT_TRUE(seen->await(Event::renewed, 2)) << "on the next connection";
    EXPECT_GE(seen->count(Event::renewalFailed), 1U);
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(RefusedConnection, IsTriedAgainInTheTimeOfEachCallThoughThatIsShorterThanThePause)
{
    const struct {
        const char* what;
        std::chrono::milliseconds unreachableAfter;
        std::chrono::milliseconds wait;
    } cases[] = {{"short patience", 150ms, 10s}, {"short wait", 10s, 150ms}};
    for (const auto& [what, patience, wait] : cases) {
        SCOPED_TRACE(what);
        forgetClient();
        config.unreachableAfter = patience;
        const auto before = seen->count(Event::disconnected);
        proxy.refuse();
        std::error_code ec;
        for (int i = 0; i < 6; ++i) { // without hurry a pause would last 800 ms or more by then
            EXPECT_FALSE(lock().tryLock(wait, 10s, ec));
            EXPECT_EQ(ec, Errc::unreachable);
        }
        expectFault(seen->count(Event::disconnected) >= before + 6, "refused connections");
        proxy.accept();
        EXPECT_TRUE(lock().tryLock(wait, 10s, ec)) << ec.message();
        EXPECT_EQ(lock().unlock(), Unlocked::released);
    }
}

TEST_F(RefusedConnection, IsTriedAgainAfterGrowingPausesAndServesWhenTheServerIsBack)
{
    config.unreachableAfter = 20s;
    proxy.refuse();
    auto waiter = waitInBackground(20s);
    const bool refused = seen->await(Event::disconnected, 5);
    expectFault(refused, "refused connections");
    const auto tries = seen->all(Event::disconnected);
    EXPECT_GE(tries[4].time - tries[0].time, 500ms) << "50, 100, 200 and 400 ms, each less a fifth: a storm";
    EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
    proxy.accept();
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), 1200ms + slack) << "the longest pause";
}

/// A port whose connects are never answered, because its queue is full.
class DeafPort {
public:
    DeafPort()
    {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address_;
        for (auto& socket : sockets_) {
            socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        }
        auto* address = reinterpret_cast<sockaddr*>(&address_);
        EXPECT_EQ(::bind(sockets_[0], address, size), 0);
        EXPECT_EQ(::getsockname(sockets_[0], address, &size), 0);
        EXPECT_EQ(::listen(sockets_[0], 0), 0);
        for (std::size_t i = 1; i < sockets_.size(); ++i) {
            (void)::connect(sockets_.at(i), address, size); // takes a place in the queue, or waits for one
        }
    }
    DeafPort(const DeafPort&) = delete;
    DeafPort& operator=(const DeafPort&) = delete;
    ~DeafPort()
    {
        for (const int socket : sockets_) {
            ::close(socket);
        }
    }

    [[nodiscard]] std::uint16_t port() const { return ntohs(address_.sin_port); }

private:
    sockaddr_in address_{};
    std::array<int, 4> sockets_{};
};

TEST_F(DeafServer, EndsEveryConnectInTimeAndIsGivenUpInTime)
{
    const DeafPort deaf;
    Config elsewhere = config;
    elsewhere.endpoint.port = deaf.port();
    elsewhere.connectTimeout = 300ms;
    elsewhere.unreachableAfter = 900ms;
    elsewhere.observer = nullptr;
    const Client client(elsewhere);
    const RedisLock lock = client.getLock(name);
    std::error_code ec;
    Stopwatch watch;
    EXPECT_FALSE(lock.tryLock(ec));
    EXPECT_EQ(ec, Errc::unreachable);
    expectFault(watch.elapsed() >= 300ms, "a connect without an answer");
    EXPECT_LT(watch.elapsed(), 300ms + slack);
    watch.restart();
    lock.lock(ec);
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_GE(watch.elapsed(), 900ms);
    EXPECT_LT(watch.elapsed(), 900ms + slack);
}

TEST_F(SlowLink, LeavesOfALeaseOnlyWhatItsWayHasNotUsed)
{
    config.commandTimeout = 3s;
    client().connect();
    inject(reply(redisLockLock), Action::delay(400ms));
    lock().lock(1000ms);
    const auto before = bootTime();
    const auto valid = lock().validFor();
    const auto left = redis.pttl(name);
    EXPECT_LE(valid, 600ms);
    EXPECT_LE(before + valid, bootTime() + left) << "a belief beyond the lease in Redis";
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_THAT(lock().unlock(), AnyOf(Unlocked::released, Unlocked::alreadyLost)); // the latter on a very busy machine
}

TEST_F(SlowLink, ThatIsSlowerThanTheLeaseGrantsNothing)
{
    config.commandTimeout = 3s;
    client().connect();
    const RedisLock late = lock();
    inject(reply(redisLockLock), Action::delay(500ms));
    std::error_code ec;
    EXPECT_FALSE(late.tryLock(0ms, 300ms, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_EQ(late.holdCount(), 0U);
    EXPECT_EQ(late.validFor(), 0ms);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockUnlock))) << "it was not given back";
    EXPECT_EQ(seen->count(Event::acquired), 0U);
    inject(reply(redisLockLock), Action::delay(500ms));
    EXPECT_TRUE(late.tryLock(10s, 300ms)) << "by its second try, which is quicker";
    EXPECT_GE(requestsFor(redisLockLock).size(), 3U);
    EXPECT_THAT(late.unlock(), AnyOf(Unlocked::released, Unlocked::alreadyLost));
}

TEST_F(LossyLink, ThatLosesAQuarterOfAllRequestsAndATenthOfTheRepliesKeepsEveryCountExact)
{
    config.commandTimeout = 250ms;
    config.connectTimeout = 250ms;
    config.unreachableAfter = 30s;
    config.watchdogTimeout = 18s;
    const RedisLock renewed = lockOf("renewed");
    renewed.lock();
    // So few losses that the renewal survives even if it meets all of them: eight waits for an answer and the pauses
    // between them take less than nine of the twelve seconds that it has.
    const auto requests = inject({.command = "*", .oneIn = 4}, Action::drop(), 6);
    const auto replies = inject({.command = "*", .direction = Direction::reply, .oneIn = 10}, Action::drop(), 2);
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    for (int round = 0; round < 20 && (round < 2 || proxy.hits(requests) < 3 || proxy.hits(replies) < 1); ++round) {
        lock().lock(20s);
        EXPECT_EQ(countInRedis(), "1");
        auto waiter = waitInBackground(other, 30s, 20s);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        expectGranted(waiter.get());
    }
    EXPECT_TRUE(seen->await(Event::renewed, 1, 30s));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_GE(proxy.hits(requests), 3U);
    EXPECT_GE(proxy.hits(replies), 1U);
    endFaults();
    EXPECT_EQ(renewed.unlock(), Unlocked::released);
}

TEST_F(FullServer, RefusesNewConnectionsInTimeAndServesWhenThereIsRoom)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    redis.command({"CONFIG", "SET", "maxclients", redis.info("connected_clients")});
    Config others = config;
    others.observer = nullptr;
    others.unreachableAfter = 20s;
    Client other(others);
    std::error_code ec;
    const Stopwatch watch;
    EXPECT_FALSE(other.getLock("wanted").tryLock(300ms, 10s, ec));
    EXPECT_TRUE(ec == Errc::serverRefused || ec == Errc::unreachable) << ec;
    EXPECT_LT(watch.elapsed(), 300ms + slack);
    auto waiter = waitInBackground(other, 20s);
    EXPECT_TRUE(seen->await(Event::renewed)) << "over the threads' connection";
    expectFault(std::stoi(redis.info("rejected_connections")) > 0, "a refused connection");
    redis.command({"CONFIG", "SET", "maxclients", "1000"});
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    expectGranted(waiter.get());
}

/// While this object lives, this process gets no more file descriptors.
class FewFiles {
public:
    FewFiles()
    {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit none = before_;
        none.rlim_cur = 3; // only input, output and errors; and poll() of one socket still works
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    FewFiles(const FewFiles&) = delete;
    FewFiles& operator=(const FewFiles&) = delete;
    ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

    [[nodiscard]] static bool hit() { return ::socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EMFILE; }

private:
    rlimit before_{};
};

TEST_F(NoFileDescriptors, KeepNoHoldFromBeingRenewed)
{
    config.endpoint.port = server.port(); // the proxy, in this process, needs poll() of several sockets
    const RedisLock held = lock();
    held.lock();
    {
        const FewFiles few;
        expectFault(FewFiles::hit(), "no file descriptors");
        EXPECT_TRUE(seen->await(Event::renewed, 3));
    }
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(NoFileDescriptors, LoseNoHoldAndNoProcess)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    ASSERT_TRUE(seen->await(Event::renewed));
    {
        const FewFiles few;
        expectFault(FewFiles::hit(), "no file descriptors");
        proxy.closeAll(FaultProxy::Close::reset);
        std::error_code ec;
        EXPECT_FALSE(lockOf("wanted").tryLock(200ms, 10s, ec));
        EXPECT_EQ(ec, Errc::unreachable);
        EXPECT_TRUE(seen->await(Event::renewalFailed));
        EXPECT_ANY_THROW(Client{config}) << "no client can be made";
        EXPECT_TRUE(held.isHeldByCurrentThread());
    }
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

volatile std::sig_atomic_t brokenPipes = 0;

TEST_F(BrokenPipe, RaisesNoSignalAndLeavesTheProcesssSettingAlone)
{
    struct sigaction counting {};
    counting.sa_handler = [](int) { brokenPipes = brokenPipes + 1; };
    struct sigaction before {};
    ::sigaction(SIGPIPE, &counting, &before);
    config.unreachableAfter = 20s;
    Config others = config;
    others.observer = nullptr;
    {
        Client other(others);
        BusyClients busy(client(), other, name);
        for (int i = 0; i < 30; ++i) {
            const int rounds = busy.rounds;
            EXPECT_TRUE(eventually([&] { return busy.rounds > rounds; }, 20s));
            proxy.closeAll(FaultProxy::Close::reset);
        }
        busy.end();
        EXPECT_EQ(busy.failures, 0);
    }
    expectFault(proxy.accepted() >= 10, "connections reset under load");
    EXPECT_EQ(brokenPipes, 0);
    struct sigaction after {};
    ::sigaction(SIGPIPE, &before, &after);
    EXPECT_EQ(after.sa_handler, counting.sa_handler);
}

} // namespace
} // namespace redislock::test
