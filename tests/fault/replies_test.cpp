// Replies in pieces, in bursts, cut short, doubled, or of the wrong kind.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

using CutReply = FaultTest;
using DoubledReply = FaultTest;
using UnaskedReply = FaultTest;
using SegmentedStream = FaultTest;
using WrongReply = FaultTest;

TEST_F(CutReply, OfAGrantAtEveryByteIsGrantedOnce)
{
    const std::string_view granted = "$-1\r\n";
    for (std::size_t bytes = 0; bytes <= granted.size(); ++bytes) {
        SCOPED_TRACE(bytes);
        inject(reply(redisLockLock), Action::truncate(bytes));
        lock().lock(20s);
        EXPECT_EQ(lock().holdCount(), 1U);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(CutReply, OfARefusalAtEveryByteIsNoGrant)
{
    foreignLock(90s);
    const std::string_view refused = ":90000\r\n";
    for (std::size_t bytes = 0; bytes <= refused.size(); ++bytes) {
        SCOPED_TRACE(bytes);
        inject(reply(redisLockLock), Action::truncate(bytes));
        EXPECT_FALSE(lock().tryLock());
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{foreigner, "1"}}));
    }
    foreignUnlock();
}

TEST_F(CutReply, OfAnUnlockAtEveryByteIsReleased)
{
    const std::string_view freed = ":1\r\n";
    for (std::size_t bytes = 0; bytes <= freed.size(); ++bytes) {
        SCOPED_TRACE(bytes);
        lock().lock(20s);
        inject(reply(redisLockUnlock), Action::truncate(bytes));
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(CutReply, OfANestedLevelAtEveryByteLeavesTheCountExact)
{
    const std::string_view granted = "$-1\r\n";
    for (std::size_t bytes = 0; bytes <= granted.size(); ++bytes) {
        SCOPED_TRACE(bytes);
        const RedisLock nested = lock();
        nested.lock(20s);
        inject(reply(redisLockLock), Action::truncate(bytes));
        nested.lock(20s);
        EXPECT_EQ(countInRedis(), "2");
        inject(reply(redisLockUnlock), Action::truncate(bytes));
        EXPECT_EQ(nested.unlock(), Unlocked::stillHeld);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(nested.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(DoubledReply, OfAGrantIsNotTakenForTheGrantOfAnotherLock)
{
    foreignLock("taken", 60s);
    const RedisLock taken = lockOf("taken");
    inject(reply(redisLockLock), Action::duplicate());
    lock().lock(20s);
    // when the answer to a later request has come, both copies have left the proxy
    RawRedis behind(proxy.host(), proxy.port());
    EXPECT_EQ(behind.command({"PING"}).text(), "PONG");
    EXPECT_FALSE(taken.tryLock()) << "the second copy was taken for the answer";
    EXPECT_FALSE(taken.isHeldByCurrentThread());
    EXPECT_EQ(redis.hash("taken"), (std::map<std::string, std::string>{{foreigner, "1"}}));
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    redis.command({"DEL", "taken"});
}

TEST_F(DoubledReply, OfARenewalOrASubscriptionOnlyClosesItsConnection)
{
    foreignLock(60s);
    const RedisLock renewed = lockOf("renewed");
    renewed.lock();
    inject({.command = "SUBSCRIBE", .direction = Direction::reply}, Action::duplicate());
    inject(reply(redisLockRenew), Action::duplicate());
    auto waiter = waitInBackground(20s);
    EXPECT_TRUE(seen->await(Event::disconnected, 2));
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_TRUE(proxy.awaitRequests("SUBSCRIBE", 2));
    EXPECT_TRUE(eventually([&] {
        return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == 1;
    }));
    EXPECT_EQ(foreignUnlock(), 1);
    expectGranted(waiter.get());
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(renewed.unlock(), Unlocked::released);
}

TEST_F(UnaskedReply, ClosesTheConnectionAndIsNobodysAnswer)
{
    for (const auto* unasked : {":1\r\n", "+OK\r\n", "$-1\r\n", "-ERR Protocol error\r\n", "*0\r\n"}) {
        SCOPED_TRACE(unasked);
        foreignLock("marker", 100s);
        inject(reply(redisLockLock), Action::replace(std::string("$-1\r\n") + unasked));
        lock().lock(20s);
        const auto left = lockOf("marker").remainingTimeToLive();
        EXPECT_TRUE(left && *left > 50s) << "the unasked bytes were taken for the answer";
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        redis.command({"DEL", "marker"});
    }
}

TEST_F(UnaskedReply, OnAnIdleConnectionIsNotTakenForTheNextAnswer)
{
    foreignLock("taken", 60s);
    foreignLock("marker", 100s);
    // another command travels behind the first one: its answer comes when no caller waits for one
    const auto word = [](std::string_view text) {
        return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
    };
    constexpr auto delay = 250ms;
    const auto late = inject({.command = "GET", .direction = Direction::reply}, Action::delay(delay));
    inject(request(redisLockPttl), Action::replace("*4\r\n" + word("EVALSHA") + word(redisLockPttl.sha1) + word("1") +
                                                   word("marker") + "*2\r\n" + word("GET") + word("nothing")));
    const auto left = lockOf("marker").remainingTimeToLive();
    EXPECT_TRUE(left && *left > 50s);
    ASSERT_TRUE(proxy.awaitHits(late));
    const Stopwatch watch;
    EXPECT_TRUE(eventually([&] { return watch.elapsed() > delay; }));
    // when the answer to a later request has come, this answer has left the proxy
    RawRedis behind(proxy.host(), proxy.port());
    EXPECT_EQ(behind.command({"PING"}).text(), "PONG");
    const RedisLock taken = lockOf("taken");
    EXPECT_FALSE(taken.tryLock()) << "an unasked \"nil\" was taken for a grant";
    EXPECT_FALSE(taken.isHeldByCurrentThread());
    EXPECT_EQ(redis.hash("taken"), (std::map<std::string, std::string>{{foreigner, "1"}}));
    redis.command({"DEL", "taken", "marker"});
}

TEST_F(WrongReply, IsAnErrorAndTheGrantBehindItIsReleased)
{
    const std::pair<const char*, const char*> replies[] = {
        {"+OK\r\n", "\"OK\""}, {":-7\r\n", "-7"}, {"*1\r\n:1\r\n", "[1]"}, {"$3\r\nab\x1b\r\n", "\"ab\\x1b\""}};
    for (const auto& [wrong, shown] : replies) {
        SCOPED_TRACE(wrong);
        inject(reply(redisLockLock), Action::replace(wrong));
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(5s, 25s, ec));
        EXPECT_EQ(ec, Errc::badReply);
        EXPECT_NE(client().describe(ec).find(std::string(": the reply does not fit the request: ") + shown + "; "),
                  std::string::npos)
            << client().describe(ec);
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, slack)) << "granted in Redis, to nobody";
    }
}

TEST_F(WrongReply, ThatIsNotRedisAtAllClosesTheConnectionAndTheRequestIsRepeated)
{
    for (const auto* garbage : {"HTTP/1.1 400 Bad Request\r\n\r\n", "*1111111111\r\n", "$-5\r\n", "\x15\x03\x01\r\n"}) {
        SCOPED_TRACE(garbage);
        inject(reply(redisLockLock), Action::replace(garbage));
        lock().lock(20s);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(SegmentedStream, OfSingleBytesChangesNothing)
{
    foreignLock(60s);
    const auto split = [this](Direction direction) {
        return inject({.command = "*", .direction = direction, .nth = 0}, Action::split(20us));
    };
    split(Direction::request);
    split(Direction::reply);
    split(Direction::push);
    auto waiter = waitInBackground(20s, keepRenewing);
    EXPECT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    EXPECT_EQ(foreignUnlock(), 1);
    expectGranted(waiter.get());
    const RedisLock nested = lock();
    nested.lock();
    nested.lock();
    EXPECT_EQ(countInRedis(), "2");
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_EQ(nested.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(nested.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(SegmentedStream, OfManyRequestsInOneBurstGivesEachItsOwnAnswer)
{
    constexpr std::size_t threads = 24;
    config.commandTimeout = 10s;
    config.unreachableAfter = 30s;
    client().connect();
    const std::string filler(1000, 'x'); // so that the requests and replies fill more than one buffer
    const auto nameOf = [&](std::size_t i) { return filler + std::to_string(i); };
    for (std::size_t i = 0; i < threads; i += 2) {
        foreignLock(nameOf(i), 60s);
    }
    for (int round = 0; round < 3; ++round) {
        proxy.stall();
        std::vector<std::future<bool>> results;
        for (std::size_t i = 0; i < threads; ++i) {
            results.push_back(std::async(std::launch::async, [contended = lockOf(nameOf(i))] {
                const bool granted = contended.tryLock(0ms, 20s);
                return granted && contended.unlock() == Unlocked::released;
            }));
        }
        proxy.resume();
        for (std::size_t i = 0; i < threads; ++i) {
            EXPECT_EQ(results[i].get(), i % 2 == 1) << i;
        }
    }
    expectFault(proxy.requests(request(redisLockLock)) == 3 * threads, "requests in bursts");
    redis.command({"FLUSHALL"});
}

} // namespace
} // namespace redislock::test
