/// @file
/// The common parts of the tests of locks on a real server: the server, a client, names of their own.
#pragma once

#include "behaviour/lock_driver.hpp"
#include "behaviour/recording_observer.hpp"
#include "redislock/client.hpp"
#include "redislock/config.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"
#include "support/test_server.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The bound for things that should happen at once; machines are slow sometimes.
inline constexpr milliseconds soon{3000};
/// A wait that ends in vain, and in which the server surely answers.
inline constexpr milliseconds answered{300};

/// A server for all tests of one program (over TLS or with a Sentinel, if the environment wants it: see testServer()),
/// and names that no other test uses. After each test its locks must be free in Redis, at the latest when their leases
/// are over, and no client may listen to a channel any more.
class LockTest : public ::testing::Test {
protected:
    LockTest()
    {
        if (overCluster()) {
            raw.joinCluster(ports());
        }
    }

    static testing::RedisServer& server()
    {
        static std::vector<std::uint16_t> ignored;
        if (overCluster()) {
            return sharedNode(ignored);
        }
        static testing::RedisServer instance = testServer();
        return instance;
    }
    /// Of a cluster.
    static std::vector<std::uint16_t> ports()
    {
        std::vector<std::uint16_t> all;
        (void)sharedNode(all);
        return all;
    }

    void TearDown() override
    {
        for (const auto& name : names()) {
            EXPECT_TRUE(eventually([&] { return !raw.exists(name); })) << name << " was left locked";
        }
        EXPECT_TRUE(eventually([&] { return channels().empty(); })) << "a subscription was left";
    }

    /// A name for this test alone.
    std::string uniqueName(std::string_view suffix = {})
    {
        static std::atomic<int> last{0};
        const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
        auto name = std::string(test.test_suite_name()) + "." + test.name() + ":" + std::to_string(::getpid()) + ":" +
                    std::to_string(++last) + std::string(suffix);
        return clean(std::move(name));
    }

    /// Makes the test check a name at its end.
    std::string clean(std::string name)
    {
        const std::lock_guard lock(namesMutex_);
        names_.push_back(name);
        return name;
    }

    /// The settings of these tests: leases are short; a waiter that only the poll or its patience wakes is too late.
    static Config config()
    {
        Config config = testConfig(server());
        config.watchdogTimeout = 600ms;
        config.pollInterval = 60s;
        return config;
    }

    /// The settings with an observer, which observer() returns.
    Config observed(Config config = LockTest::config())
    {
        config.observer = observer();
        return config;
    }
    std::shared_ptr<RecordingObserver> observer()
    {
        if (!observer_) {
            observer_ = std::make_shared<RecordingObserver>();
        }
        return observer_;
    }

    /// All channels that somebody listens to, except that of Sentinels, `__sentinel__:hello`.
    std::vector<Value> channels() { return raw.command({"PUBSUB", "CHANNELS", "[^_]*"}).elements; }

    /// How many listen to the channel of a lock.
    std::int64_t listeners(const std::string& name)
    {
        return raw.command({"PUBSUB", "NUMSUB", channelOf(name)}).elements.at(1).integer();
    }

    static std::string channelOf(const std::string& name)
    {
        const bool tagged = name.find('{') != std::string::npos;
        return "redisson_lock__channel:" + (tagged ? name : "{" + name + "}");
    }

    /// The holders of a lock in Redis, with their counts.
    std::map<std::string, std::string> holdersOf(const std::string& name)
    {
        auto fields = raw.hash(name);
        fields.erase("mode"); // of a ReadWriteLock
        return fields;
    }

    /// The holder in Redis, which must be the only one; empty when the lock is free.
    std::string holderOf(const std::string& name)
    {
        const auto fields = holdersOf(name);
        EXPECT_LE(fields.size(), 1U) << name;
        return fields.empty() ? std::string() : fields.begin()->first;
    }

    /// The hold count in Redis; empty when the lock is free.
    std::string countOf(const std::string& name)
    {
        const auto fields = holdersOf(name);
        return fields.empty() ? std::string() : fields.begin()->second;
    }

    /// How many scripts the server ran so far.
    std::uint64_t scriptCalls() { return raw.commandCalls("evalsha") + raw.commandCalls("eval"); }

    RawRedis raw{server()};

private:
    std::vector<std::string> names()
    {
        const std::lock_guard lock(namesMutex_);
        return names_;
    }

    std::mutex namesMutex_;
    std::vector<std::string> names_;
    std::shared_ptr<RecordingObserver> observer_;
};

} // namespace redislock::test
