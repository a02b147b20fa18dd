/// @file
/// The common parts of the tests of scripts: one server, two holders, and the scripts as functions.
#pragma once

#include "redislock/testing/redis_server.hpp"
#include "support/raw_redis.hpp"
#include "wire/key_schema.hpp"
#include "wire/script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {

using Hash = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

inline const std::string client = "6f1c0f9e-8f1f-4f7e-9d5d-2f1f3b8a7c11";
inline const std::string hold17 = client + ":17";
inline const std::string hold18 = client + ":18";
inline const std::string javaThread = "0d7c1be2-33aa-4f5e-8c1d-b0a3d6a2e9f4:84";

/// The scripts, run with EVAL against a real server that is empty when a test begins. One server serves all tests of
/// the program. After each test every key must have a time to live, except keys that the test itself left there.
class ScriptTest : public ::testing::Test {
protected:
    static testing::RedisServer& server()
    {
        static testing::RedisServer instance;
        return instance;
    }

    void SetUp() override
    {
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"FLUSHALL"});
    }

    void TearDown() override
    {
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        for (const Value& key : redis.command({"KEYS", "*"}).elements) {
            if (!foreign.contains(key.text())) {
                EXPECT_NE(redis.pttl(key.text()), std::chrono::milliseconds(-1)) << key;
            }
        }
    }

    /// Sends a script as the library does, but by its text: script, number of keys, keys, arguments.
    Value run(const detail::Script& script, const Words& keys, const Words& arguments)
    {
        return run(redis, script, keys, arguments);
    }

    static Value run(RawRedis& connection, const detail::Script& script, const Words& keys, const Words& arguments)
    {
        Words words{"EVAL", script.text(), std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return connection.command(words);
    }

    Value lock(const std::string& holder, std::int64_t leaseMs, std::int64_t count = 1)
    {
        return run(detail::scripts::redisLockLock, {name}, {holder, std::to_string(leaseMs), std::to_string(count)});
    }

    Value unlock(const std::string& holder, std::int64_t count = 0, std::int64_t leaseMs = 30'000)
    {
        return run(detail::scripts::redisLockUnlock, {name},
                   {holder, std::to_string(count), std::to_string(leaseMs), detail::lockChannel(name)});
    }

    Value renew(const std::string& holder, std::int64_t leaseMs)
    {
        return run(detail::scripts::redisLockRenew, {name}, {holder, std::to_string(leaseMs)});
    }

    Value pttl() { return run(detail::scripts::redisLockPttl, {name}, {}); }

    Value holder() { return run(detail::scripts::redisLockHolder, {name}, {}); }

    Value forceUnlock(const std::string& whose)
    {
        return run(detail::scripts::redisLockForceUnlock, {name}, {whose, detail::lockChannel(name)});
    }

    /// From now on the server refuses any write that needs memory, until the test ends.
    void runOutOfMemory()
    {
        redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
        redis.command({"CONFIG", "SET", "maxmemory", "1"});
        ASSERT_THAT(redis.command({"SET", "any", "1"}).text(), ::testing::StartsWith("OOM"));
    }

    /// A hash at the name that the library did not write, without a time to live.
    void writeForeignHash(const Hash& fields)
    {
        for (const auto& [field, value] : fields) {
            redis.command({"HSET", name, field, value});
        }
        foreign.insert(name);
    }

    /// A second connection that has subscribed to the lock's channel.
    RawRedis subscriber() const
    {
        RawRedis connection(server());
        const Value confirmed = connection.command({"SUBSCRIBE", detail::lockChannel(name)});
        EXPECT_EQ(confirmed.elements.at(0).text(), "subscribe");
        return connection;
    }

    /// The messages to a subscriber since it subscribed or since the last call, each as "channel message". The server
    /// answers in order: messages that were published before the PING come before its answer.
    static Words messages(RawRedis& subscriber)
    {
        subscriber.send({"PING"});
        Words result;
        for (Value next = subscriber.receive(); next.elements.at(0).text() != "pong"; next = subscriber.receive()) {
            result.push_back(next.elements.at(1).text() + ' ' + next.elements.at(2).text());
        }
        return result;
    }

    /// A connection whose user may do all but use channels.
    RawRedis userWithoutChannels()
    {
        redis.command({"ACL", "SETUSER", "mute", "reset", "on", ">pw", "~*", "+@all", "resetchannels"});
        RawRedis connection(server());
        EXPECT_EQ(connection.command({"AUTH", "mute", "pw"}).text(), "OK");
        EXPECT_TRUE(connection.command({"PUBLISH", detail::lockChannel(name), "0"}).isError());
        return connection;
    }

    Hash hash() { return redis.hash(name); }

    /// How long the key still lives, in ms: -1 without time to live, -2 without key.
    std::int64_t timeToLive() { return redis.pttl(name).count(); }

    std::string name = "stock:42";
    RawRedis redis{server()};
    std::set<std::string> foreign; ///< keys that may be without a time to live
};

/// A time to live that was set a moment ago.
MATCHER_P(JustSet, leaseMs, "")
{
    return arg <= leaseMs && arg > leaseMs - 5'000;
}

MATCHER(Nil, "")
{
    return arg.isNil();
}

MATCHER_P(Number, expected, "")
{
    return arg.isInteger() && arg.integer() == expected;
}

/// The reply that another holds the lock. @param left the time. @param holder empty: none is named
MATCHER_P2(Refusal, left, holder, "")
{
    return arg.isArray() && (arg.elements.size() == 2 || arg.elements.size() == 3) &&
           ::testing::Matches(left)(arg.elements[0].integer()) &&
           (std::string_view(holder).empty() ? arg.elements[1].isNil() : arg.elements[1].text() == holder);
}

MATCHER_P(ErrorLike, expected, "")
{
    return arg.isError() && arg.text().starts_with(expected);
}

} // namespace redislock::test
