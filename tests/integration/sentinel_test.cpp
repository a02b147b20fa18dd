// Locks at a master that Sentinels watch, and fail-overs while they are held and wanted.
#include "behaviour/recording_observer.hpp"
#include "redislock/redislock.hpp"
#include "support/deployments.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <boost/asio/use_future.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Time = std::chrono::system_clock::time_point;
using ::testing::HasSubstr;

/// What takes a moment, on a busy machine.
constexpr milliseconds aMoment{3000};

milliseconds span(Time from, Time to)
{
    return std::chrono::duration_cast<milliseconds>(to - from);
}

/// When a server ran the command in a line of MONITOR, `1795273334.441061 [0 127.0.0.1:6000] "evalsha" ...`, if that is
/// a script with this in it, and by a client.
std::optional<Time> whenRun(const Feed::Item& line, std::string_view what)
{
    const std::string& text = line.text;
    const bool isScript = text.find("] \"EVALSHA\"") != text.npos || text.find("] \"EVAL\"") != text.npos;
    if (!isScript || text.find(what) == text.npos) {
        return std::nullopt;
    }
    return Time(std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(std::stod(text))));
}

/// Locks and unlocks all the time, each time a lock of another name: what the old master has acknowledged last may be
/// held at the new one until its lease is over.
class Loop {
public:
    explicit Loop(const Config& config) : client_(config), thread_([this](const std::stop_token& end) { run(end); }) {}

    [[nodiscard]] bool goesOn() const
    {
        return eventually([this, before = count_.load()] { return count_ > before + 10; });
    }
    /// Ends it. @return the longest time between two successes
    milliseconds end()
    {
        thread_.request_stop();
        thread_.join();
        EXPECT_EQ(error_, "");
        return longest_;
    }

private:
    void run(const std::stop_token& end)
    try {
        for (Stopwatch last; !end.stop_requested(); ++count_, last.restart()) {
            const auto lock = client_.getLock(client_.id() + ":" + std::to_string(count_));
            lock.lock();
            (void)lock.unlock();
            longest_ = std::max(longest_, last.elapsedMs());
        }
    } catch (const std::exception& e) {
        error_ = e.what();
    }

    Client client_;
    std::atomic<std::size_t> count_{0};
    milliseconds longest_{0};
    std::string error_;
    std::jthread thread_;
};

class Sentinels : public ::testing::Test {
protected:
    static void SetUpTestSuite()
    {
        const Stopwatch watch;
        deployment_ = std::make_unique<SentinelDeployment>();
        std::cout << "the deployment took " << watch.elapsedMs().count() << " ms\n";
    }
    static void TearDownTestSuite() { deployment_.reset(); }
    static SentinelDeployment& deployment() { return *deployment_; }

    Sentinels() : master(deployment().heal()) {}

    [[nodiscard]] testing::RedisServer& server() const { return deployment().servers.at(master); }
    [[nodiscard]] RawRedis raw() const { return RawRedis(server()); }
    Config config(const std::string& url = deployment().url())
    {
        Config made = Config::fromUrl(url);
        made.clientName = "ours";
        made.naming = Naming::asGiven;
        made.observer = observer;
        return made;
    }
    static std::string addressOf(const testing::RedisServer& of) { return "127.0.0.1:" + std::to_string(of.port()); }
    /// Expects a client to be refused at once.
    static void expectRefused(const Config& config, std::error_code why, std::string_view words)
    {
        const Stopwatch watch;
        try {
            Client(config).connect();
            ADD_FAILURE() << "connected";
        } catch (const LockError& e) {
            EXPECT_EQ(e.code(), why) << e.what();
            EXPECT_THAT(e.what(), HasSubstr(words));
        }
        std::error_code ec;
        (void)Client(config).getLock("stock").tryLock(ec);
        EXPECT_EQ(ec, why);
        EXPECT_LT(watch.elapsed(), aMoment);
    }
    void expectUsable(const Config& config)
    {
        const Stopwatch watch;
        const Client client(config);
        const auto lock = client.getLock("usable");
        lock.lock(20s);
        EXPECT_LT(watch.elapsed(), aMoment);
        EXPECT_TRUE(raw().exists("usable"));
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_FALSE(raw().exists("usable"));
    }

    const std::size_t master;
    const std::string others = deployment().url().substr(std::string_view("redis-sentinel://").size());
    const std::shared_ptr<RecordingObserver> observer = std::make_shared<RecordingObserver>();

private:
    static inline std::unique_ptr<SentinelDeployment> deployment_;
};

TEST_F(Sentinels, LeadEveryKindOfCallToTheMaster)
{
    const Client client(config());
    client.connect();
    const auto lock = client.getLock("stock");
    EXPECT_TRUE(lock.tryLock());
    EXPECT_TRUE(raw().exists("stock"));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    {
        const LockGuard held(lock, 1s, 20s);
        EXPECT_TRUE(held);
        EXPECT_TRUE(Client(config()).getLock("stock").isLocked());
    }
    auto guard = lock.asyncLock(boost::asio::use_future).get();
    EXPECT_TRUE(raw().exists("stock"));
    EXPECT_EQ(guard.release(), Unlocked::released);
}

TEST_F(Sentinels, AreUsedWithoutTheFirstOneAndFoundByOne)
{
    expectUsable(config("redis-sentinel://127.0.0.1:1," + others));
    auto& first = deployment().sentinels[0].server();
    first.freeze();
    expectUsable(config());
    first.thaw();
    const Client client(config("redis-sentinel://" + addressOf(first) + "/main"));
    client.connect();
    RawRedis last(deployment().sentinels[2].server());
    EXPECT_TRUE(eventually([&] {
        return last.command({"CLIENT", "LIST"}).text().find("name=ours") != std::string::npos;
    }));
}

TEST_F(Sentinels, TellWhatIsWrongAtOnce)
{
    const auto& any = deployment().sentinels[0].server();
    expectRefused(config("redis-sentinel://" + addressOf(any) + "/other"), Cause::unknownMaster, "other");
    expectRefused(config("redis-sentinel://" + addressOf(server()) + "/main"), Cause::notSentinel, addressOf(server()));
    for (auto& each : deployment().sentinels) {
        RawRedis(each.server())
            .command({"ACL", "SETUSER", "watcher", "reset", "on", ">secret", "allchannels", "+ping", "+subscribe",
                      "+sentinel|get-master-addr-by-name", "+sentinel|sentinels"}); // as the documents say
    }
    const auto url = deployment().url() + "?sentinel_username=watcher&sentinel_password=";
    expectUsable(config(url + "secret"));
    expectRefused(config(url + "hunter2"), Cause::wrongPassword, "password");
    expectRefused(config("redis-sentinel://127.0.0.1:1,127.0.0.1:2/main"), Cause::noSentinel, "127.0.0.1:1");
}

TEST_F(Sentinels, AnnounceAddressesThatAreMapped)
{
    FaultProxy proxy(server());
    Config mapping = config();
    mapping.addressMap = [to = proxy.port(), from = server().port()](const Endpoint& announced) {
        Endpoint at = announced;
        at.port = announced.port == from ? to : announced.port;
        return at;
    };
    expectUsable(mapping);
    EXPECT_GT(proxy.accepted(), 0U);

    mapping.addressMap = [from = server().port()](const Endpoint& announced) -> Endpoint {
        return announced.port == from ? throw std::runtime_error("not in the table") : announced;
    };
    expectRefused(mapping, Cause::addressNotMapped, "not in the table");
}

TEST_F(Sentinels, AreBelievedByTheirNumber)
{
    testing::RedisServer elsewhere;
    Sentinel liar(elsewhere.port());
    const Config misled = config("redis-sentinel://" + addressOf(liar.server()) + "," + others);
    for (int round = 0; round < 5; ++round) {
        expectUsable(misled);
    }
    const Client client(misled);
    const auto lock = client.getLock("stock");
    lock.lock();
    RawRedis asked(liar.server());
    ASSERT_THAT(asked.command({"CLIENT", "LIST"}).text(), HasSubstr("name=ours")) << "it was asked";
    std::this_thread::sleep_for(1500ms); // one of them is asked each second
    EXPECT_EQ(RawRedis(elsewhere).command({"DBSIZE"}).integer(), 0);
    EXPECT_EQ(RawRedis(elsewhere).commandCalls("evalsha"), 0U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(observer->count("lost"), 0U);
}

TEST_F(Sentinels, LoseNoLockOfWhichTheReplicasWereAsked)
{
    Config durable = config();
    durable.durability = Durability::replicas(2);
    const Client client(durable);
    std::mutex mutex;
    std::vector<RedisLock> told;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread](const std::stop_token& end) {
            std::error_code ec;
            for (int i = 0; !ec && !end.stop_requested(); ++i) {
                const auto lock = client.getLock(client.id() + std::to_string(thread) + ":" + std::to_string(i));
                if (lock.tryLock(0s, 60s, ec)) {
                    const std::lock_guard inside(mutex);
                    told.push_back(lock);
                }
            }
        });
    }
    EXPECT_TRUE(eventually([&] {
        const std::lock_guard inside(mutex);
        return told.size() > 200;
    }));
    server().kill(); // while some are granted, and not told yet
    threads.clear();
    std::size_t next = master;
    EXPECT_TRUE(eventually([&] { return (next = deployment().master()) != master; }));
    for (const auto& each : told) {
        EXPECT_TRUE(RawRedis(deployment().servers[next]).exists(each.name()));
    }
    EXPECT_TRUE(client.getLock(told[0].name()).isLocked()) << "connected again";
    std::this_thread::sleep_for(1s); // all holds are confirmed meanwhile
    EXPECT_EQ(observer->count("lost"), 0U);
}

/// A client that holds a renewed and a fixed lock, another one that locks all the time, and what the servers and the
/// Sentinels say meanwhile.
class FailOver : public Sentinels {
protected:
    FailOver()
    {
        for (auto& each : deployment().sentinels) {
            switches.push_back(
                std::make_unique<Feed>(each.server(), RawRedis::Arguments{"SUBSCRIBE", "+switch-master"}));
        }
        for (auto& each : deployment().servers) {
            commands.push_back(std::make_unique<Feed>(each, RawRedis::Arguments{"MONITOR"}));
        }
        for (const auto& [name, lease] : {std::pair("renewed", Lease(keepRenewing)), std::pair("fixed", Lease(60s))}) {
            held.push_back(holder.getLock(name + std::to_string(server().pid())));
            held.back().lock(lease);
        }
        EXPECT_TRUE(observer->await("renewed")) << "its connections are there";
        loop.emplace(config());
        EXPECT_TRUE(loop->goesOn());
    }

    /// Waits until a Sentinel has told who the new master is. @return when the first one did
    Time awaitSwitch()
    {
        Time first = Time::max();
        const bool isTold = eventually([&] {
            for (const auto& each : switches) {
                const auto items = each->items();
                first = items.empty() ? first : std::min(first, items.front().at);
            }
            return first != Time::max();
        });
        EXPECT_TRUE(isTold);
        next = deployment().master();
        EXPECT_NE(next, master);
        return first;
    }
    /// The last script that a server ran for us, if it has this in it.
    [[nodiscard]] Time lastAt(std::size_t which, std::string_view what = {}) const
    {
        Time last = Time::min();
        for (const auto& each : commands[which]->items()) {
            last = std::max(last, whenRun(each, what).value_or(last));
        }
        return last;
    }
    /// When the new master was first asked for a lock; max(): not yet.
    [[nodiscard]] Time whenAsked(const RedisLock& lock, Time told) const
    {
        for (const auto& each : commands[next]->items()) {
            if (const auto at = whenRun(each, lock.name());
                at && *at > told - 100ms) { // what is replicated came before
                return *at;
            }
        }
        return Time::max();
    }
    void releaseHeld()
    {
        EXPECT_EQ(observer->count("lost"), 0U);
        for (const auto& each : held) {
            EXPECT_TRUE(each.isHeldByCurrentThread());
            EXPECT_EQ(each.unlock(), Unlocked::released);
        }
    }

    std::vector<std::unique_ptr<Feed>> switches;
    std::vector<std::unique_ptr<Feed>> commands;
    Client holder{config()};
    std::vector<RedisLock> held;
    std::optional<Loop> loop;
    std::size_t next = 0;
};

TEST_F(FailOver, AfterACrashIsFollowed)
{
    server().kill();
    const Stopwatch watch;
    const Time told = awaitSwitch();
    const auto named = watch.elapsedMs();
    EXPECT_TRUE(loop->goesOn());
    EXPECT_TRUE(eventually([&] { return whenAsked(held[1], told) != Time::max(); }));
    const auto gap = loop->end();
    std::cout << "crash: named after " << named.count() << " ms, gap " << gap.count() << " ms\n";
    EXPECT_LT(gap, named + aMoment);
    releaseHeld();
}

TEST_F(FailOver, ByCommandLeavesTheOldMasterAlone)
{
    deployment().failOver();
    const Time told = awaitSwitch();
    EXPECT_TRUE(loop->goesOn());
    EXPECT_TRUE(eventually([&] { return whenAsked(held[1], told) != Time::max(); }));
    EXPECT_EQ(raw().command({"SET", "witness", "1"}).text(), "OK") << "the old master takes writes";
    std::this_thread::sleep_for(1s);
    const auto gap = loop->end();
    const auto late = span(told, lastAt(master));
    const auto confirmed = span(told, whenAsked(held[1], told));
    std::cout << "fail-over: last command at the old master " << late.count() << " ms after +switch-master, held lock "
              << "confirmed after " << confirmed.count() << " ms, gap " << gap.count() << " ms\n";
    EXPECT_LT(late, 1s);
    EXPECT_LT(confirmed, aMoment);
    EXPECT_LT(gap, 2 * aMoment);
    releaseHeld();
}

TEST_F(FailOver, ToAReplicaWithoutTheLockIsALossAtOnce)
{
    std::vector<std::stop_token> tokens;
    for (const auto& each : held) {
        tokens.push_back(each.stopToken());
    }
    for (auto& each : deployment().servers) {
        if (&each != &server()) {
            RawRedis replica(each);
            EXPECT_EQ(replica.command({"CONFIG", "SET", "replica-read-only", "no"}).text(), "OK");
            EXPECT_EQ(replica.command({"DEL", held[0].name(), held[1].name()}).integer(), 2);
        }
    }
    deployment().failOver();
    const Time told = awaitSwitch();
    EXPECT_TRUE(eventually([&] { return tokens[0].stop_requested() && tokens[1].stop_requested(); }));
    const auto late = span(told, Time::clock::now());
    std::cout << "loss told " << late.count() << " ms after +switch-master\n";
    EXPECT_LT(late, aMoment);
    RawRedis newMaster(deployment().servers[next]);
    for (const auto& each : held) {
        EXPECT_FALSE(newMaster.exists(each.name()));
        EXPECT_FALSE(each.isHeldByCurrentThread());
        EXPECT_EQ(observer->of("lost", each.name()).at(0).reason, LossReason::gone);
    }
    for (auto& each : deployment().servers) {
        RawRedis(each).command({"CONFIG", "SET", "replica-read-only", "yes"});
    }
    EXPECT_TRUE(loop->goesOn());
    loop->end();
}

TEST_F(FailOver, FromAServerThatStandsStillNeverLeadsBack)
{
    server().freeze();
    awaitSwitch();
    EXPECT_TRUE(loop->goesOn());
    server().thaw();
    const Time thawed = Time::clock::now();
    EXPECT_EQ(raw().command({"SET", "witness", "1"}).text(), "OK") << "it takes writes";
    std::this_thread::sleep_for(1500ms);
    EXPECT_THAT(raw().command({"CLIENT", "LIST"}).text(), ::testing::Not(HasSubstr("name=ours")));
    const auto gap = loop->end();
    const auto late = span(thawed, lastAt(master));
    std::cout << "standstill: last command at the old master " << late.count() << " ms after it went on, gap "
              << gap.count() << " ms\n";
    EXPECT_LT(late, 500ms) << "what lay in its buffers comes first";
    EXPECT_LT(gap, 3 * aMoment);
    releaseHeld();
}

} // namespace
} // namespace redislock::test
