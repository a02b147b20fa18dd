// The locks of a server and their holders, seen from outside.
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/lock_monitor.hpp"
#include "support/fault_proxy.hpp"
#include "support/this_host.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

const std::string javaClient = "1b1f96fc-15c1-4297-a056-e1c973a409fe";

class Monitor : public LockTest {
protected:
    static const LockReport* named(const std::vector<LockReport>& locks, const std::string& name)
    {
        const auto found =
            std::find_if(locks.begin(), locks.end(), [&](const LockReport& lock) { return lock.name == name; });
        return found == locks.end() ? nullptr : &*found;
    }

    /// Makes @p count locks, in the form of Redisson's.
    void makeLocks(int count, const std::string& prefix)
    {
        for (int i = 0; i < count; ++i) {
            const auto key = prefix + std::to_string(i);
            raw.send({"HSET", key, javaClient + ":" + std::to_string(i), "1"});
            raw.send({"PEXPIRE", key, "60000"});
        }
        for (int i = 0; i < 2 * count; ++i) {
            raw.receive();
        }
    }

    std::string name = uniqueName();
    Client client{config()};
    LockMonitor monitor{config()};
};

TEST_F(Monitor, LeadsFromALockToHostAndProcess)
{
    Config own = config();
    own.clientName = "orders";
    const Client orders(own);
    const auto lock = orders.getLock(name);
    const LockGuard held(lock, Lease(20s));
    const LockGuard nested(lock, Lease(20s));
    const auto report = monitor.find(name);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->name, name);
    EXPECT_EQ(report->kind, ObjectKind::redisLock);
    ASSERT_TRUE(report->timeLeft);
    EXPECT_GT(*report->timeLeft, 0ms);
    EXPECT_LE(*report->timeLeft, 20s);
    EXPECT_EQ(report->waiters, 0U);
    ASSERT_EQ(report->holders.size(), 1U);
    const auto& holder = report->holders.front();
    EXPECT_EQ(holder.name, holderOf(name));
    EXPECT_EQ(holder.clientId, orders.id());
    EXPECT_EQ(holder.count, 2U);
    EXPECT_EQ(holder.program, "orders");
    EXPECT_EQ(holder.host, thisHost());
    EXPECT_EQ(holder.process, static_cast<std::uint64_t>(::getpid()));
    EXPECT_TRUE(holder.address.starts_with("127.0.0.1:")) << holder.address;
    ASSERT_TRUE(holder.connectedFor && holder.silentFor);
    EXPECT_LT(*holder.connectedFor, 60s) << "seconds since a moment ago";
    EXPECT_LE(*holder.silentFor, *holder.connectedFor);
    EXPECT_TRUE(monitor.missingRights().empty());
    const auto listed = monitor.list(name);
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed.front().holders, report->holders) << "the same in a list";
}

TEST_F(Monitor, TellsTheKinds)
{
    const auto fenced = client.getFencedLock(name + ":fenced");
    const LockGuard fencedHeld(fenced, Lease(20s));
    const auto both = client.getReadWriteLock(name + ":read");
    const LockGuard readHeld(both.readLock(), Lease(20s));
    const auto other = client.getReadWriteLock(name + ":write");
    const LockGuard writeHeld(other.writeLock(), Lease(20s));
    raw.command({"HSET", name + ":visits", "monday", "3"});
    raw.command({"HSET", name + ":crowd", "monday", "3", "tuesday", "4"});
    raw.command({"SET", name + ":text", "x"});
    raw.command({"HSET", name + ":java", javaClient + ":52", "1"});
    const auto locks = monitor.list(name + ":*");
    EXPECT_EQ(locks.size(), 4U);
    ASSERT_NE(named(locks, name + ":fenced"), nullptr);
    EXPECT_EQ(named(locks, name + ":fenced")->kind, ObjectKind::fencedLock);
    ASSERT_NE(named(locks, name + ":read"), nullptr);
    EXPECT_EQ(named(locks, name + ":read")->kind, ObjectKind::readLock);
    ASSERT_NE(named(locks, name + ":write"), nullptr);
    EXPECT_EQ(named(locks, name + ":write")->kind, ObjectKind::writeLock);
    EXPECT_TRUE(named(locks, name + ":write")->holders.front().writes);
    const auto* java = named(locks, name + ":java");
    ASSERT_NE(java, nullptr);
    EXPECT_EQ(java->holders.front().clientId, javaClient);
    EXPECT_EQ(java->holders.front().host, "");
    EXPECT_FALSE(java->timeLeft) << "without time to live";
    EXPECT_FALSE(monitor.find(name + ":absent"));
}

TEST_F(Monitor, SaysWhatLiesThereInsteadOfALock)
{
    raw.command({"HSET", name + ":visits", "monday", "3"});
    raw.command({"HSET", name + ":crowd", "monday", "3", "tuesday", "4"});
    raw.command({"HSET", name + ":dark", "mode", "dark", javaClient + ":1", "1"});
    raw.command({"SET", name + ":text", "x"});
    raw.command({"RPUSH", name + ":list", "x"});
    const std::pair<std::string, std::string> cases[] = {
        {":visits", "hash"}, {":crowd", "hash"}, {":dark", "hash"}, {":text", "string"}, {":list", "list"}};
    for (const auto& [what, type] : cases) {
        try {
            (void)monitor.find(name + what);
            ADD_FAILURE() << what;
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::wrongType) << what;
            EXPECT_NE(std::string(error.what()).find("the key is a " + type + ", not a lock"), std::string::npos)
                << error.what();
        }
        std::error_code ec;
        EXPECT_FALSE(client.getLock(name + what).explain(ec)) << what;
        EXPECT_EQ(ec, Errc::wrongType) << what;
    }
    EXPECT_EQ(monitor.forEachPage(name + ":*", [](const auto&, const auto&) { return true; }).others, 3U);
    RawRedis::Arguments crowd{"HSET", name + ":visits"};
    for (int i = 0; i < 300; ++i) {
        crowd.insert(crowd.end(), {std::to_string(i), "1"});
    }
    raw.command(crowd);
    std::error_code ec;
    EXPECT_FALSE(client.getLock(name + ":visits").explain(ec));
    EXPECT_EQ(ec, Errc::wrongType) << "a large hash";
}

TEST_F(Monitor, TellsTheQueueOfAFairLockInItsOrder)
{
    const auto lock = client.getFairLock(name);
    const LockGuard held(lock, Lease(60s));
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::unique_ptr<Worker>> workers;
    std::stop_source stop;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<Client>(config()));
        workers.push_back(std::make_unique<Worker>());
        workers.back()->start(
            [fair = clients.back()->getFairLock(name), token = stop.get_token()] { return fair.lock(token); });
        ASSERT_TRUE(eventually([&] {
            return raw.command({"LLEN", "redisson_lock_queue:{" + name + "}"}).integer() == i + 1;
        }));
    }
    const auto report = monitor.find(name);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, ObjectKind::fairLock);
    EXPECT_EQ(report->waiters, 3U);
    ASSERT_EQ(report->queue.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(report->queue[i].clientId, clients[i]->id());
        EXPECT_EQ(report->queue[i].count, 0U);
        EXPECT_EQ(report->queue[i].process, static_cast<std::uint64_t>(::getpid()));
    }
    const auto explained = lock.explain();
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->kind, ObjectKind::fairLock);
    EXPECT_EQ(explained->waiters, 3U);
    stop.request_stop();
}

TEST_F(Monitor, CountsWhoListens)
{
    const auto lock = client.getLock(name);
    const LockGuard held(lock, Lease(60s));
    const Client other(config());
    Worker worker;
    std::stop_source stop;
    auto waiting = worker.start([plain = other.getLock(name), token = stop.get_token()] { return plain.lock(token); });
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    EXPECT_EQ(monitor.find(name)->waiters, 1U);
    stop.request_stop();
    EXPECT_FALSE(waiting.get());
}

TEST_F(Monitor, PagesThroughTenThousandLocks)
{
    makeLocks(10'000, name + ":");
    std::uint64_t pages = 0;
    std::set<std::string> seen;
    MonitorProgress last;
    const auto end = monitor.forEachPage(name + ":*", [&](const auto& locks, const MonitorProgress& so) {
        ++pages;
        EXPECT_LE(locks.size(), 1000U);
        EXPECT_GE(so.examined, last.examined);
        last = so;
        for (const auto& lock : locks) {
            EXPECT_TRUE(seen.insert(lock.name).second) << lock.name;
        }
        return true;
    });
    EXPECT_EQ(seen.size(), 10'000U);
    EXPECT_EQ(end.locks, 10'000U);
    EXPECT_GE(end.keys, 10'000U);
    EXPECT_EQ(end.examined, end.keys);
    EXPECT_GE(pages, 20U);
    pages = 0;
    monitor.forEachPage(name + ":*", [&](const auto&, const auto&) { return ++pages < 3; });
    EXPECT_EQ(pages, 3U) << "ends when told";
    EXPECT_EQ(raw.commandCalls("keys"), 0U);
}

TEST_F(Monitor, ReadsAQueueOfTenThousandInPages)
{
    raw.command({"HSET", name, javaClient + ":1", "1"});
    raw.command({"PEXPIRE", name, "60000"});
    const auto queue = "redisson_lock_queue:{" + name + "}";
    constexpr int waiting = 10'000;
    for (int i = 0; i < waiting; ++i) {
        raw.send({"RPUSH", queue, javaClient + ":" + std::to_string(i)});
    }
    for (int i = 0; i < waiting; ++i) {
        raw.receive();
    }
    const auto before = raw.commandCalls("lrange");
    const auto report = monitor.find(name);
    ASSERT_TRUE(report);
    ASSERT_EQ(report->queue.size(), std::size_t{waiting});
    EXPECT_EQ(report->queue.front().name, javaClient + ":0");
    EXPECT_EQ(report->queue.back().name, javaClient + ":9999");
    EXPECT_GE(raw.commandCalls("lrange") - before, 20U);
    EXPECT_TRUE(monitor.list(name).front().queue.empty()) << "only the length";
    raw.command({"DEL", queue, name});
}

TEST_F(Monitor, TellsAllReadersOfACrowd)
{
    RawRedis::Arguments request{"HSET", name, "mode", "read"};
    constexpr int readers = 2'000;
    for (int i = 0; i < readers; ++i) {
        request.push_back(javaClient + ":" + std::to_string(i));
        request.emplace_back("1");
    }
    raw.command(request);
    raw.command({"PEXPIRE", name, "60000"});
    const auto report = monitor.find(name);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, ObjectKind::readLock);
    EXPECT_EQ(report->holders.size(), std::size_t{readers});
    EXPECT_FALSE(report->hasMoreHolders);
    const auto listed = monitor.list(name);
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_TRUE(listed.front().hasMoreHolders);
    const auto explained = client.getReadWriteLock(name).readLock().explain();
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->kind, ObjectKind::readLock);
    EXPECT_TRUE(explained->hasMoreHolders);
    raw.command({"DEL", name});
}

/// Connections with names like those of a client.
class NamedConnections {
public:
    NamedConnections(std::uint16_t port, int count)
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        for (int i = 0; i < count; ++i) {
            std::array<char, 13> tail{};
            std::snprintf(tail.data(), tail.size(), "%012d", i);
            const auto request = std::string("CLIENT SETNAME crowd:00000000-0000-0000-0000-") + tail.data() + ":host" +
                                 std::to_string(i) + ":" + std::to_string(i + 1) + "\r\n";
            const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockets_.push_back(socket);
            isWhole_ =
                isWhole_ && socket >= 0 &&
                ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
        }
        for (const int socket : sockets_) {
            std::array<char, 64> answer{};
            isWhole_ = isWhole_ && ::recv(socket, answer.data(), answer.size(), 0) == 5;
        }
    }
    NamedConnections(const NamedConnections&) = delete;
    NamedConnections& operator=(const NamedConnections&) = delete;
    ~NamedConnections()
    {
        for (const int socket : sockets_) {
            ::close(socket);
        }
    }
    [[nodiscard]] bool isWhole() const noexcept { return isWhole_; }

private:
    std::vector<int> sockets_;
    bool isWhole_ = true;
};

TEST_F(Monitor, FindsItsWayAmongFiveThousandClients)
{
    const testing::RedisServer own({.arguments = {"--maxclients", "6000"}});
    const NamedConnections crowd(own.port(), 5'000);
    ASSERT_TRUE(crowd.isWhole()) << "needs 5 000 open files";
    RawRedis admin(own);
    admin.command({"HSET", name, "00000000-0000-0000-0000-000000004321:7", "1"});
    admin.command({"PEXPIRE", name, "60000"});
    const FaultProxy proxy(own);
    LockMonitor crowded(proxy.url());
    const auto locks = crowded.list();
    EXPECT_EQ(proxy.requests(Match{.command = "CLIENT LIST"}), 1U) << "once a round";
    ASSERT_EQ(locks.size(), 1U);
    EXPECT_EQ(locks.front().holders.front().program, "crowd");
    EXPECT_EQ(locks.front().holders.front().host, "host4321");
    EXPECT_EQ(locks.front().holders.front().process, 4322U);
}

TEST_F(Monitor, RaisesAlarms)
{
    const auto lock = client.getLock(name + ":held");
    const LockGuard held(lock, Lease(30s));
    raw.command({"HSET", name + ":forever", javaClient + ":1", "1"});
    int held_ = 0;
    std::vector<std::string> forever;
    std::vector<std::string> near;
    MonitorAlarms alarms;
    alarms.heldTooLong = [&](const LockReport& report, const LockHolder& holder, std::chrono::milliseconds seen) {
        held_ += report.name == name + ":held" && holder.clientId == client.id() && seen > 0ms ? 1 : 0;
    };
    alarms.withoutTimeToLive = [&](const LockReport& report) { forever.push_back(report.name); };
    alarms.clientId = client.id();
    alarms.deadlineWithin = 1min;
    alarms.nearDeadline = [&](const LockReport& report, const LockHolder&) { near.push_back(report.name); };
    monitor.check(name + ":*", alarms);
    EXPECT_EQ(held_, 0) << "seen for the first time";
    EXPECT_EQ(forever, std::vector{name + ":forever"});
    EXPECT_EQ(near, std::vector{name + ":held"});
    EXPECT_TRUE(eventually([&] { return (monitor.check(name + ":*", alarms), held_ > 0); }));
    near.clear();
    alarms.deadlineWithin = 1s;
    alarms.heldFor = 1h;
    held_ = 0;
    monitor.check(name + ":*", alarms);
    EXPECT_EQ(held_, 0);
    EXPECT_TRUE(near.empty());
    raw.command({"DEL", name + ":forever"});
}

TEST_F(Monitor, SaysWhichRightsAreMissing)
{
    const testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"HSET", "stock:1", javaClient + ":1", "1"});
    admin.command({"HSET", "other:1", javaClient + ":1", "1"});
    admin.command({"ACL", "SETUSER", "watcher", "on", ">pw", "~stock:*", "+ping", "+scan", "+hscan", "+hget", "+pttl"});
    Config config = Config::fromUrl(own.url());
    config.username = "watcher";
    config.password = "pw";
    LockMonitor watcher(config);
    const auto locks = watcher.list();
    ASSERT_EQ(locks.size(), 1U);
    EXPECT_EQ(locks.front().name, "stock:1");
    EXPECT_FALSE(locks.front().waiters);
    auto missing = watcher.missingRights();
    std::sort(missing.begin(), missing.end());
    EXPECT_EQ(missing,
              (std::vector<std::string>{"+client|list", "+dbsize", "+exists", "+llen", "+pubsub|numsub", "~*"}));
    EXPECT_EQ(watcher.forEachPage("oth*", [](const auto&, const auto&) { return true; }).unreadable, 1U);
    EXPECT_EQ(watcher.missingRights().back(), "~oth*");
    try {
        (void)watcher.find("other:1");
        ADD_FAILURE() << "it may not be read";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Cause::keyDenied);
        EXPECT_NE(std::string(error.what()).find("the user lacks ~other:1"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(watcher.find("stock:2")) << "free";
    admin.command({"ACL", "SETUSER", "watcher", "-scan"});
    std::error_code ec;
    EXPECT_TRUE(watcher.list("*", ec).empty());
    EXPECT_EQ(ec, Cause::commandDenied);
}

TEST_F(Monitor, ErrorsAreTold)
{
    std::error_code ec;
    EXPECT_FALSE(monitor.find("", ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    EXPECT_FALSE(monitor.find(std::string(1025, 'x'), ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    EXPECT_THROW(LockMonitor("redis://127.0.0.1:0"), LockError);
    testing::RedisServer own;
    LockMonitor watcher(own.url());
    EXPECT_TRUE(watcher.list().empty());
    own.restart();
    EXPECT_TRUE(watcher.list().empty()) << "connects anew";
    own.stop();
    try {
        (void)watcher.list("stock:*");
        FAIL() << "there is no server";
    } catch (const LockError& error) {
        EXPECT_TRUE(error.code() == Errc::unreachable) << error.what();
        EXPECT_NE(std::string(error.what()).find("list locks \"stock:*\" at " + own.url().substr(8)), std::string::npos)
            << error.what();
    }
}

TEST_F(Monitor, TellsOfTheServer)
{
    const testing::RedisServer own({.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}});
    RawRedis admin(own);
    LockMonitor watcher(own.url());
    const auto report = watcher.server("stock:1");
    const bool isValkey = admin.command({"INFO", "server"}).text().find("valkey_version:") != std::string::npos;
    EXPECT_EQ(report.version,
              isValkey ? "Valkey " + admin.info("valkey_version") : "Redis " + admin.info("redis_version"));
    EXPECT_EQ(report.role, "master");
    EXPECT_EQ(report.evictionPolicy, "allkeys-lru");
    EXPECT_EQ(report.maxMemory, 100U * 1024 * 1024);
    EXPECT_EQ(report.appendsToFile, false);
    EXPECT_EQ(report.isLoading, false);
    EXPECT_EQ(report.replicas, 0U);
    EXPECT_TRUE(report.savesSnapshots.has_value());
    EXPECT_EQ(report.lackingRights, std::vector<std::string>{});
    EXPECT_EQ(admin.command({"DBSIZE"}).integer(), 0) << "nothing is written";
    admin.command({"ACL", "SETUSER", "poor", "on", ">pw", "~stock:*", "resetchannels", "+@all", "-hset", "-config"});
    Config config = Config::fromUrl(own.url());
    config.username = "poor";
    config.password = "pw";
    const auto poor = LockMonitor(config).server("stock:1");
    EXPECT_FALSE(poor.savesSnapshots);
    EXPECT_EQ(poor.lackingRights, (std::vector<std::string>{"+hset", "&redisson_lock__channel:{stock:1}",
                                                            "~redisson_lock_token:{stock:1}"}));
    EXPECT_EQ(admin.command({"DBSIZE"}).integer(), 0) << "nothing is written";
}

TEST_F(Monitor, TellsNothingThatTheServerDidNotTell)
{
    const testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"ACL", "SETUSER", "poor", "on", ">pw"});
    Config config = Config::fromUrl(own.url());
    config.username = "poor";
    config.password = "pw";
    LockMonitor watcher(config);
    const auto report = watcher.server("stock:1");
    EXPECT_EQ(report.version, "");
    EXPECT_FALSE(report.replicas || report.maxMemory || report.usedMemory || report.isLoading || report.appendsToFile ||
                 report.savesSnapshots || report.appendSync);
    ASSERT_TRUE(report.lackingRights);
    for (const std::string right : {"+evalsha", "+eval", "+publish", "+subscribe", "+hget"}) {
        EXPECT_NE(std::find(report.lackingRights->begin(), report.lackingRights->end(), right),
                  report.lackingRights->end())
            << right;
    }
    admin.command({"ACL", "SETUSER", "poor", "~*", "&*", "+@all", "-discard", "-unsubscribe"});
    EXPECT_EQ(watcher.server("stock:1").lackingRights, std::vector<std::string>{"+unsubscribe"});
    admin.command({"ACL", "SETUSER", "poor", "+unsubscribe"});
    EXPECT_FALSE(watcher.server("stock:1").lackingRights) << "those for writing are not known";
    admin.command({"ACL", "SETUSER", "poor", "+discard"});
    EXPECT_EQ(watcher.server("stock:1").lackingRights, std::vector<std::string>{});
    EXPECT_EQ(admin.command({"DBSIZE"}).integer(), 0) << "nothing is written";
}

TEST_F(Monitor, ALockExplainsWhoHasIt)
{
    const Client other(config());
    const auto theirs = other.getLock(name);
    const auto mine = client.getLock(name);
    EXPECT_FALSE(mine.explain()) << "free";
    const LockGuard held(theirs, Lease(20s));
    ASSERT_FALSE(mine.tryLock());
    const auto report = mine.explain();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, ObjectKind::redisLock);
    ASSERT_EQ(report->holders.size(), 1U);
    EXPECT_EQ(report->holders.front().clientId, other.id());
    EXPECT_EQ(report->holders.front().host, "") << "another client's";
    EXPECT_LE(*report->timeLeft, 20s);
    EXPECT_EQ(report->waiters, 0U);
    const auto own = theirs.explain();
    ASSERT_TRUE(own);
    EXPECT_EQ(own->holders.front().host, thisHost());
    EXPECT_EQ(own->holders.front().process, static_cast<std::uint64_t>(::getpid()));
}

TEST_F(Monitor, ALockExplainsThoughAnAnswerIsLost)
{
    const auto theirs = client.getLock(name);
    const LockGuard held(theirs, Lease(60s));
    for (const std::string command : {"HLEN", "EXISTS", "LLEN", "PUBSUB NUMSUB", "HSCAN", "HGET", "PTTL"}) {
        FaultProxy proxy(server());
        Config config = LockTest::config();
        config.endpoint = {"127.0.0.1", proxy.port(), {}};
        const Client far(config);
        far.connect();
        const auto id = proxy.add({.command = command, .direction = Direction::reply}, Action::cut());
        std::error_code ec;
        const auto report = far.getLock(name).explain(ec);
        EXPECT_EQ(proxy.hits(id), 1U) << command;
        EXPECT_FALSE(ec) << command << ": " << ec.message();
        ASSERT_TRUE(report) << command;
        EXPECT_EQ(report->holders.front().clientId, client.id()) << command;
        EXPECT_TRUE(report->timeLeft) << command;
        EXPECT_EQ(report->waiters, 0U) << command;
    }
}

TEST_F(Monitor, ALockExplainsAsFarAsItMay)
{
    testing::RedisServer own;
    RawRedis admin(own);
    admin.command({"HSET", "stock:1", javaClient + ":1", "1"});
    admin.command({"ACL", "SETUSER", "poor", "on", ">pw", "~stock:*", "+ping", "+hlen", "+hscan", "+hget", "+pttl"});
    Config config = Config::fromUrl(own.url());
    config.username = "poor";
    config.password = "pw";
    const Client poor(config);
    const auto report = poor.getLock("stock:1").explain();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->holders.front().clientId, javaClient);
    EXPECT_FALSE(report->waiters);
    EXPECT_FALSE(report->timeLeft) << "without time to live";
    for (const std::string right : {"hlen", "hscan", "hget", "pttl"}) {
        admin.command({"ACL", "SETUSER", "poor", "-" + right});
        std::error_code ec;
        EXPECT_FALSE(poor.getLock("stock:1").explain(ec)) << right;
        EXPECT_EQ(ec, Cause::commandDenied) << right;
        admin.command({"ACL", "SETUSER", "poor", "+" + right});
    }
    std::error_code ec;
    EXPECT_FALSE(poor.getLock("other:1").explain(ec)) << "a key that may not be read";
    EXPECT_EQ(ec, Cause::keyDenied);
    own.stop();
    Config gone = config;
    gone.unreachableAfter = 100ms;
    const Client late(gone);
    EXPECT_THROW((void)late.getLock("stock:1").explain(), LockError);
}

} // namespace
} // namespace redislock::test
