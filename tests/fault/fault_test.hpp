/// @file
/// The common parts of the fault tests: a server, a proxy in front of it that causes faults, and a client behind the
/// proxy that must cope with them.
#pragma once

#include "fault/recorder.hpp"
#include "redislock/redislock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/frozen_thread.hpp"
#include "support/raw_redis.hpp"
#include "support/sanitizers.hpp"
#include "wire/key_schema.hpp"
#include "wire/script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redislock {

/// Used in the messages of failed tests.
inline void PrintTo(Unlocked how, std::ostream* out)
{
    constexpr const char* names[] = {"released", "stillHeld", "alreadyLost", "unconfirmed", "passedOn"};
    *out << names[static_cast<std::size_t>(how)];
}

} // namespace redislock

namespace redislock::test {

using namespace std::chrono_literals;
using detail::Script;
using detail::scripts::redisLockLock;
using detail::scripts::redisLockPttl;
using detail::scripts::redisLockRenew;
using detail::scripts::redisLockUnlock;

/// How late an event may be on a busy machine, under a sanitizer.
inline constexpr std::chrono::milliseconds slack{2000};

/// Whether there is a sanitizer, which makes everything several times slower, and forbids some things in a forked
/// child.
#if defined(REDISLOCK_THREAD_SANITIZER) || defined(REDISLOCK_ADDRESS_SANITIZER)
inline constexpr bool isSanitized = true;
#else
inline constexpr bool isSanitized = false;
#endif

/// A subscription to any channel.
inline const Match subscription{.command = "SUBSCRIBE"};

/// A request that runs a script by its SHA1.
inline Match request(const Script& script, std::size_t nth = 1)
{
    return {.command = "EVALSHA", .script = std::string(script.sha1), .direction = Direction::request, .nth = nth};
}

/// The reply to such a request.
inline Match reply(const Script& script, std::size_t nth = 1)
{
    return {.command = "EVALSHA", .script = std::string(script.sha1), .direction = Direction::reply, .nth = nth};
}

/// A way to lose a request or a reply, with a name for messages.
struct Loss {
    const char* how;
    Action action;
};

/// Ways in which a request is executed and its reply is lost.
inline std::vector<Loss> lostReplies()
{
    return {{"reply lost with the connection", Action::cutAfterForward()},
            {"reply lost, the connection stays", Action::swallow()}};
}

/// Ways in which a request never arrives.
inline std::vector<Loss> lostRequests()
{
    return {{"request lost with the connection", Action::cut()},
            {"request lost, the connection stays", Action::drop()},
            {"half a request, then the end", Action::truncate(30)}};
}

/// A real server, a proxy in front of it, a client behind the proxy, and a plain connection to the server that shows
/// the truth.
///
/// After each test: every fault that was injected must have hit, and there must have been one; with the faults gone,
/// the same client must take and free the same lock; no key may be left, or be without a time to live.
class FaultTest : public ::testing::Test {
protected:
    explicit FaultTest(testing::RedisServerOptions options = {}) : server(std::move(options))
    {
        config.password = server.password();
        config.endpoint.host = proxy.host();
        config.endpoint.port = proxy.port();
        config.connectTimeout = 1s;
        config.commandTimeout = 300ms;
        config.unreachableAfter = 3s;
        config.watchdogTimeout = 1500ms;
        config.pollInterval = 20s; // so that a waiter that gets no message fails its test
        config.observer = seen;
        loadScripts();
    }

    void TearDown() override
    {
        for (const auto id : faults_) {
            EXPECT_GT(proxy.hits(id), 0U) << "fault " << static_cast<std::uint64_t>(id) << " never hit";
        }
        EXPECT_TRUE(proven_ || !faults_.empty()) << "no fault was injected";
        endFaults();
        expectFreshLockWorks();
        expectNothingLeft();
        forgetClient();
        server.kill(); // faster than asking the server to end
    }

    /// Expects that a test left nothing in Redis; a fixture may allow something.
    virtual void expectNothingLeft()
    {
        EXPECT_EQ(redis.command({"DBSIZE"}).integer(), 0) << redis.command({"KEYS", "*"});
    }

    /// Expects that the same client can take and free the same lock, and that Redis agrees.
    void expectFreshLockWorks()
    {
        const RedisLock again = client().getLock(name);
        std::error_code ec;
        ASSERT_TRUE(again.tryLock(10s, 10s, ec))
            << "afterwards: " << ec.message() << ", in Redis " << redis.command({"HGETALL", name});
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(again.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }

    /// Ends every fault of the proxy.
    void endFaults()
    {
        proxy.clear();
        proxy.resume();
        proxy.accept();
    }

    /// Adds a fault, which must hit before the end of the test.
    RuleId inject(Match match, Action action, std::size_t limit = 0)
    {
        faults_.push_back(proxy.add(std::move(match), std::move(action), limit));
        return faults_.back();
    }

    /// Replaces the next answer of a script by @p wrong. Redis knows the script, and so executes it.
    RuleId spoil(const Script& script, const char* wrong)
    {
        redis.command({"SCRIPT", "LOAD", script.text()});
        return inject(reply(script), Action::replace(wrong));
    }

    /// For faults that do not come from the proxy: checks that one took place.
    void expectFault(bool happened, const char* what)
    {
        EXPECT_TRUE(happened) << "fault never hit: " << what;
        proven_ = true;
    }

    /// How often the server has sent this error.
    std::uint64_t errorsSent(const std::string& word)
    {
        const auto statistics = redis.command({"INFO", "errorstats"}).text();
        const auto count = [&statistics](const std::string& of) {
            const auto field = "errorstat_" + of + ":count=";
            const auto at = statistics.find(field);
            return at == std::string::npos ? 0 : std::strtoull(statistics.c_str() + at + field.size(), nullptr, 10);
        };
        // before version 7 an error inside a script counts as ERR, and its text begins with ERR
        const bool wraps = redis.command({"INFO", "server"}).text().find("redis_version:6.") != std::string::npos;
        return count(word) + (wraps ? count("ERR") : 0);
    }

    void loadScripts()
    {
        for (const auto* script : {&redisLockLock, &redisLockUnlock, &redisLockRenew, &redisLockPttl}) {
            redis.command({"SCRIPT", "LOAD", script->text()});
        }
    }

    /// The client; the first call makes it, with `config` as it is then.
    Client& client()
    {
        if (!client_) {
            client_.emplace(config);
        }
        return *client_;
    }
    /// Destroys the client; client() makes another.
    void forgetClient() { client_.reset(); }

    [[nodiscard]] RedisLock lockOf(const std::string& lockName) { return client().getLock(lockName); }
    [[nodiscard]] RedisLock lock() { return lockOf(name); }

    /// The count of this client's hold in Redis; empty when there is none, or when there are other fields.
    std::string countInRedis() { return countInRedis(client()); }
    std::string countInRedis(const Client& holder)
    {
        const auto hash = redis.hash(name);
        return hash.size() == 1 && hash.begin()->first.starts_with(holder.id() + ":") ? hash.begin()->second : "";
    }

    /// The holders in the requests for a script that reached the proxy.
    std::set<std::string> holdersIn(const Script& script) const
    {
        std::set<std::string> holders;
        for (const auto& logged : requestsFor(script)) {
            holders.insert(logged.arguments.at(4));
        }
        return holders;
    }

    std::vector<LoggedRequest> requestsFor(const Script& script) const
    {
        std::vector<LoggedRequest> found;
        for (auto& logged : proxy.requestLog()) {
            if (logged.arguments.size() > 4 && logged.arguments[1] == script.sha1) {
                found.push_back(std::move(logged));
            }
        }
        return found;
    }

    /// Another program takes the lock, without the proxy. A negative time: without time to live.
    void foreignLock(std::chrono::milliseconds timeToLive) { foreignLock(name, timeToLive); }
    void foreignLock(const std::string& lockName, std::chrono::milliseconds timeToLive)
    {
        redis.command({"HSET", lockName, foreigner, "1"});
        if (timeToLive > 0ms) {
            redis.command({"PEXPIRE", lockName, std::to_string(timeToLive.count())});
        }
    }
    /// The other program frees the lock and publishes the message. @return how many clients got it.
    std::int64_t foreignUnlock()
    {
        redis.command({"MULTI"}); // so that no other client comes in between
        redis.command({"DEL", name});
        redis.command({"PUBLISH", detail::lockChannel(name), "0"});
        return redis.command({"EXEC"}).elements.at(1).integer();
    }

    /// The results of a waiter.
    struct Waited {
        bool granted = false;
        std::error_code error{};
        std::chrono::milliseconds time{0};
        std::string count{}; ///< in Redis, while it held
        Unlocked unlocked{};
    };

    /// Waits for the lock on another thread, looks at Redis, and frees the lock.
    std::future<Waited> waitInBackground(std::chrono::milliseconds wait, Lease lease = 10s)
    {
        return waitInBackground(client(), wait, lease);
    }
    std::future<Waited> waitInBackground(Client& of, std::chrono::milliseconds wait, Lease lease = 10s)
    {
        waiter_ = 0;
        return std::async(std::launch::async, [this, &of, waited = of.getLock(name), wait, lease] {
            waiter_ = ::gettid();
            Waited result;
            const Stopwatch watch;
            result.granted = waited.tryLock(wait, lease, result.error);
            result.time = watch.elapsedMs();
            if (result.granted) {
                RawRedis own(server);
                const auto hash = own.hash(name);
                const bool ours = hash.size() == 1 && hash.begin()->first.starts_with(of.id() + ":");
                result.count = ours ? hash.begin()->second : "not this client's";
                result.unlocked = waited.unlock();
            }
            return result;
        });
    }

    /// Whether the thread that waits in the background sleeps, soon: the lock of another thread of its client is in its
    /// way, or its answer is not there.
    bool waiterSleeps()
    {
        return eventually([this] { return FrozenThread::sleeps(waiter_); });
    }

    /// Expects that the waiter got the lock, that Redis agreed, and that the lock was freed.
    static void expectGranted(const Waited& waited)
    {
        EXPECT_TRUE(waited.granted) << waited.error.message();
        EXPECT_EQ(waited.count, "1");
        EXPECT_EQ(waited.unlocked, Unlocked::released);
    }

    const std::string name = "stock:42";
    const std::string foreigner = "0d7c1be2-33aa-4f5e-8c1d-b0a3d6a2e9f4:84";
    const std::shared_ptr<Recorder> seen = std::make_shared<Recorder>();
    testing::RedisServer server;
    FaultProxy proxy{server};
    RawRedis redis{server};
    Config config; ///< change it before client() is first called

private:
    std::vector<RuleId> faults_;
    std::atomic<pid_t> waiter_{0}; ///< its thread
    bool proven_ = false;
    std::optional<Client> client_;
};

} // namespace redislock::test
