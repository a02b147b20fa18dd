// Renewals that fail, and the holder's belief meanwhile.
#include "fault/deadline.hpp"
#include "fault/denied_user.hpp"
#include "fault/fault_test.hpp"

#include <algorithm>

namespace redislock::test {
namespace {

using LostRequest = FaultTest;
using LostReply = FaultTest;
using LateReply = FaultTest;
using SwallowedReplies = FaultTest;
using FrozenServer = FaultTest;
using ManyRenewals = FaultTest;

TEST_F(LostRequest, RenewalIsRepeatedOnAFreshConnection)
{
    config.watchdogTimeout = 1800ms;
    lock().lock();
    inject(request(redisLockRenew, 0), Action::drop(), 2);
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_GE(seen->count(Event::renewalFailed), 2U);
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(lock().unlock(), Unlocked::released);
}

TEST_F(LostRequest, RenewalThatWaitsForAConnectionIsNotSentAfterTheEndOfItsHold)
{
    config.watchdogTimeout = 3s;
    inject({.command = "PING", .direction = Direction::reply, .nth = 0}, Action::delay(200ms)); // delays each handshake
    const auto cut = inject(request(redisLockRenew, 0), Action::cut());
    const RedisLock held = lock();
    held.lock();
    const RedisLock other = client().getLock(name + ":other");
    other.lock();
    ASSERT_TRUE(seen->await(Event::renewalFailed, 2));
    const auto failed = seen->count(Event::renewalFailed);
    ASSERT_TRUE(seen->await(Event::renewalFailed, failed + 1)); // now both wait for the next connection
    EXPECT_EQ(held.unlock(), Unlocked::released);
    const auto renewals = requestsFor(redisLockRenew).size();
    proxy.remove(cut);
    EXPECT_TRUE(seen->await(Event::renewed));
    const auto requests = requestsFor(redisLockRenew);
    ASSERT_EQ(requests.size(), renewals + 1);
    EXPECT_EQ(requests.back().arguments.at(2), "1") << "the other's, and no more";
    EXPECT_EQ(requests.back().arguments.at(3), other.name());
    EXPECT_EQ(other.unlock(), Unlocked::released);
}

TEST_F(ManyRenewals, ShareARequestAndEachHasItsOwnAnswer)
{
    config.watchdogTimeout = 3s;
    constexpr std::size_t count = 150;
    std::vector<LockGuard> held;
    for (std::size_t i = 0; i < count; ++i) {
        held.emplace_back(lockOf(name + ":" + std::to_string(i)));
    }
    const auto isGood = [](const LockGuard& guard) { return static_cast<bool>(guard); };
    inject(request(redisLockRenew), Action::cutAfterForward()); // all are sent again
    redis.command({"DEL", name + ":7"});
    redis.command({"SET", name + ":11", "something else"});
    EXPECT_TRUE(seen->await(Event::renewed, 2 * (count - 2)));
    EXPECT_EQ(std::ranges::count_if(held, isGood), static_cast<std::ptrdiff_t>(count - 2));
    EXPECT_FALSE(held[7]);
    EXPECT_FALSE(held[11]);
    EXPECT_EQ(seen->count(Event::lost), 2U);
    EXPECT_LE(requestsFor(redisLockRenew).size(), 15U);
    held.clear();
    redis.command({"DEL", name + ":11"});
}

TEST_F(ManyRenewals, ThatAreDeniedOfOneLockAreNotDeniedOfOthers)
{
    config.watchdogTimeout = 1500ms;
    DeniedUser user(redis, config);
    const LockGuard first(lockOf(name + ":1"));
    const LockGuard denied(lockOf("another"));
    const LockGuard second(lockOf(name + ":2"));
    user.deny({"may not touch one of its names", "NOPERM", {"resetkeys", "~" + name + "*"}, false});
    EXPECT_TRUE(seen->await(Event::lost));
    EXPECT_FALSE(denied);
    const auto renewed = seen->count(Event::renewed);
    EXPECT_TRUE(seen->await(Event::renewed, renewed + 4));
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_EQ(seen->count(Event::lost), 1U);
    expectFault(errorsSent("NOPERM") > 0, "no renewal was denied");
    EXPECT_TRUE(eventually([&] { return !redis.exists("another"); }));
}

TEST_F(LostReply, RenewalDoesNotMoveTheDeadlineAndIsRepeatedOnAFreshConnection)
{
    config.watchdogTimeout = 1800ms;
    const RedisLock held = lock();
    held.lock();
    const auto lost = inject(request(redisLockRenew, 0), Action::swallow());
    const Deadline granted(held);
    ASSERT_TRUE(proxy.awaitHits(lost, 2));
    EXPECT_TRUE(eventually([&] { return redis.pttl(name) > 1300ms; })) << "the renewal was not executed";
    EXPECT_LE(Deadline(held).earliest, granted.latest);
    proxy.remove(lost);
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_GT(Deadline(held).latest, granted.earliest);
    const auto renewals = requestsFor(redisLockRenew);
    ASSERT_GE(renewals.size(), 3U);
    EXPECT_NE(renewals[0].connection, renewals[1].connection);
    EXPECT_EQ(holdersIn(redisLockRenew).size(), 1U);
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(SwallowedReplies, HoldIsLostAtTheMomentThatValidForSaidAndStaysLost)
{
    config.watchdogTimeout = 1200ms;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    std::atomic<std::int64_t> stopped{0};
    const std::stop_callback onStop(stop, [&] { stopped = bootTime().count(); });
    inject({.command = "*", .direction = Direction::reply, .nth = 0}, Action::drop());
    const Deadline deadline(held);
    expectHeldExactlyUntil(deadline, held);
    EXPECT_TRUE(eventually([&] { return stopped != 0; }, slack));
    EXPECT_GE(stopped, deadline.earliest.count());
    EXPECT_TRUE(stop.stop_requested());
    EXPECT_TRUE(held.stopToken().stop_requested());
    EXPECT_TRUE(seen->await(Event::lost));
    EXPECT_EQ(seen->count(Event::atRisk), 1U);
    EXPECT_EQ(seen->count(Event::renewed), 0U);
    EXPECT_TRUE(redis.exists(name)) << "the renewals were executed";

    endFaults();
    const auto lostHolder = seen->all(Event::lost).at(0).holder;
    const RedisLock other = lockOf("another");
    other.lock();
    EXPECT_TRUE(seen->await(Event::renewed, 3)) << "renewals work again";
    const auto renewals = requestsFor(redisLockRenew);
    const auto isOfTheLost = [&](const LoggedRequest& each) { return each.arguments[4] == lostHolder; };
    const auto others = std::ranges::find_if_not(renewals, isOfTheLost);
    EXPECT_TRUE(std::none_of(others, renewals.end(), isOfTheLost)) << "a lost hold was renewed";
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(seen->count(Event::lost), 1U);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    std::error_code ec;
    held.unlock(ec);
    EXPECT_EQ(ec, Errc::notHeld);
    EXPECT_EQ(other.unlock(), Unlocked::released);
    redis.command({"DEL", name});
}

TEST_F(LostReply, HoldThatIsLostThoughRedisRenewedItIsGivenBackAtOnce)
{
    config.watchdogTimeout = 3s;
    const RedisLock plain = lock();
    const FairLock fair = client().getFairLock(name + ":fair");
    const RedisLock fixed = lockOf(name + ":fixed");
    plain.lock();
    fair.lock();
    ASSERT_TRUE(fixed.tryLock(0s, 1s));
    inject(request(redisLockRenew, 0), Action::swallow());
    redis.command({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_FALSE(lockOf(name + ":free").isLocked()); // over a new connection: all are asked for
    ASSERT_TRUE(seen->await(Event::atRisk, 3));
    EXPECT_TRUE(eventually([&] { return redis.pttl(name) > 1500ms && redis.pttl(fair.name()) > 1500ms; }, 300ms))
        << "no renewal was executed";
    auto unobserved = config;
    unobserved.observer = nullptr;
    const Client other(unobserved);
    const FairLock next = other.getFairLock(fair.name());
    EXPECT_TRUE(next.tryLock(10s));
    EXPECT_EQ(seen->count(Event::lost), 3U);
    EXPECT_EQ(next.unlock(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 300ms)) << "it stays until its lease is over";
    EXPECT_EQ(seen->count(Event::released), 0U) << "it was lost, as the observer was told";
    EXPECT_EQ(plain.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(fair.unlock(), Unlocked::alreadyLost);
    const auto asksForFixed = [&](const LoggedRequest& sent) {
        return std::ranges::find(sent.arguments, fixed.name()) != sent.arguments.end();
    };
    EXPECT_TRUE(std::ranges::any_of(requestsFor(redisLockRenew), asksForFixed)) << "the fault did not hit it";
    EXPECT_TRUE(eventually([&] { return std::ranges::any_of(requestsFor(redisLockUnlock), asksForFixed); }, 300ms))
        << "what was asked may have reached Redis late, and set the time that was left then";
    EXPECT_EQ(fixed.unlock(), Unlocked::alreadyLost);
}

TEST_F(LostReply, HoldWhoseInnerLevelHadALongerLeaseIsGivenBackWhenTheOuterOneIsOver)
{
    const RedisLock outer = lock();
    ASSERT_TRUE(outer.tryLock(0s, 500ms));
    ASSERT_TRUE(outer.tryLock(0s, 20s));
    inject(request(redisLockUnlock), Action::swallow());
    EXPECT_EQ(outer.unlock(), Unlocked::stillHeld);
    EXPECT_GT(redis.pttl(name), 15s);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 1s));
    EXPECT_EQ(outer.unlock(), Unlocked::alreadyLost);
}

TEST_F(SwallowedReplies, FixedLeaseIsLostAtTheMomentThatValidForSaid)
{
    const LockGuard guard(lock(), Lease(600ms));
    inject({.command = "*", .direction = Direction::reply, .nth = 0}, Action::drop());
    const auto stop = guard.stopToken();
    expectHeldExactlyUntil(Deadline(lock()), lock());
    EXPECT_FALSE(guard);
    EXPECT_EQ(guard.validFor(), 0ms);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }, slack));
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(0ms, 600ms, ec)); // shows that the fault is real: nothing is answered
    EXPECT_EQ(ec, Errc::unreachable);
}

TEST_F(LateReply, OfARenewalDoesNotReviveALostHold)
{
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const Deadline deadline(held);
    // renewals are refused until shortly before the deadline; the last tries are executed then, and answered after the
    // deadline
    const auto busy = inject(reply(redisLockRenew, 0), Action::replace("-BUSY not now\r\n"));
    EXPECT_TRUE(eventually([&] { return bootTime() > deadline.earliest - 400ms; }, 5s));
    const auto late = inject(reply(redisLockRenew, 0), Action::stallDirection());
    proxy.remove(busy); // only now: no answer gets through between the two
    EXPECT_TRUE(eventually([&] { return redis.pttl(name) > 800ms; }, 400ms)) << "no renewal was executed";
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    ASSERT_GE(proxy.hits(late), 1U);
    proxy.remove(late);
    proxy.resume();
    const RedisLock other = lockOf("another"); // its renewal comes after the late reply, or on the next connection
    other.lock();
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_EQ(seen->all(Event::renewed).at(0).holder, seen->all(Event::acquired).at(1).holder);
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_TRUE(held.stopToken().stop_requested());
    EXPECT_EQ(seen->count(Event::lost), 1U);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(other.unlock(), Unlocked::released);
}

TEST_F(FrozenServer, ForLessThanTheLeaseLosesNothing)
{
    config.watchdogTimeout = 6s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    ASSERT_TRUE(seen->await(Event::renewed)); // so that there is a connection for renewals
    server.freeze();
    EXPECT_TRUE(proxy.awaitRequests(request(redisLockRenew), 2));
    expectFault(seen->await(Event::renewalFailed), "a renewal that the frozen server did not answer");
    EXPECT_TRUE(held.isHeldByCurrentThread());
    server.thaw();
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_FALSE(stop.stop_requested());
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(FrozenServer, ForMoreThanTheLeaseLosesTheHoldInTimeAndAWaiterGetsIt)
{
    config.watchdogTimeout = 1200ms;
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const Deadline deadline(held);
    Config others = config;
    others.observer = nullptr;
    Client other(others);
    auto waiter = waitInBackground(other, 20s);
    ASSERT_TRUE(
        proxy.awaitRequests(request(redisLockLock), 3)); // ours, and the waiter's before and after its subscription
    server.freeze();
    const bool renewedMeanwhile = seen->count(Event::renewed) > 0;
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    if (!renewedMeanwhile) {
        EXPECT_LE(bootTime(), deadline.latest + slack);
    }
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_TRUE(seen->await(Event::lost));
    expectFault(server.isRunning() && waiter.wait_for(0s) == std::future_status::timeout, "a frozen server");
    // the key ends in the server's time: the server must have been frozen for longer than the lease
    EXPECT_TRUE(eventually([&] { return bootTime() > deadline.latest + 100ms; }));
    server.thaw();
    expectGranted(waiter.get());
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(seen->count(Event::lost), 1U);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
}

} // namespace
} // namespace redislock::test
