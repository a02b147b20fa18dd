/// @file
/// The scripts of fair locks, beside waiters of Redisson's.
#pragma once

#include "scripts/script_test.hpp"
#include "support/redisson_fair_lock.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

namespace redislock::test {

class FairScripts : public ScriptTest {
protected:
    static constexpr std::int64_t place = 5000;    ///< five polls
    static constexpr std::int64_t clocks = 30'000; ///< by how much Redisson's may be off
    static constexpr std::int64_t usual = RedissonFairLock::usualMs;

    void SetUp() override
    {
        ScriptTest::SetUp();
        foreign = {queue, times}; // no time to live while one of Redisson's is queued
    }

    Value fair(const std::string& holder, std::int64_t placeMs = place)
    {
        return run(detail::scripts::fairLockLock, keys, {holder, "30000", "1", std::to_string(placeMs), channels, "0"});
    }
    /// A waiter whose client listens to grants.
    Value listening(const std::string& holder, int request = 1, std::int64_t leaseMs = 30'000)
    {
        return run(detail::scripts::fairLockLock, keys,
                   {holder, std::to_string(leaseMs), "1", std::to_string(place), channels, std::to_string(request)});
    }
    Value end(const std::string& holder)
    {
        return run(detail::scripts::fairLockUnlock, keys, {holder, "0", "1", channels});
    }

    std::int64_t now()
    {
        const Value time = redis.command({"TIME"});
        return std::stoll(time.elements.at(0).text()) * 1000 + std::stoll(time.elements.at(1).text()) / 1000;
    }
    std::int64_t score(const std::string& holder) { return redissons.time(holder).value_or(0); }
    Words waiting() { return redissons.waiting(); }
    /// Expects the place of one of ours, which was set a moment ago, to be ahead of the clock by @p ms.
    void expectAhead(const std::string& holder, std::int64_t ms)
    {
        EXPECT_THAT(score(holder) - now(), ::testing::AllOf(::testing::Le(ms), ::testing::Ge(ms - 3000))) << holder;
    }

    /// A waiter of Redisson's takes its place; its clock is @p ahead ms ahead.
    void javaWaits(const std::string& thread, std::int64_t allowance = usual, std::int64_t ahead = 0)
    {
        EXPECT_TRUE(redissons.acquire(thread, allowance, now() + ahead)) << thread << " has the lock";
    }
    /// The holder releases the lock; a waiter of Redisson's is let in, and releases at once.
    void javaIsLetIn(const std::string& thread, std::int64_t allowance = usual, std::int64_t ahead = 0)
    {
        redis.command({"DEL", name});
        ASSERT_FALSE(redissons.acquire(thread, allowance, now() + ahead)) << thread << " has to wait";
        redissons.release(thread, now() + ahead);
    }
    /// Whether the first waiter, one of Redisson's, is still the first when another has asked after so long.
    bool keepsItsTurn(const std::string& thread, std::int64_t afterMs)
    {
        setClock(afterMs);
        fair(hold20, 0);
        return !waiting().empty() && waiting().front() == thread;
    }
    /// Gives a waiter of Redisson's the time that it would have if it had come behind another that died.
    void oneDiedBefore(const std::string& waiter)
    {
        const auto later = std::to_string(score(waiter) + 200'000);
        redis.command({"ZADD", times, later, waiter});
        redis.command({"HSET", places, waiter, "redisson " + later + ' ' + std::to_string(usual)});
    }
    /// Sets the server's clock by @p byMs, by moving all times of the queue.
    void setClock(std::int64_t byMs)
    {
        for (const auto& each : waiting()) {
            redis.command({"ZINCRBY", times, std::to_string(-byMs), each});
        }
        for (const auto& [holder, record] : redis.hash(places)) {
            std::istringstream words(record);
            std::string moved;
            for (std::string word; words >> word;) { // a number of so many digits is a moment
                const bool isMoment = word.size() == 13 && word.find_first_not_of("0123456789") == std::string::npos;
                moved += (moved.empty() ? "" : " ") + (isMoment ? std::to_string(std::stoll(word) - byMs) : word);
            }
            redis.command({"HSET", places, holder, moved});
        }
    }
    /// A second connection that listens to the channel of a client with waiters, and to those of two of its waiters.
    RawRedis listener()
    {
        RawRedis connection(server());
        for (const auto& channel : {grants, channels + hold18, channels + hold19}) {
            EXPECT_FALSE(connection.command({"SUBSCRIBE", channel}).isError());
        }
        return connection;
    }
    /// Expects the message of a grant to such a client. @param lasts the least and the most ms
    static void expectGrant(const Words& messages, const std::string& begin, std::int64_t least, std::int64_t most)
    {
        ASSERT_THAT(messages, ::testing::ElementsAre(::testing::StartsWith(grants + " " + begin)));
        std::int64_t lasts = -1;
        std::string lock;
        std::istringstream(messages[0].substr(grants.size() + begin.size() + 1)) >> lasts >> lock;
        EXPECT_THAT(lasts, ::testing::AllOf(::testing::Ge(least), ::testing::Le(most)));
        EXPECT_EQ(lock, "stock:42");
    }
    static std::string java(int number) { return "0d7c1be2-33aa-4f5e-8c1d-b0a3d6a2e9f4:" + std::to_string(number); }

    const std::string queue = "redisson_lock_queue:{" + name + "}";
    const std::string times = "redisson_lock_timeout:{" + name + "}";
    const std::string places = "redislock_places:{" + name + "}";
    const std::string channels = "redisson_lock__channel:{" + name + "}:";
    const Words keys{name, queue, times, places};
    static inline const std::string grants = "redisson_lock__channel:" + client;
    const std::string hold19 = client + ":19";
    const std::string hold20 = client + ":20";
    RedissonFairLock redissons{name, [this](const Words& words) -> std::optional<std::string> {
                                   const Value value = redis.command(words);
                                   EXPECT_FALSE(value.isError()) << value;
                                   if (value.isNil()) {
                                       return std::nullopt;
                                   }
                                   return value.isInteger() ? std::to_string(value.integer()) : value.text();
                               }};
};

} // namespace redislock::test
