// Waiters whose wake-up is lost, refused or late.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

using MissedWakeUp = FaultTest;
using KilledSubscriber = FaultTest;
using DroppedPush = FaultTest;
using DoubledPush = FaultTest;
using QuietWait = FaultTest;
using RepeatedPush = FaultTest;
using RefusedSubscription = FaultTest;
using RefusedPublish = FaultTest;
using KeyWithoutTtl = FaultTest;
using VanishedKey = FaultTest;
using RestartedServer = FaultTest;

TEST_F(MissedWakeUp, UnlockBetweenTheFailedTryAndTheSubscriptionIsSeen)
{
    foreignLock(60s);
    const auto late = inject(subscription, Action::stallDirection());
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitHits(late));
    EXPECT_EQ(foreignUnlock(), 0) << "nobody can have been told";
    const Stopwatch watch;
    proxy.resume();
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_EQ(seen->count(Event::pushMissed), 0U);
}

TEST_F(KilledSubscriber, IsReplacedAndItsWaiterIsTold)
{
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    const auto isListening = [&] { return !redis.command({"PUBSUB", "CHANNELS"}).elements.empty(); };
    for (std::size_t kills = 1; kills <= 3; ++kills) {
        ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), kills + 1)); // asks again after each subscription
        ASSERT_TRUE(eventually(isListening));
        expectFault(redis.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer() == 1, "killed subscriber");
    }
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 5));
    ASSERT_TRUE(eventually(isListening));
    EXPECT_EQ(foreignUnlock(), 1);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(KilledSubscriber, UnlockWhileNobodyListensIsSeenAfterTheNextSubscription)
{
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const auto late = inject(subscription, Action::stallDirection());
    EXPECT_EQ(redis.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer(), 1);
    ASSERT_TRUE(proxy.awaitHits(late));
    EXPECT_EQ(foreignUnlock(), 0) << "nobody can have been told";
    const Stopwatch watch;
    proxy.resume();
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(KilledSubscriber, ThatIsSilentlyDeadIsNoticedAndReplaced)
{
    foreignLock(60s);
    const auto silent = inject({.command = "SUBSCRIBE", .direction = Direction::reply}, Action::stallDirection());
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitHits(silent));
    EXPECT_TRUE(proxy.awaitRequests(subscription, 2)) << "it was not replaced";
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    EXPECT_GE(foreignUnlock(), 1);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(DroppedPush, DelaysAWaiterByThePollAtMostAndIsReported)
{
    config.pollInterval = 700ms;
    foreignLock(60s);
    const auto dropped = inject({.command = "message", .direction = Direction::push, .nth = 0}, Action::drop());
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    EXPECT_EQ(foreignUnlock(), 1);
    const Stopwatch watch;
    ASSERT_TRUE(proxy.awaitHits(dropped));
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
    EXPECT_TRUE(seen->await(Event::pushMissed));
    EXPECT_EQ(seen->count(Event::pushMissed), 1U);
}

TEST_F(DoubledPush, WakesTwiceAndGrantsOnce)
{
    foreignLock(60s);
    inject({.command = "message", .direction = Direction::push, .nth = 0}, Action::duplicate());
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    for (std::size_t i = 1; i <= 3; ++i) { // though nothing was unlocked
        EXPECT_EQ(redis.command({"PUBLISH", detail::lockChannel(name), "0"}).integer(), 1);
        EXPECT_TRUE(proxy.awaitRequests(request(redisLockLock), 2 + i));
    }
    EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
    EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{foreigner, "1"}}));
    EXPECT_EQ(foreignUnlock(), 1);
    expectGranted(waiter.get());
    EXPECT_TRUE(seen->await(Event::acquired));
    EXPECT_EQ(seen->count(Event::acquired), 1U);
}

TEST_F(RepeatedPush, EachCausesATryThoughTheTryBeforeIsStillUnderWay)
{
    config.unreachableAfter = 30s;
    std::vector<std::jthread> crowd; // so that the waiter's own thread is slow to wake up
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
        crowd.emplace_back([](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
            }
        });
    }
    foreignLock(60s);
    auto waiter = waitInBackground(60s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const auto tries = [this] { return redis.commandCalls("evalsha"); };
    EXPECT_TRUE(eventually([&] { return tries() == 2; }));
    int unheard = 0;
    for (int round = 0; round < 500 && unheard == 0; ++round) {
        const auto before = tries(); // all are executed: none of them can answer a later message
        redis.command({"PUBLISH", detail::lockChannel(name), "0"});
        unheard += eventually([&] { return tries() > before; }, 3s) ? 0 : 1;
    }
    EXPECT_EQ(unheard, 0) << "a notification was not heard";
    EXPECT_EQ(foreignUnlock(), 1);
    expectGranted(waiter.get());
    crowd.clear();
    expectFault(tries() > 2, "notifications");
}

TEST_F(QuietWait, ForLongerThanTheWaitersPatienceIsNoOutage)
{
    config.unreachableAfter = 300ms;
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const Stopwatch watch;
    EXPECT_TRUE(eventually([&] { return watch.elapsed() > 2 * config.unreachableAfter; }));
    expectFault(requestsFor(redisLockLock).size() == 2, "a time in which nothing was asked");
    EXPECT_EQ(foreignUnlock(), 1);
    expectGranted(waiter.get());
}

TEST_F(RefusedSubscription, WaiterPollsAndIsReported)
{
    redis.command({"ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "resetchannels"});
    config.username = "mute";
    config.password = "pw";
    config.pollInterval = 400ms;
    foreignLock(60s);
    auto waiter = waitInBackground(20s);
    EXPECT_TRUE(seen->await(Event::subscribeRefused));
    expectFault(errorsSent("NOPERM") > 0, "refused SUBSCRIBE");
    EXPECT_EQ(foreignUnlock(), 0);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
    EXPECT_LE(seen->count(Event::disconnected), 1U) << "it keeps trying";
}

TEST_F(RefusedSubscription, EndsTheWaitInTime)
{
    redis.command({"ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "resetchannels"});
    config.username = "mute";
    config.password = "pw";
    config.pollInterval = 200ms;
    foreignLock(60s);
    const Stopwatch watch;
    EXPECT_FALSE(lock().tryLock(900ms, 10s));
    EXPECT_GE(watch.elapsed(), 900ms);
    EXPECT_LT(watch.elapsed(), 900ms + slack);
    EXPECT_GE(requestsFor(redisLockLock).size(), 8U) << "nothing wakes it: it asks as a SpinLock's";
    EXPECT_LE(requestsFor(redisLockLock).size(), 28U) << "it spins";
    expectFault(errorsSent("NOPERM") > 0, "refused SUBSCRIBE");
    foreignUnlock();
}

TEST_F(RefusedPublish, UnlockIsReleasedAllTheSameAndTheWaiterPolls)
{
    redis.command({"ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "resetchannels"});
    redis.command({"ACL", "LOG", "RESET"});
    config.pollInterval = 500ms;
    Config mute = config;
    mute.username = "mute";
    mute.password = "pw";
    mute.observer = nullptr;
    const Client silent(mute);
    const RedisLock held = silent.getLock(name);
    held.lock(20s);
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 3));
    const Stopwatch watch;
    EXPECT_EQ(held.unlock(), Unlocked::released);
    expectFault(!redis.command({"ACL", "LOG"}).elements.empty(), "refused PUBLISH");
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
    EXPECT_TRUE(seen->await(Event::pushMissed));
}

TEST_F(KeyWithoutTtl, OfAForeignerIsReportedAndTheWaitEndsInTime)
{
    foreignLock(-1ms);
    const Stopwatch watch;
    EXPECT_FALSE(lock().tryLock(700ms, 10s));
    EXPECT_GE(watch.elapsed(), 700ms);
    EXPECT_LT(watch.elapsed(), 700ms + slack);
    expectFault(seen->await(Event::keyWithoutTtl), "a key without time to live");
    EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{foreigner, "1"}}));
    EXPECT_EQ(redis.pttl(name), -1ms) << "it is not ours to change";
    redis.command({"DEL", name});
}

TEST_F(KeyWithoutTtl, IsPolledAndTheWaiterGetsTheLockWhenItGoes)
{
    config.pollInterval = 300ms;
    foreignLock(-1ms);
    auto waiter = waitInBackground(20s);
    EXPECT_TRUE(seen->await(Event::keyWithoutTtl, 4)) << "no polling";
    redis.command({"DEL", name}); // no message is published
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
    expectFault(seen->count(Event::keyWithoutTtl) > 0, "a key without time to live");
}

TEST_F(VanishedKey, IsTriedAgainAtOnce)
{
    foreignLock(60s);
    const auto vanished = inject(reply(redisLockLock), Action::replace("*2\r\n:-2\r\n$-1\r\n"));
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitHits(vanished));
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    EXPECT_EQ(seen->count(Event::keyWithoutTtl), 0U);
    redis.command({"DEL", name});
    redis.command({"PUBLISH", detail::lockChannel(name), "0"});
    expectGranted(waiter.get());
}

TEST_F(RestartedServer, InTheMiddleOfAWaitLetsTheWaiterIn)
{
    config.unreachableAfter = 20s;
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const auto before = server.pid();
    server.kill();
    EXPECT_TRUE(seen->await(Event::disconnected, 3)) << "no attempts to connect again";
    server.restart(); // the server comes back empty
    expectFault(server.pid() != before, "restarted server");
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), 2s + slack); // the longest pause between two attempts to connect, and some time
}

TEST_F(RestartedServer, ThatDoesNotComeBackEndsTheWaitAsUnreachable)
{
    config.unreachableAfter = 700ms;
    config.pollInterval = 200ms;
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    server.kill();
    expectFault(!server.isRunning(), "a dead server");
    const Stopwatch watch;
    const auto waited = waiter.get();
    EXPECT_FALSE(waited.granted);
    EXPECT_EQ(waited.error, Errc::unreachable);
    EXPECT_LT(watch.elapsed(), config.unreachableAfter + config.pollInterval + slack);
    server.restart();
    std::error_code ec; // by then the pauses between attempts to connect are longer than this client's patience
    EXPECT_TRUE(eventually([&] {
        client().connect(ec);
        return !ec;
    })) << ec.message();
}

} // namespace
} // namespace redislock::test
