// The connection that listens: dead, cut off, refused, and shared by many.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

using HalfOpenSubscriber = FaultTest;
using SlowSubscriber = FaultTest;
using RevokedChannel = FaultTest;
using BusySubscriber = FaultTest;
using LeavingWaiter = FaultTest;
using ThousandWaiters = FaultTest;

const Match heartbeat{.command = "PING", .direction = Direction::reply};

TEST_F(HalfOpenSubscriber, IsNoticedByItsHeartbeatAndReplaced)
{
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2)); // the waiter is subscribed, and has asked once more
    const auto dead = inject(heartbeat, Action::stallDirection());
    ASSERT_TRUE(proxy.awaitHits(dead));
    EXPECT_TRUE(proxy.awaitRequests(subscription, 2)) << "it was not replaced";
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 3));
    EXPECT_GE(foreignUnlock(), 1);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(SlowSubscriber, ThatTheServerCutsOffIsReplacedAndItsWaiterIsTold)
{
    config.commandTimeout = 5s; // so that no connection ends for another reason
    config.connectTimeout = 5s;
    redis.command({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 64kb 0 0"});
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    // more than the server buffers for a subscriber: it closes the connection instead
    redis.command({"PUBLISH", detail::lockChannel(name), std::string(256 * 1024, 'x')});
    expectFault(seen->await(Event::disconnected), "a subscriber that was cut off");
    EXPECT_TRUE(proxy.awaitRequests(subscription, 2)) << "it was not replaced";
    EXPECT_TRUE(eventually([&] {
        return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == 1;
    }));
    foreignUnlock();
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(RevokedChannel, ClosesTheConnectionAndTheWaiterPolls)
{
    redis.command({"ACL", "SETUSER", "narrowed", "on", ">pw", "~*", "&*", "+@all"});
    config.username = "narrowed";
    config.password = "pw";
    config.pollInterval = 400ms;
    foreignLock(60s);
    auto waiter = waitInBackground(20s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    redis.command({"ACL", "SETUSER", "narrowed", "resetchannels"});
    EXPECT_TRUE(seen->await(Event::subscribeRefused));
    expectFault(seen->count(Event::disconnected) >= 1, "a subscriber that was closed");
    EXPECT_EQ(foreignUnlock(), 0);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
}

TEST_F(BusySubscriber, WhoseHeartbeatIsRefusedStaysSubscribed)
{
    config.commandTimeout = 5s; // so that no connection ends for another reason
    config.connectTimeout = 5s;
    foreignLock(60s);
    auto waiter = waitInBackground(30s);
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const auto busy = inject(
        heartbeat, Action::replace("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
                                   "NOSAVE.\r\n"));
    ASSERT_TRUE(proxy.awaitHits(busy));
    EXPECT_EQ(foreignUnlock(), 1);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_EQ(seen->count(Event::disconnected), 0U);
    EXPECT_EQ(seen->count(Event::subscribeRefused), 0U);
}

TEST_F(LeavingWaiter, WhileAnotherJoinsLeavesTheSubscriptionToIt)
{
    inject({.command = "SUBSCRIBE", .direction = Direction::reply, .nth = 0}, Action::delay(3ms));
    inject({.command = "UNSUBSCRIBE", .direction = Direction::reply, .nth = 0}, Action::delay(3ms));
    for (int round = 0; round < 20; ++round) {
        foreignLock(60s);
        const std::chrono::milliseconds moment(round % 10);
        auto leaves = waitInBackground(20ms + moment);
        EXPECT_FALSE(leaves.get().granted);
        auto stays = waitInBackground(20s); // its SUBSCRIBE follows the UNSUBSCRIBE of the one that left
        if (round % 2 == 0) {
            EXPECT_TRUE(eventually([&] {
                return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == 1;
            }));
        }
        foreignUnlock();
        const Stopwatch watch;
        expectGranted(stays.get());
        EXPECT_LT(watch.elapsed(), slack);
    }
    EXPECT_TRUE(eventually([&] { return redis.command({"PUBSUB", "CHANNELS"}).elements.empty(); }));
}

TEST_F(ThousandWaiters, GetTheLockOneAfterTheOtherAndAskInTurn)
{
    constexpr std::size_t processes = 4; // clients; what matters is that each has its own waiters
    constexpr std::size_t threads = isSanitized ? 50 : 250;
    config.commandTimeout = 20s;
    config.connectTimeout = 20s;
    config.unreachableAfter = 60s;
    Config others = config;
    others.observer = nullptr;
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::thread> waiters;
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<std::size_t> served{0};
    std::atomic<std::size_t> waiting{0};
    foreignLock(60s);
    for (std::size_t i = 0; i < processes; ++i) {
        clients.push_back(std::make_unique<Client>(others));
        for (std::size_t j = 0; j < threads; ++j) {
            waiters.emplace_back([&, lock = clients.back()->getLock(name)] {
                ++waiting;
                std::error_code ec;
                if (lock.tryLock(60s, 60s, ec)) {
                    overlaps += ++inside == 1 ? 0 : 1;
                    --inside;
                    served += lock.unlock() == Unlocked::released ? 1 : 0;
                }
            });
        }
    }
    EXPECT_TRUE(eventually(
        [&] {
            return waiting == processes * threads &&
                   redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == processes;
        },
        10s));
    const auto before = redis.commandCalls("evalsha");
    EXPECT_EQ(foreignUnlock(), static_cast<std::int64_t>(processes));
    for (auto& waiter : waiters) {
        waiter.join();
    }
    EXPECT_EQ(served, processes * threads);
    EXPECT_EQ(overlaps, 0);
    const auto requests = redis.commandCalls("evalsha") - before;
    RecordProperty("requests", static_cast<int>(requests));
    // for each waiter its release, and at each release one try of each process
    EXPECT_LE(requests, processes * threads * (1 + processes) + 100) << "a herd";
    expectFault(served == processes * threads, "a thousand waiters");
    clients.clear();
}

} // namespace
} // namespace redislock::test
