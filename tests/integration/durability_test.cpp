// Grants that replicas must have: real replicas, which stop, end, and take the master's place.
#include "behaviour/lock_test.hpp"
#include "redislock/redislock.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"

#include <boost/asio/use_future.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using DurableLocking = std::function<bool(const Client&, const std::string& name, Durability, LockGuard&)>;

/// A way to get a lock, whose hold ends with the client.
struct DurableWay {
    std::string name;
    DurableLocking locks;
};

bool isGranted(const Lock& lock)
{
    return lock.tryLock(10s, 20s);
}

const std::vector<DurableWay>& durableWays()
{
    static const std::vector<DurableWay> all{
        {"RedisLock", [](const auto& client, const auto& name, auto how,
                         auto& /*guard*/) { return isGranted(client.getLock(name, how)); }},
        {"NonReentrantLock", [](const auto& client, const auto& name, auto how,
                                auto& /*guard*/) { return isGranted(client.getNonReentrantLock(name, how)); }},
        {"SpinLock", [](const auto& client, const auto& name, auto how,
                        auto& /*guard*/) { return isGranted(client.getSpinLock(name, RetryPolicy::fixed(5ms), how)); }},
        {"FairLock", [](const auto& client, const auto& name, auto how,
                        auto& /*guard*/) { return isGranted(client.getFairLock(name, how)); }},
        {"FencedLock", [](const auto& client, const auto& name, auto how,
                          auto& /*guard*/) { return isGranted(client.getFencedLock(name, how)); }},
        {"ReadLock", [](const auto& client, const auto& name, auto how,
                        auto& /*guard*/) { return isGranted(client.getReadWriteLock(name, how).readLock()); }},
        {"WriteLock", [](const auto& client, const auto& name, auto how,
                         auto& /*guard*/) { return isGranted(client.getReadWriteLock(name, how).writeLock()); }},
        {"SegmentedLock", [](const auto& client, const auto& name, auto how,
                             auto& /*guard*/) { return isGranted(client.getSegmentedLock(name, 1, how).segment(0)); }},
        {"guard",
         [](const auto& client, const auto& name, auto how, auto& guard) {
             guard = LockGuard(client.getLock(name, how), 10s, 20s);
             return static_cast<bool>(guard);
         }},
        {"asynchronous",
         [](const auto& client, const auto& name, auto how, auto& guard) {
             guard = client.getLock(name, how).asyncTryLock(10s, 20s, boost::asio::use_future).get();
             return static_cast<bool>(guard);
         }},
    };
    return all;
}

/// A master and two replicas.
class Durable : public ::testing::Test {
protected:
    Durable()
    {
        for (auto& each : replicas) {
            EXPECT_TRUE(eventually([&] { return replicaOf(each); }, 20s));
        }
        config.clientName = "holder";
        config.unreachableAfter = 1500ms; // for how long a lock is tried again
    }
    ~Durable() override
    {
        for (auto& each : replicas) {
            each.thaw();
        }
    }

    static bool replicaOf(const testing::RedisServer& each)
    {
        return RawRedis(each).command({"INFO", "replication"}).text().find("master_link_status:up") !=
               std::string::npos;
    }
    testing::RedisServer replica() const
    {
        return testing::RedisServer({.arguments = {"--replicaof", "127.0.0.1", std::to_string(master.port())}});
    }
    void freeze()
    {
        for (auto& each : replicas) {
            each.freeze();
        }
    }
    /// What a single attempt gives.
    std::error_code failureOf(const Durability& durability, const std::string& name = "lock")
    {
        std::error_code ec;
        EXPECT_FALSE(client().getLock(name, durability).tryLock(0s, 20s, ec));
        return ec;
    }
    bool isFree(const std::string& name = "lock")
    {
        return eventually([&] { return !raw.exists(name); });
    }
    Client& client()
    {
        if (!client_) {
            client_.emplace(config);
        }
        return *client_;
    }

    testing::RedisServer master{{.arguments = {"--repl-diskless-sync-delay", "0"}}};
    std::vector<testing::RedisServer> replicas = [this] {
        std::vector<testing::RedisServer> both;
        both.push_back(replica());
        both.push_back(replica());
        return both;
    }();
    RawRedis raw{master};
    Config config = Config::fromUrl(master.url());

private:
    std::optional<Client> client_;
};

TEST_F(Durable, GrantsOfEveryKindAreToldWhenTheReplicasHaveThem)
{
    freeze();
    client(); // made before the threads
    std::atomic<std::size_t> told{0};
    std::vector<LockGuard> guards(durableWays().size());
    std::vector<std::future<bool>> all;
    for (std::size_t i = 0; i < guards.size(); ++i) {
        all.push_back(std::async(std::launch::async, [&, i] {
            const auto& way = durableWays()[i];
            const bool got = way.locks(client(), way.name, Durability::replicas(2, 10s), guards[i]);
            ++told;
            return got;
        }));
    }
    for (const auto& way : durableWays()) {
        const auto key = way.name == "SegmentedLock" ? way.name + ":0" : way.name;
        EXPECT_TRUE(eventually([&] { return raw.exists(key); })) << key;
    }
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(told, 0U);
    replicas[0].thaw();
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(told, 0U) << "one replica is not two";
    replicas[1].thaw();
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_TRUE(all[i].get()) << durableWays()[i].name;
    }
    master.kill();
    for (const auto& each : replicas) {
        for (const auto& way : durableWays()) {
            const auto key = way.name == "SegmentedLock" ? way.name + ":0" : way.name;
            EXPECT_TRUE(RawRedis(each).exists(key)) << key;
        }
    }
}

TEST_F(Durable, GrantIsGivenBackIfTheReplicasAreTooFew)
{
    EXPECT_EQ(failureOf(Durability::replicas(3, 100ms)), Errc::notDurable) << "there are two";
    try {
        const LockGuard guard(client().getLock("lock", Durability::replicas(3, 100ms)));
        ADD_FAILURE() << "granted";
    } catch (const LockError& error) {
        EXPECT_THAT(error.what(),
                    ::testing::StartsWith("lock \"lock\" (replicas:3 within 100 ms): the lock was granted"));
    }
    EXPECT_TRUE(isFree());
    freeze();
    for (const bool isStopped : {true, false}) { // stopped replicas are connected all the same
        SCOPED_TRACE(isStopped);
        std::atomic<bool> goesOn{true};
        std::atomic<std::size_t> others{0};
        std::thread plain([&] {
            for (; goesOn; ++others) {
                const LockGuard held(client().getLock("plain"));
            }
        });
        const Stopwatch watch;
        EXPECT_EQ(failureOf(Durability::replicas(1, 300ms)), Errc::notDurable);
        EXPECT_GE(watch.elapsed(), 300ms);
        EXPECT_LT(watch.elapsed(), 300ms + soon);
        EXPECT_GT(others, 10U) << "locks without durability are not held up";
        goesOn = false;
        plain.join();
        EXPECT_TRUE(isFree());
        for (auto& each : replicas) {
            each.kill();
        }
    }
    replicas[0].restart();
    std::error_code ec;
    EXPECT_TRUE(client().getLock("lock", Durability::replicas(1)).tryLock(20s, 20s, ec)) << ec.message();
}

TEST_F(Durable, AcquireThatWaitsTriesAgainWithinItsWait)
{
    freeze();
    const auto lock = client().getLock("lock", Durability::replicas(1, 100ms));
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(500ms, 20s, ec));
    EXPECT_EQ(ec, Errc::notDurable);
    EXPECT_TRUE(isFree());
    const Stopwatch watch;
    lock.lock(20s, ec);
    EXPECT_EQ(ec, Errc::notDurable) << "not for ever";
    EXPECT_GE(watch.elapsed(), config.unreachableAfter);
    EXPECT_TRUE(isFree());
    auto waits = std::async(std::launch::async, [&] { return lock.tryLock(20s, 20s); });
    std::this_thread::sleep_for(300ms);
    replicas[1].thaw();
    EXPECT_TRUE(waits.get());
    EXPECT_EQ(raw.hash("lock").size(), 1U);
}

TEST_F(Durable, AcquireIsCalledOffAndEndedWhileReplicasAreAsked)
{
    freeze();
    for (const milliseconds within : {10000ms, 50ms}) { // asking, and between two tries
        std::stop_source stop;
        const auto lock = client().getLock("lock", Durability::replicas(1, within));
        auto waits = std::async(std::launch::async, [&] { return lock.tryLock(waitForever, 20s, stop.get_token()); });
        EXPECT_TRUE(eventually([&] { return raw.exists("lock"); }));
        std::this_thread::sleep_for(60ms);
        stop.request_stop();
        EXPECT_FALSE(waits.get());
        EXPECT_TRUE(isFree());
    }
    std::vector<std::future<void>> waits;
    waits.push_back(
        std::async(std::launch::async, [&] { client().getLock("1", Durability::replicas(1, 10s)).lock(); }));
    waits.push_back(
        std::async(std::launch::async, [&] { client().getLock("2", Durability::replicas(1, 50ms)).lock(); }));
    client().getLock("3", Durability::replicas(1, 10s)).asyncLock([](auto&&...) {});
    EXPECT_TRUE(eventually([&] { return raw.exists("1") && raw.exists("3"); }));
    std::this_thread::sleep_for(60ms);
    EXPECT_TRUE(client().shutdown());
    for (auto& each : waits) {
        EXPECT_THROW(each.get(), LockError);
    }
    for (const auto* name : {"1", "2", "3"}) {
        EXPECT_TRUE(isFree(name));
    }
}

TEST_F(Durable, GrantIsNotToldByAMasterThatLosesItsOffice)
{
    freeze();
    auto waits = std::async(std::launch::async, [&] { return failureOf(Durability::replicas(1, 15s)); });
    EXPECT_TRUE(eventually([&] { return raw.exists("lock"); }));
    std::this_thread::sleep_for(50ms);
    const Stopwatch watch;
    raw.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
    EXPECT_EQ(waits.get(), Errc::notDurable);
    EXPECT_LT(watch.elapsed(), 15s - soon) << "at once, not after its time";
    raw.command({"REPLICAOF", "NO", "ONE"});
    EXPECT_TRUE(isFree());
}

TEST_F(Durable, QuestionThatLosesItsConnectionIsAskedAgain)
{
    FaultProxy proxy(master);
    config.endpoint.port = proxy.port();
    const auto lost = proxy.add({.command = "WAIT", .direction = Direction::reply, .nth = 1}, Action::cut());
    EXPECT_TRUE(client().getLock("lock", Durability::replicas(2, 5s)).tryLock(0s, 20s));
    EXPECT_EQ(proxy.hits(lost), 1U);
    EXPECT_EQ(raw.hash("lock").size(), 1U);
}

TEST_F(Durable, GrantOnDiskIsToldWhenTheFilesHaveIt)
{
    const bool isKnown = !raw.command({"WAITAOF", "0", "0", "0"}).isError(); // Redis 7.2, Valkey
    raw.command({"CONFIG", "SET", "appendonly", "yes"});
    raw.command({"CONFIG", "SET", "appendfsync", "always"});
    if (!isKnown) {
        EXPECT_EQ(failureOf(Durability::disk(0, 5s)), Errc::unsupported);
        EXPECT_TRUE(isFree());
        return;
    }
    EXPECT_TRUE(client().getLock("lock", Durability::disk(0, 5s)).tryLock(0s, 20s));
    EXPECT_EQ(failureOf(Durability::disk(1, 300ms), "other"), Errc::notDurable) << "no replica has a file";
    RawRedis(replicas[0]).command({"CONFIG", "SET", "appendonly", "yes"});
    EXPECT_TRUE(client().getLock("other", Durability::disk(1, 15s)).tryLock(15s, 20s));
    EXPECT_TRUE(client().getLock("third", Durability::replicas(2, 5s)).tryLock(0s, 20s));
}

TEST_F(Durable, QuestionThatIsDeniedOrUnknownIsAnErrorOfItsLocksAlone)
{
    EXPECT_EQ(failureOf(Durability::disk(0)), Errc::unsupported) << "no such command, or no such file";
    EXPECT_TRUE(isFree());
    raw.command({"ACL", "SETUSER", "default", "-wait"});
    EXPECT_EQ(failureOf(Durability::replicas(1)), Cause::commandDenied);
    EXPECT_TRUE(isFree());
    EXPECT_TRUE(client().getLock("lock").tryLock(0s, 20s));
}

TEST_F(Durable, ThatIsOutsideItsRangeIsRefusedBeforeAnythingIsSent)
{
    for (const auto& each : {Durability::replicas(0), Durability::replicas(256), Durability::disk(0, 0ms)}) {
        EXPECT_THROW((void)client().getFairLock("lock", each), LockError);
        EXPECT_THROW((void)client().getReadWriteLock("lock", each), LockError);
    }
    const auto lock = client().getLock("lock", Durability::replicas(1, 2s));
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(0s, 1999ms, ec));
    EXPECT_EQ(ec, Errc::invalidArgument);
    try {
        lock.lock(1s);
        FAIL();
    } catch (const LockError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("(replicas:1 within 2000 ms) may take longer than the lease, "
                                                       "with a lease of 1000 ms"));
    }
    EXPECT_THROW((void)lock.asyncLock(1s, boost::asio::use_future).get(), std::exception);
    EXPECT_EQ(raw.command({"DBSIZE"}).integer(), 0);
}

TEST_F(Durable, LocksThatOthersPassOnOrGrantAreConfirmedToo)
{
    const RedisLock plain = client().getLock("lock");
    const FairLock fair = client().getFairLock("fair");
    plain.lock();
    fair.lock();
    freeze();
    std::atomic<int> told{0};
    std::vector<std::future<void>> waits;
    const auto wait = [&](const Lock& lock) {
        waits.push_back(std::async(std::launch::async, [&told, lock] {
            lock.lock(keepRenewing);
            ++told;
            (void)lock.unlock();
        }));
    };
    wait(client().getLock("lock", Durability::replicas(2, 10s)));
    wait(client().getFairLock("fair", Durability::replicas(2, 10s)));
    std::this_thread::sleep_for(100ms);
    (void)plain.unlock();
    (void)fair.unlock();
    std::this_thread::sleep_for(150ms);
    EXPECT_EQ(told, 0);
    for (auto& each : replicas) {
        each.thaw();
    }
    for (auto& each : waits) {
        each.get();
    }
    EXPECT_TRUE(isFree("lock") && isFree("fair"));
}

TEST_F(Durable, InnerLevelThatAsksForMoreIsConfirmedOnce)
{
    const RedisLock plain = client().getLock("lock");
    const RedisLock durable = client().getLock("lock", Durability::replicas(2, 10s));
    plain.lock();
    freeze();
    std::error_code ec;
    EXPECT_FALSE(client().getLock("lock", Durability::replicas(2, 100ms)).tryLock(0s, 20s, ec));
    EXPECT_EQ(ec, Errc::notDurable);
    EXPECT_EQ(plain.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return raw.hash("lock").begin()->second == "1"; }));
    for (auto& each : replicas) {
        each.thaw();
    }
    durable.lock();
    freeze();
    durable.lock(); // the hold is known to be durable
    EXPECT_EQ(plain.holdCount(), 3U);
    for (int i = 0; i < 3; ++i) {
        (void)plain.unlock();
    }
    EXPECT_TRUE(isFree());
}

} // namespace
} // namespace redislock::test
