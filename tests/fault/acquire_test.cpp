// Requests and replies of an acquire that are lost, late or doubled.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

using LostRequest = FaultTest;
using LostReply = FaultTest;
using DoubledRequest = FaultTest;
using LateRequest = FaultTest;
using LateReply = FaultTest;

TEST_F(LostRequest, AcquireThatNeverArrivesIsSentAgainForTheSameHolder)
{
    for (const auto& [how, loss] : lostRequests()) {
        SCOPED_TRACE(how);
        proxy.clearRequestLog();
        inject(request(redisLockLock), loss);
        lock().lock();
        EXPECT_EQ(lock().holdCount(), 1U);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(holdersIn(redisLockLock).size(), 1U);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(LostReply, AcquireExecutedAndReplyLostIsGrantedOnceAndCountedOnce)
{
    std::size_t grants = 0;
    for (const auto& [how, loss] : lostReplies()) {
        SCOPED_TRACE(how);
        proxy.clearRequestLog();
        inject(request(redisLockLock), loss);
        lock().lock();
        EXPECT_EQ(lock().holdCount(), 1U);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_GE(requestsFor(redisLockLock).size(), 2U);
        EXPECT_EQ(holdersIn(redisLockLock).size(), 1U) << "sent again for another holder";
        EXPECT_TRUE(seen->await(Event::acquired, ++grants));
        EXPECT_GE(seen->all(Event::acquired).back().attempts, 2U);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
    EXPECT_EQ(seen->count(Event::acquired), grants);
}

TEST_F(LostReply, NestedAcquireLeavesTheCountExactAtEveryLevel)
{
    config.commandTimeout = 200ms;
    auto losses = lostReplies();
    for (auto& loss : lostRequests()) {
        losses.push_back(std::move(loss));
    }
    losses.push_back({"request doubled", Action::duplicate()});
    for (const auto& [how, loss] : losses) {
        SCOPED_TRACE(how);
        const RedisLock nested = lock();
        nested.lock(10s);
        for (const auto* count : {"2", "3"}) {
            inject(request(redisLockLock), loss);
            nested.lock(10s);
            EXPECT_EQ(countInRedis(), count);
        }
        EXPECT_EQ(nested.holdCount(), 3U);
        for (const auto* count : {"2", "1"}) {
            inject(request(redisLockUnlock), loss);
            EXPECT_EQ(nested.unlock(), Unlocked::stillHeld);
            EXPECT_EQ(countInRedis(), count);
        }
        EXPECT_EQ(nested.holdCount(), 1U);
        EXPECT_EQ(nested.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
}

TEST_F(DoubledRequest, ChangesNoCountAndReleasesOnce)
{
    const auto doubled = [this](const Script& script) { return inject(request(script, 0), Action::duplicate()); };
    const auto locks = doubled(redisLockLock);
    const auto unlocks = doubled(redisLockUnlock);
    const auto renewals = doubled(redisLockRenew);
    const RedisLock twice = lock();
    for (int round = 0; round < 3; ++round) {
        twice.lock();
        EXPECT_EQ(countInRedis(), "1");
        twice.lock();
        EXPECT_EQ(countInRedis(), "2");
        if (round == 0) {
            EXPECT_TRUE(seen->await(Event::renewed));
            EXPECT_EQ(countInRedis(), "2");
        }
        EXPECT_EQ(twice.unlock(), Unlocked::stillHeld);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(twice.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
    }
    EXPECT_GE(proxy.hits(locks), 6U);
    EXPECT_GE(proxy.hits(unlocks), 6U);
    EXPECT_GE(proxy.hits(renewals), 1U);
}

TEST_F(LateRequest, AcquireThatRunsAfterItsCallerGaveUpIsNoHoldAndBlocksOthersForItsLeaseAtMost)
{
    const auto frozen = inject(request(redisLockLock), Action::stallDirection());
    const RedisLock ghost = lock();
    const Stopwatch watch;
    std::error_code ec;
    EXPECT_FALSE(ghost.tryLock(0ms, 1500ms, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_LT(watch.elapsed(), 2 * config.commandTimeout + slack);
    ASSERT_EQ(proxy.hits(frozen), 1U);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockUnlock))) << "no clean-up over the next connection";
    const auto executed = redis.commandCalls("evalsha");
    proxy.resume();
    ASSERT_TRUE(eventually([&] { return redis.commandCalls("evalsha") > executed; })) << "the old request did not run";
    const Stopwatch blocked;
    EXPECT_FALSE(ghost.isHeldByCurrentThread());
    EXPECT_EQ(ghost.validFor(), 0ms);
    std::error_code notHeld;
    ghost.unlock(notHeld);
    EXPECT_EQ(notHeld, Errc::notHeld);
    EXPECT_TRUE(ghost.tryLock(10s, 10s));
    EXPECT_LT(blocked.elapsed(), 1500ms + slack);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(ghost.unlock(), Unlocked::released);
    EXPECT_TRUE(seen->await(Event::released));
    EXPECT_EQ(seen->count(Event::acquired), 1U);
}

TEST_F(LateReply, GrantThatNobodyWaitsForAnyMoreIsReleased)
{
    config.commandTimeout = 5s;
    config.unreachableAfter = 20s;
    foreignLock(500ms);
    const RedisLock left = lock();
    auto late = std::async(std::launch::async, [left] { return left.tryLock(800ms, 25s); });
    // the acquire is refused at first and again after its subscription; the third request is granted, but its answer
    // comes too late
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    inject(reply(redisLockLock), Action::delay(1300ms));
    EXPECT_FALSE(late.get());
    const Stopwatch watch;
    EXPECT_TRUE(eventually([&] { return proxy.requests(request(redisLockUnlock)) == 1 && !redis.exists(name); }));
    EXPECT_LT(watch.elapsed(), 1s + slack) << "it was not released, it ended";
    EXPECT_FALSE(left.isHeldByCurrentThread());
}

TEST_F(LateReply, IsNeverTakenForTheAnswerToAnotherRequest)
{
    config.commandTimeout = 250ms;
    constexpr int markers = 6;
    const auto marker = [](int i) { return "marker:" + std::to_string(i); };
    const auto isOfMarker = [&](int i) {
        const auto left = lockOf(marker(i)).remainingTimeToLive();
        return left && *left > i * 100s - 50s && *left <= i * 100s;
    };
    for (int i = 1; i <= markers; ++i) {
        foreignLock(marker(i), i * 100s);
    }
    for (int late = 1; late <= 3; ++late) {
        inject({.command = "EVALSHA", .script = marker(late), .direction = Direction::reply},
               Action::delay(config.commandTimeout + 300ms));
        for (int i = late; i <= markers; ++i) {
            EXPECT_TRUE(isOfMarker(i)) << marker(i) << " after the late reply of " << marker(late);
        }
    }
    for (int i = 1; i <= markers; ++i) {
        redis.command({"DEL", marker(i)});
    }
    EXPECT_TRUE(seen->await(Event::disconnected, 3)) << "a connection whose reply is overdue must not be used again";
}

TEST_F(LateReply, OfACallerThatLeftIsReadInItsOrder)
{
    config.commandTimeout = 6s;
    config.unreachableAfter = 20s;
    foreignLock(30s);
    foreignLock("marker", 100s);
    inject(reply(redisLockLock, 2), Action::stallDirection());
    EXPECT_FALSE(lock().tryLock(300ms, 1s)) << "it left though the reply did not come";
    proxy.resume();
    const auto left = lockOf("marker").remainingTimeToLive(); // its reply comes after the late one
    ASSERT_TRUE(left);
    EXPECT_GT(*left, 50s);
    EXPECT_EQ(seen->count(Event::disconnected), 0U);
    redis.command({"DEL", "marker", name});
}

} // namespace
} // namespace redislock::test
