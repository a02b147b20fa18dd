// Guards and clients that are destroyed at bad moments.
#include "behaviour/worker.hpp"
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <stdexcept>

namespace redislock::test {
namespace {

using GuardDestructor = FaultTest;
using ClientDestructor = FaultTest;

TEST_F(GuardDestructor, WhileAnExceptionPassesNeitherThrowsNorWaitsThoughTheRequestIsLost)
{
    config.commandTimeout = 2s;
    for (const auto& [how, loss] : lostRequests()) {
        SCOPED_TRACE(how);
        inject(request(redisLockUnlock), loss);
        Stopwatch watch;
        EXPECT_THROW(
            {
                const LockGuard outer(lock(), Lease(20s));
                const LockGuard guard(lock(), Lease(20s));
                watch.restart();
                throw std::runtime_error("the work failed");
            },
            std::runtime_error);
        EXPECT_LT(watch.elapsed(), config.commandTimeout) << "it waited";
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    }
}

TEST_F(GuardDestructor, WhileTheServerIsFrozenDoesNotWait)
{
    config.commandTimeout = 2s;
    {
        const LockGuard first(lock(), Lease(20s)); // so that there is a connection
    }
    auto guard = std::make_unique<LockGuard>(lock(), Lease(20s));
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
        guards.emplace_back(lock(), Lease(800ms));
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
    EXPECT_FALSE(client().getLock(name).tryLock(0ms, ec)); // the fault is real: a new client's requests are lost
    EXPECT_EQ(ec, Errc::unreachable);
}

TEST_F(GuardDestructor, OnTheClientsOwnThreadDoesNotWait)
{
    config.commandTimeout = 2s;
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
            other.lock(ec); // a call that would have to wait is refused
            ended.set_value({watch.elapsed(), ec});
        }
    });
    auto end = ended.get_future();
    ASSERT_EQ(end.wait_for(10s), std::future_status::ready);
    const auto [time, refused] = end.get();
    EXPECT_LT(time, config.commandTimeout) << "it waited";
    EXPECT_EQ(refused, Errc::wouldDeadlock);
    EXPECT_FALSE(lock().isHeldByCurrentThread());
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    EXPECT_EQ(proxy.hits(lost), 1U);
    seen->onEvent(nullptr);
}

TEST_F(GuardDestructor, InAStopCallbackOfAnotherLostHoldDoesNotWait)
{
    const RedisLock lostOne = lockOf("lost");
    std::optional<LockGuard> guard(std::in_place, lock(), Lease(20s));
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
    { // this release cannot be answered
        const LockGuard guard(lockOf("guarded"), Lease(1000ms));
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
            const LockGuard guard(lock(), Lease(25s));
        }
        forgetClient();
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, slack)) << "the release was not drained";
    }
}

/// A waiter that is being granted a lock when its client ends.
struct GrantedMeanwhile {
    enum class Asks { onThread, onThreadOnce, asynchronously };
    enum class Behind { nobody, guard, unlock, stranger };
    const char* what;
    Asks asks;
    Behind behind = Behind::nobody;
};

/// Answers are held back until all waiters have learned of the end.
TEST_F(ClientDestructor, LeavesNothingToThoseWhoAreToldOfIt)
{
    using Asks = GrantedMeanwhile::Asks;
    using Behind = GrantedMeanwhile::Behind;
    config.commandTimeout = config.unreachableAfter = 30s; // so that no request is repeated
    config.watchdogTimeout = 180s;
    for (const auto& [what, asks, behind] : std::vector<GrantedMeanwhile>{
             {"a thread", Asks::onThread},
             {"a thread that tries once", Asks::onThreadOnce},
             {"an asynchronous call", Asks::asynchronously},
             {"a thread that was told", Asks::onThread, Behind::stranger},
             {"an asynchronous call that was told", Asks::asynchronously, Behind::stranger},
             {"a thread behind a guard", Asks::onThread, Behind::guard},
             {"an asynchronous call behind a guard", Asks::asynchronously, Behind::guard},
             {"a thread behind unlock()", Asks::onThread, Behind::unlock},
         }) {
        SCOPED_TRACE(what);
        loadScripts();
        const RedisLock wanted = lock();
        const RedisLock kept = lockOf("kept"); // lost as soon as the client ends
        kept.lock(60s);
        const auto refused = proxy.add(reply(redisLockLock, 2), Action::pass());
        RuleId held{};
        Worker holder;
        LockGuard guard;
        if (behind == Behind::guard) {
            guard = asks == Asks::asynchronously
                        ? wanted.asyncLock(60s, boost::asio::use_future).get()
                        : LockGuard(wanted, Lease(60s)); // this acquire uses the same connection
        } else if (behind == Behind::unlock) {
            holder.run([&] { wanted.lock(60s); });
        } else if (behind == Behind::stranger) {
            foreignLock(60s);
        } else {
            held = inject(reply(redisLockLock), Action::stallDirection());
        }
        const auto before = redis.hash(name);
        const auto told = std::make_shared<std::promise<std::error_code>>();
        std::thread waiter;
        if (asks == Asks::asynchronously) {
            wanted.asyncLock(60s, [told](boost::system::error_code ec, const LockGuard&) { told->set_value(ec); });
        } else {
            waiter = std::thread([&, once = asks == Asks::onThreadOnce] {
                std::error_code ec;
                (void)wanted.tryLock(once ? Wait(oneAttempt) : Wait(waitForever), 60s, ec);
                told->set_value(ec);
            });
        }
        std::future<Unlocked> unlocked;
        if (behind == Behind::stranger) {
            EXPECT_TRUE(proxy.awaitHits(refused)) << "asked again when it listened";
            held = inject(reply(redisLockLock), Action::stallDirection());
            EXPECT_EQ(foreignUnlock(), 1);
        } else if (behind != Behind::nobody) {
            held = inject(reply(redisLockUnlock), Action::stallDirection());
            guard = LockGuard();
            unlocked = holder.start(
                [&, behind = behind] { return behind == Behind::unlock ? wanted.unlock() : Unlocked::released; });
        }
        EXPECT_TRUE(eventually([&] { return redis.exists(name) && redis.hash(name) != before; })) << "granted";
        EXPECT_TRUE(proxy.awaitHits(held));
        auto ending = std::async(std::launch::async, [this] { return client().shutdown(20s); });
        EXPECT_TRUE(eventually([&] { return !kept.isHeldByCurrentThread(); }));
        EXPECT_EQ(ending.wait_for(0s), std::future_status::timeout) << "it is not known yet what was granted";
        proxy.resume();
        EXPECT_TRUE(ending.get());
        EXPECT_FALSE(redis.exists(name));
        EXPECT_EQ(told->get_future().get(), Errc::shutdown);
        if (waiter.joinable()) {
            waiter.join();
        }
        EXPECT_TRUE(!unlocked.valid() || unlocked.get() == Unlocked::released);
        redis.command({"DEL", "kept", name});
        forgetClient();
        proxy.clear();
    }
}

/// Waiters for a connection cannot have anything in Redis.
TEST_F(ClientDestructor, DoesNotWaitForThoseWhoWaitForAConnection)
{
    config.commandTimeout = config.connectTimeout = config.unreachableAfter = 60s;
    proxy.stall();
    auto waiter = waitInBackground(60s);
    auto waitingToo = lockOf("another").asyncLock(60s, boost::asio::use_future);
    std::thread permits([semaphore = client().getSemaphore("permits")] {
        std::error_code ec;
        semaphore.acquire(1, ec);
        EXPECT_EQ(ec, Errc::shutdown);
    });
    expectFault(eventually([&] { return proxy.connections() == 2; }), "a server that does not answer");
    const Stopwatch watch;
    EXPECT_TRUE(client().shutdown(20s));
    EXPECT_LT(watch.elapsed(), 20s);
    EXPECT_EQ(waiter.get().error, Errc::shutdown);
    EXPECT_ANY_THROW((void)waitingToo.get());
    permits.join();
    endFaults();
    forgetClient();
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
