// Replies that no honest server gives: endless, mis-framed, of the wrong kind, redirecting.
#include "fault/fault_test.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/resource.h>

#include <map>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using EndlessReply = FaultTest;
using MisframedReply = FaultTest;
using Redirection = FaultTest;
using CutReply = FaultTest;
using LostReply = FaultTest;
using WrongReply = FaultTest;

std::chrono::microseconds cpuTime()
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

/// The peak memory of this process so far, in bytes.
std::size_t peakMemory()
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

TEST_F(EndlessReply, CostsLittleAndTheRequestIsRepeated)
{
    const std::string megabytes(3U << 20U, 'a');
    std::string nested;
    for (int i = 0; i < 6; ++i) {
        nested += "*1000\r\n";
    }
    const std::vector<std::pair<const char*, std::string>> bombs{
        {"an array of a thousand million", "*1111111111\r\n"},
        {"a text without end", "$9223372036854775807\r\n" + megabytes},
        {"a text that is too long", "$3145728\r\n" + megabytes + "\r\n"},
        {"a line without end", "+" + megabytes},
        {"an error without end", "-ERR " + megabytes},
        {"arrays in arrays", nested},
    };
    lock().lock(20s); // so that everything that is allocated once exists
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    for (const auto& [what, bytes] : bombs) {
        SCOPED_TRACE(what);
        inject(reply(redisLockLock), Action::replace(bytes));
        const auto memory = peakMemory();
        const auto cpu = cpuTime();
        lock().lock(20s);
        // the proxy is part of this process and holds the bytes too
        EXPECT_LT(peakMemory() - memory, (isSanitized ? 400U : 48U) << 20U);
        EXPECT_LT(cpuTime() - cpu, isSanitized ? 5s : 1s);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(MisframedReply, IsNobodysAnswerWhateverWasAsked)
{
    const auto* misframed = "$3\r\nabcXY";
    std::error_code ec;
    spoil(redisLockLock, misframed);
    EXPECT_FALSE(lock().tryLock(5s, 20s, ec));
    EXPECT_EQ(ec, Errc::badReply);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "granted in Redis, to nobody";

    const RedisLock held = lock();
    held.lock(20s);
    spoil(redisLockLock, misframed);
    held.lock(20s, ec);
    EXPECT_EQ(ec, Errc::badReply);
    EXPECT_EQ(held.holdCount(), 1U);
    EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }));
    spoil(redisLockPttl, misframed);
    EXPECT_FALSE(held.remainingTimeToLive(ec));
    EXPECT_EQ(ec, Errc::badReply);
    spoil(redisLockUnlock, misframed);
    EXPECT_EQ(held.unlock(), Unlocked::unconfirmed);
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_FALSE(redis.exists(name)) << "it was executed";
}

TEST_F(WrongReply, OfARenewalIsAFailedTryAndNoLoss)
{
    config.watchdogTimeout = 2400ms;
    const RedisLock held = lock();
    held.lock();
    std::size_t nth = 0;
    for (const auto* wrong : {"+OK\r\n", "$1\r\n2\r\n", "$2\r\n11\r\n", "$-1\r\n"}) {
        inject(reply(redisLockRenew, ++nth), Action::replace(wrong));
    }
    EXPECT_TRUE(seen->await(Event::renewed));
    const auto failed = seen->all(Event::renewalFailed);
    EXPECT_GE(failed.size(), 1U);
    for (const auto& told : failed) {
        EXPECT_EQ(told.error, Errc::badReply);
    }
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(WrongReply, OfAnUnlockIsUnconfirmed)
{
    for (const auto* wrong : {"+OK\r\n", ":-1\r\n", ":0\r\n", "*0\r\n"}) {
        SCOPED_TRACE(wrong);
        lock().lock(20s);
        spoil(redisLockUnlock, wrong);
        EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_FALSE(redis.exists(name)) << "it was executed";
    }
}

constexpr const char* nilReply = "$-1\r\n";
constexpr const char* tokenReply = "*1\r\n$4\r\n1234\r\n";

TEST_F(WrongReply, OfAnotherKindOfLockIsNoGrantAndWhatWasGrantedIsGivenBack)
{
    const auto isNotBelieved = [this](const auto& lock, const Script& script, const std::vector<const char*>& wrong) {
        for (const char* answer : wrong) {
            SCOPED_TRACE(std::string(script.name) + ": " + answer);
            std::error_code ec;
            spoil(script, answer);
            EXPECT_FALSE(lock.tryLock(5s, 20s, ec));
            EXPECT_EQ(ec, Errc::badReply);
            EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "granted in Redis, to nobody";
            spoil(script, answer);
            boost::system::error_code code;
            const auto guard =
                lock.asyncTryLock(Wait(5s), Lease(20s), boost::asio::redirect_error(boost::asio::use_future, code))
                    .get();
            EXPECT_EQ(code, Errc::badReply);
            EXPECT_FALSE(guard);
            EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "granted in Redis, to nobody";
        }
    };
    namespace scripts = detail::scripts;
    isNotBelieved(client().getLock(name), scripts::redisLockLock, {tokenReply, ":-3\r\n", "+OK\r\n"});
    isNotBelieved(client().getSpinLock(name), scripts::redisLockLock, {tokenReply, ":-3\r\n"});
    isNotBelieved(client().getFairLock(name), scripts::fairLockLock, {tokenReply, ":-3\r\n"});
    isNotBelieved(client().getFencedLock(name), scripts::fencedLockLock,
                  {nilReply, ":-3\r\n", "*1\r\n:1234\r\n", "*0\r\n"});
    redis.command({"DEL", detail::prefixed(detail::tokenPrefix, name)}); // this key has no time to live
    isNotBelieved(client().getReadWriteLock(name).readLock(), scripts::readLockLock, {tokenReply, ":-3\r\n"});
    isNotBelieved(client().getReadWriteLock(name).writeLock(), scripts::writeLockLock, {tokenReply, ":-3\r\n"});
}

TEST_F(WrongReply, OfANestedLockIsAnErrorAndTheCountIsMadeRight)
{
    const RedisLock held = lock();
    held.lock(20s);
    for (const auto* wrong : {tokenReply, ":5000\r\n", ":-1\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(redisLockLock, wrong);
        std::error_code ec;
        held.lock(20s, ec);
        EXPECT_EQ(ec, Errc::badReply);
        EXPECT_EQ(held.holdCount(), 1U);
        EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }));
    }
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(WrongReply, OfAForcedUnlockIsAnError)
{
    for (const auto* wrong : {":5\r\n", "*0\r\n", "$0\r\n\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(detail::scripts::redisLockHolder, wrong);
        std::error_code ec;
        EXPECT_FALSE(lock().forceUnlock(ec));
        EXPECT_EQ(ec, Errc::badReply);
    }
}

TEST_F(WrongReply, OfASemaphoreIsNoGrantAndWhatWasTakenIsGivenBack)
{
    const auto semaphore = client().getSemaphore(name);
    ASSERT_TRUE(semaphore.trySetPermits(3));
    const auto isWhole = [this] { return eventually([&] { return redis.get(name) == "3"; }); };
    std::error_code ec;
    for (const auto* wrong : {tokenReply, ":0\r\n", ":1\r\n", ":-3\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(detail::scripts::semaphoreAcquire, wrong);
        EXPECT_FALSE(semaphore.tryAcquire(2, 5s, ec));
        EXPECT_EQ(ec, Errc::badReply);
        EXPECT_TRUE(isWhole());
    }
    for (const auto* wrong : {nilReply, ":-1\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(detail::scripts::semaphoreDrain, wrong);
        EXPECT_EQ(semaphore.drainPermits(ec), 0);
        EXPECT_EQ(ec, Errc::badReply);
        EXPECT_TRUE(isWhole());
        spoil(detail::scripts::semaphoreDrain, wrong);
        EXPECT_THROW(semaphore.asyncDrainPermits(boost::asio::use_future).get(), boost::system::system_error);
        EXPECT_TRUE(isWhole());
    }
    spoil(detail::scripts::semaphoreAdd, ":0\r\n");
    semaphore.release(2, ec);
    EXPECT_EQ(ec, Errc::badReply) << "only a release for an existing one may find none";
    EXPECT_TRUE(eventually([&] { return redis.get(name) == "5"; }));
    forgetClient(); // this ends when the repeated requests are answered
    redis.command({"FLUSHALL"});
}

TEST_F(WrongReply, OfLeasedPermitsIsNoGrantAndNoTime)
{
    const auto semaphore = client().getPermitExpirableSemaphore(name);
    ASSERT_TRUE(semaphore.trySetPermits(1));
    std::error_code ec;
    for (const auto* wrong : {tokenReply, ":-2\r\n", ":-3\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(detail::scripts::permitExpirableSemaphoreAcquire, wrong);
        EXPECT_FALSE(semaphore.tryAcquire(5s, 20s, ec));
        EXPECT_EQ(ec, Errc::badReply);
        EXPECT_TRUE(eventually([&] { return redis.get(name) == "1"; }));
    }
    Permit permit = semaphore.tryAcquire(oneAttempt, 20s);
    for (const auto* wrong : {":0\r\n", ":-2\r\n", "*0\r\n"}) {
        SCOPED_TRACE(wrong);
        spoil(detail::scripts::permitExpirableSemaphoreLease, wrong);
        EXPECT_FALSE(semaphore.getLeaseTime(permit.id(), ec));
        EXPECT_EQ(ec, Errc::badReply);
    }
    spoil(detail::scripts::permitExpirableSemaphoreSet, ":0\r\n");
    semaphore.setPermits(1, ec);
    EXPECT_EQ(ec, Errc::badReply);
    EXPECT_EQ(permit.release(), Unlocked::released);
    forgetClient();
    redis.command({"FLUSHALL"});
}

TEST_F(Redirection, IsRefusedAndNotFollowed)
{
    FaultProxy elsewhere(server);
    const auto word = [](std::string_view text) {
        return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
    };
    for (const auto* how : {"MOVED 1 127.0.0.1:", "ASK 1 127.0.0.1:"}) {
        SCOPED_TRACE(how);
        // Redis answers a request with such a redirection, and does not execute it
        inject(request(redisLockLock),
               Action::replace("*4\r\n" + word("EVAL") + word("return redis.error_reply(ARGV[1])") + word("0") +
                               word(how + std::to_string(elsewhere.port()))));
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(5s, 10s, ec));
        EXPECT_EQ(ec, Errc::unsupported);
        EXPECT_FALSE(redis.exists(name));
    }
    EXPECT_EQ(elsewhere.accepted(), 0U);
}

TEST_F(CutReply, OfARenewalAnywhereDoesNotMoveTheDeadline)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    const std::size_t cuts[] = {0, 2, 4, 6}; // of "$1\r\n1\r\n"
    std::vector<RuleId> rules;
    for (std::size_t i = 0; i < std::size(cuts); ++i) {
        rules.push_back(inject(reply(redisLockRenew, i + 1), Action::truncate(cuts[i])));
    }
    EXPECT_TRUE(seen->await(Event::renewed));
    for (const auto rule : rules) {
        EXPECT_EQ(proxy.hits(rule), 1U);
    }
    EXPECT_GE(seen->count(Event::renewalFailed), std::size(cuts)) << "more, where answers take their time";
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(holdersIn(redisLockRenew).size(), 1U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(LostReply, OfAForcedUnlockIsMadeUpForAndEndsNobodyElse)
{
    foreignLock(60s);
    const auto stalled = inject({.command = "EVALSHA",
                                 .script = std::string(detail::scripts::redisLockForceUnlock.sha1),
                                 .direction = Direction::reply},
                                Action::stallDirection());
    redis.command({"SCRIPT", "LOAD", detail::scripts::redisLockForceUnlock.text()});
    redis.command({"SCRIPT", "LOAD", detail::scripts::redisLockHolder.text()});
    auto next = std::async(std::launch::async, [this, stalled] {
        const bool hit = proxy.awaitHits(stalled);
        RawRedis(server).command({"HSET", name, "the next holder", "1"}); // between the first try and the second
        return hit;
    });
    EXPECT_TRUE(lock().forceUnlock());
    EXPECT_TRUE(next.get());
    EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{"the next holder", "1"}}));
    redis.command({"DEL", name});
}

} // namespace
} // namespace redislock::test
