// Guards and clients that are destroyed at bad moments.
#include "fault/fault_test.hpp"

#include <stdexcept>

namespace redislock::test {
namespace {

using GuardDestructor = FaultTest;
using ClientDestructor = FaultTest;

TEST_F(GuardDestructor, WhileAnExceptionPassesNeitherThrowsNorWaitsThoughTheRequestIsLost)
{
    config.commandTimeout = 600ms;
    for (const auto& [how, loss] : lostRequests()) {
        SCOPED_TRACE(how);
        inject(request(redisLockUnlock), loss);
        Stopwatch watch;
        EXPECT_THROW(
            {
                const LockGuard outer(lock(), 20s);
                const LockGuard guard(lock(), 20s);
                watch.restart();
                throw std::runtime_error("the work failed");
            },
            std::runtime_error);
        EXPECT_LT(watch.elapsed(), config.commandTimeout) << "it waited";
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 2 * config.commandTimeout + slack));
    }
}

TEST_F(GuardDestructor, WhileTheServerIsFrozenDoesNotWait)
{
    config.commandTimeout = 600ms;
    {
        const LockGuard first(lock(), 20s); // so that there is a connection
    }
    auto guard = std::make_unique<LockGuard>(lock(), 20s);
    server.freeze();
    const Stopwatch watch;
    guard.reset();
    EXPECT_LT(watch.elapsed(), config.commandTimeout) << "it waited";
    EXPECT_FALSE(lock().isHeldByCurrentThread());
    std::error_code ec;
    EXPECT_FALSE(lock().tryLock(0ms, 20s, ec));
    expectFault(ec == Errc::unreachable, "a frozen server");
    server.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 10s));
}

TEST_F(GuardDestructor, AfterTheClientsEndDoesNothing)
{
    std::vector<LockGuard> guards;
    for (int i = 0; i < 2; ++i) {
        guards.emplace_back(lock(), 800ms);
    }
    const auto stop = guards[0].stopToken();
    const RedisLock outliving = lock();
    inject(request(redisLockLock, 0), Action::drop());
    forgetClient();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(guards[0]);
    EXPECT_FALSE(outliving.isHeldByCurrentThread());
    std::error_code ec;
    EXPECT_FALSE(outliving.tryLock(ec));
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_EQ(guards[0].release(), Unlocked::alreadyLost);
    proxy.clearRequestLog();
    const Stopwatch watch;
    guards.clear();
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_TRUE(proxy.requestLog().empty()) << "it sent something";
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    EXPECT_FALSE(client().getLock(name).tryLock(0ms, ec)); // the fault is real: the requests of a new client are lost
    EXPECT_EQ(ec, Errc::unreachable);
}

TEST_F(GuardDestructor, OnTheClientsOwnThreadDoesNotWait)
{
    config.commandTimeout = 600ms;
    const auto lost = inject(request(redisLockUnlock), Action::drop());
    std::optional<LockGuard> guard(std::in_place, lock());
    const RedisLock other = lockOf("another");
    std::promise<std::pair<std::chrono::nanoseconds, std::error_code>> ended;
    std::atomic<bool> done{false};
    seen->onEvent([&](const Recorder::Told& told) {
        if (told.event == Event::renewed && !done.exchange(true)) {
            const Stopwatch watch;
            guard.reset();
            std::error_code ec;
            other.lock(ec); // whatever would have to wait is refused
            ended.set_value({watch.elapsed(), ec});
        }
    });
    auto end = ended.get_future();
    ASSERT_EQ(end.wait_for(10s), std::future_status::ready);
    const auto [time, refused] = end.get();
    EXPECT_LT(time, config.commandTimeout) << "it waited";
    EXPECT_EQ(refused, Errc::wouldDeadlock);
    EXPECT_FALSE(lock().isHeldByCurrentThread());
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 2 * config.commandTimeout + slack));
    EXPECT_EQ(proxy.hits(lost), 1U);
    seen->onEvent(nullptr);
}

TEST_F(GuardDestructor, InAStopCallbackOfAnotherLostHoldDoesNotWait)
{
    const RedisLock lostOne = lockOf("lost");
    std::optional<LockGuard> guard(std::in_place, lock(), 20s);
    lostOne.lock();
    std::atomic<bool> ended{false};
    const std::stop_callback onLost(lostOne.stopToken(), [&] {
        guard.reset();
        ended = true;
    });
    expectFault(redis.command({"DEL", "lost"}).integer() == 1, "a deletion");
    EXPECT_TRUE(eventually([&] { return ended.load(); }));
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    EXPECT_EQ(lostOne.unlock(), Unlocked::alreadyLost);
}

TEST_F(ClientDestructor, WithHeldLocksAndWaitersOnADeadServerEndsInTime)
{
    config.unreachableAfter = 30s;
    const RedisLock held = lock();
    held.lock(1000ms);
    const auto stop = held.stopToken();
    auto waiter = waitInBackground(30s);
    { // a release that cannot be answered
        const LockGuard guard(lockOf("guarded"), 1000ms);
        server.freeze();
    }
    const Stopwatch watch;
    forgetClient();
    EXPECT_LT(watch.elapsed(), 1s + slack);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_EQ(waiter.get().error, Errc::shutdown);
    expectFault(server.isRunning(), "a frozen server");
    server.thaw();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name) && !redis.exists("guarded"); }));
}

TEST_F(ClientDestructor, SendsTheReleasesOfGuardsThoughTheConnectionBreaks)
{
    for (const auto& [how, loss] : std::vector<Loss>{{"request lost with the connection", Action::cut()},
                                                     {"reply lost with the connection", Action::cutAfterForward()}}) {
        SCOPED_TRACE(how);
        inject(request(redisLockUnlock), loss);
        {
            const LockGuard guard(lock(), 25s);
        }
        forgetClient();
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, slack)) << "the release was not drained";
    }
}

TEST_F(ClientDestructor, InAnObserversFunctionDoesNotWaitForItself)
{
    config.watchdogTimeout = 600ms;
    std::promise<void> destroyed;
    std::atomic<bool> done{false};
    auto own = std::make_unique<Client>(config);
    const RedisLock held = own->getLock(name);
    held.lock();
    const auto stop = held.stopToken();
    inject(request(redisLockRenew, 0), Action::drop());
    seen->onEvent([&](const Recorder::Told& told) {
        if (told.event == Event::atRisk && !done.exchange(true)) {
            own.reset();
            destroyed.set_value();
        }
    });
    ASSERT_EQ(destroyed.get_future().wait_for(10s), std::future_status::ready);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.isHeldByCurrentThread());
    seen->onEvent(nullptr);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
}

} // namespace
} // namespace redislock::test
