// Passwords that change and tokens that end, under locks that are held, renewed and waited for.
#include "behaviour/recording_observer.hpp"
#include "redislock/redislock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using Wall = std::chrono::system_clock;

/// A function for Config::credentials that can be exchanged, and may outlive its test.
class Vault {
public:
    void set(CredentialsProvider function)
    {
        const std::lock_guard lock(mutex_);
        function_ = std::move(function);
    }
    void give(std::string password)
    {
        set([password = std::move(password)](const Endpoint&) { return Credentials{"", password}; });
    }
    Credentials ask(const Endpoint& endpoint)
    {
        ++calls;
        std::unique_lock lock(mutex_);
        const auto function = function_;
        lock.unlock();
        return function(endpoint);
    }

    std::atomic<int> calls{0};

private:
    std::mutex mutex_;
    CredentialsProvider function_;
};

/// A server with a password, and a client's settings that ask the vault for it.
class RotatedCredentials : public ::testing::Test {
protected:
    RotatedCredentials()
    {
        config.endpoint = {proxy.host(), proxy.port(), {}};
        config.credentials = [vault = vault](const Endpoint& endpoint) { return vault->ask(endpoint); };
        config.watchdogTimeout = 3s;
        config.pollInterval = 60s;
        config.observer = seen;
        vault->give(first);
    }

    /// Each call gives the user another token, which is valid for two seconds; only the last eight are taken.
    void giveTokens()
    {
        vault->set([port = server.port(), number = std::make_shared<std::atomic<int>>(0)](const Endpoint&) {
            const int last = ++*number;
            const auto token = [](int i) { return "token-number-" + std::to_string(i); };
            RawRedis admin("127.0.0.1", port, first);
            admin.command({"ACL", "SETUSER", "app", "on", ">" + token(last), "~*", "&*", "+@all"});
            if (last > 8) {
                admin.command({"ACL", "SETUSER", "app", "<" + token(last - 8)});
            }
            return Credentials{"app", token(last), Wall::now() + 2s};
        });
    }

    /// The server's ids of the client's connections.
    std::set<std::string> connections(const Client& client)
    {
        std::set<std::string> ids;
        std::istringstream list(redis.command({"CLIENT", "LIST"}).text());
        for (std::string line; std::getline(list, line);) {
            if (line.find(":" + client.id() + ":") != std::string::npos) {
                ids.insert(line.substr(3, line.find(' ') - 3)); // "id=7 addr=..."
            }
        }
        return ids;
    }

    /// How often the observer was told that a connection has ended, or a hold.
    [[nodiscard]] std::size_t ends() const
    {
        const auto all = seen->all();
        return static_cast<std::size_t>(std::ranges::count_if(
            all, [](const Told& told) { return told.what == "lost" || told.what.starts_with("disconnected"); }));
    }

    static std::string messageOf(const std::function<void()>& call, Errc expected)
    {
        try {
            call();
        } catch (const LockError& e) {
            EXPECT_EQ(e.code(), expected) << e.what();
            return e.what();
        }
        ADD_FAILURE() << "it succeeded";
        return {};
    }

    static constexpr const char* first = "first-password";
    const std::shared_ptr<Vault> vault = std::make_shared<Vault>();
    const std::shared_ptr<RecordingObserver> seen = std::make_shared<RecordingObserver>();
    testing::RedisServer server{{.password = first}};
    FaultProxy proxy{server};
    RawRedis redis{server};
    Config config;
};

TEST_F(RotatedCredentials, DoNotEndAHoldThatIsRenewed)
{
    const Client client(config);
    const RedisLock lock = client.getLock("held");
    lock.lock();
    ASSERT_TRUE(eventually([&] { return seen->count("renewed") > 0; }));
    redis.command({"CONFIG", "SET", "requirepass", "second-password"});
    for (const auto& id : connections(client)) {
        redis.command({"CLIENT", "KILL", "ID", id});
    }
    EXPECT_TRUE(eventually([&] { return !redis.command({"ACL", "LOG"}).elements.empty(); })) << "the old one is tried";
    std::error_code ec;
    EXPECT_FALSE(client.getLock("other").tryLock(100ms, 1s, ec)) << "an outage";
    EXPECT_TRUE(ec == Errc::unreachable || ec == Errc::authFailed) << ec.message();
    vault->give("second-password");
    const auto renewals = seen->count("renewed");
    EXPECT_TRUE(eventually([&] { return seen->count("renewed") > renewals; }));
    EXPECT_EQ(seen->count("lost"), 0U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(RotatedCredentials, ThatAreMissingFailTheAttemptInTimeAndSayWhy)
{
    const auto gate = std::make_shared<std::promise<void>>();
    const struct {
        CredentialsProvider function;
        const char* words;
        std::chrono::milliseconds least;
    } cases[] = {
        {[](const Endpoint&) -> Credentials { throw std::runtime_error("the vault is sealed"); }, "the vault is sealed",
         0ms},
        {[](const Endpoint&) {
             return Credentials{"app", ""};
         },
         "an empty password", 0ms},
        {[](const Endpoint&) {
             return Credentials{"app", first, Wall::now() - 1s};
         },
         "have expired", 0ms},
        {[gate, waits = gate->get_future().share()](const Endpoint&) { return waits.wait(), Credentials{}; },
         "no answer in 300 ms", 300ms},
    };
    config.credentialsTimeout = 300ms;
    const auto before = redis.info("total_connections_received");
    for (const auto& [function, words, least] : cases) {
        vault->set(function);
        const Client client(config);
        const Stopwatch watch;
        EXPECT_THAT(messageOf([&] { client.getLock("a").lock(); }, Errc::authFailed), HasSubstr(words));
        EXPECT_GE(watch.elapsedMs(), least);
        EXPECT_LT(watch.elapsedMs(), least + 2s);
        std::error_code ec;
        client.connect(ec);
        EXPECT_EQ(ec, make_error_code(Cause::credentialsMissing)) << words;
        LockMonitor monitor(config);
        EXPECT_THAT(messageOf([&] { (void)monitor.find("a"); }, Errc::authFailed), HasSubstr(words));
    }
    EXPECT_EQ(redis.info("total_connections_received"), before) << "nothing is sent";
    vault->give(first);
    gate->set_value();
    LockMonitor monitor(config);
    EXPECT_NO_THROW((void)monitor.find("a"));
    vault->give("wrong");
    EXPECT_THAT(messageOf([&] { Client(config).connect(); }, Errc::authFailed), HasSubstr("WRONGPASS"));
}

TEST_F(RotatedCredentials, ThatNeverComeDelayNeitherRenewalsNorTheEnd)
{
    config.watchdogTimeout = 900ms;
    giveTokens();
    Client client(config);
    const RedisLock lock = client.getLock("held");
    lock.lock();
    ASSERT_TRUE(eventually([&] { return seen->count("renewed") > 0; }));
    const auto before = connections(client);
    const auto gate = std::make_shared<std::promise<void>>();
    const auto hung = std::make_shared<std::atomic<int>>(0);
    vault->set([hung, gate, waits = gate->get_future().share()](const Endpoint&) {
        ++*hung;
        return waits.wait(), Credentials{};
    });
    ASSERT_TRUE(eventually([&] { return *hung > 0; }));
    const auto renewals = seen->count("renewed");
    EXPECT_TRUE(eventually([&] { return seen->count("renewed") >= renewals + 5; }));
    const RedisLock other = client.getLock("other");
    EXPECT_TRUE(other.tryLock(0ms, 1s));
    EXPECT_EQ(other.unlock(), Unlocked::released);
    EXPECT_EQ(connections(client), before) << "they stay in use";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(ends(), 0U);
    const Stopwatch watch;
    EXPECT_TRUE(client.shutdown());
    EXPECT_LT(watch.elapsedMs(), 1s);
    gate->set_value();
}

TEST_F(RotatedCredentials, AreReplacedUnderCallsOfWhichNoneFails)
{
    config.watchdogTimeout = 1s;
    giveTokens();
    const Client client(config);
    const Client second(config);
    const RedisLock held = client.getLock("held");
    held.lock();
    std::set<std::string> ids;
    std::atomic<bool> over{false};
    std::atomic<int> rounds{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) { // locks of their own, nested: an answer to another request would show
        threads.emplace_back([&, own = client.getLock("own:" + std::to_string(i))] {
            for (; !over; ++rounds) {
                own.lock();
                own.lock();
                EXPECT_EQ(own.unlock(), Unlocked::stillHeld);
                EXPECT_EQ(own.unlock(), Unlocked::released);
            }
        });
    }
    for (const Client* each : {&client, &second}) { // a lock that goes to and fro by messages
        threads.emplace_back([&, shared = each->getFairLock("shared")] {
            for (; !over; ++rounds) {
                EXPECT_TRUE(shared.tryLock(10s, 10s));
                std::this_thread::sleep_for(1ms);
                EXPECT_EQ(shared.unlock(), Unlocked::released);
            }
        });
    }
    threads.emplace_back([&, asked = client.getLock("asked")] {
        for (; !over; ++rounds) {
            EXPECT_TRUE(asked.asyncTryLock(boost::asio::use_future).get());
        }
    });
    for (const Stopwatch watch; watch.elapsed() < 6s; std::this_thread::sleep_for(100ms)) {
        ids.merge(connections(client));
    }
    over = true;
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_GT(rounds, 100);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_GE(ids.size(), 9U) << "each of the three was replaced twice at least";
    EXPECT_LE(connections(client).size(), 3U);
    EXPECT_EQ(ends(), 0U);
    EXPECT_TRUE(redis.command({"ACL", "LOG"}).elements.empty()) << "each was valid";
}

TEST_F(RotatedCredentials, ThatAreNotAnsweredMisleadNobody)
{
    config.connectTimeout = 300ms;
    giveTokens();
    const Client client(config);
    const RedisLock lock = client.getLock("a");
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    const auto before = connections(client);
    const auto silent = proxy.add({.command = "AUTH", .nth = 0}, Action::drop());
    while (proxy.hits(silent) < 2) {
        lock.lock();
        lock.lock();
        EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        std::this_thread::sleep_for(1ms);
    }
    const auto now = connections(client);
    EXPECT_TRUE(std::ranges::includes(now, before)) << "the old ones stay in use";
    EXPECT_EQ(ends(), 0U);
    proxy.clear();
    EXPECT_TRUE(eventually([&] {
        const auto after = connections(client);
        return !after.empty() && std::ranges::none_of(before, [&](const auto& id) { return after.contains(id); });
    }));
    lock.lock();
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(ends(), 0U);
}

TEST_F(RotatedCredentials, AreInNoMessage)
{
    config.unreachableAfter = 500ms;
    const Client client(config);
    client.connect();
    vault->set([](const Endpoint&) -> Credentials { throw std::runtime_error("first-password is refused"); });
    for (const auto& id : connections(client)) {
        redis.command({"CLIENT", "KILL", "ID", id});
    }
    const auto message = messageOf([&] { client.getLock("a").lock(); }, Errc::authFailed);
    EXPECT_THAT(message, Not(HasSubstr("first")));
    EXPECT_GT(ends(), 0U);
    for (const Told& told : seen->all()) {
        EXPECT_THAT(told.why, Not(HasSubstr("first")));
    }
}

} // namespace
} // namespace redislock::test
