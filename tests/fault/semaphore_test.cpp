// Semaphores: a request that is lost, late or doubled neither takes nor gives twice.
#include "fault/counter_fault.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

using detail::scripts::permitExpirableSemaphoreAcquire;
using detail::scripts::semaphoreAcquire;
using detail::scripts::semaphoreAdd;
using detail::scripts::semaphoreDrain;
using detail::scripts::semaphoreWithdraw;

/// The release goes over another connection than the acquire, which overtakes it. The release is answered before
/// anybody looks at the refusal: a gate and the proxy bring this about.
TEST_F(CounterFault, WhatThisClientGivesBackIsNotMissingForItsOtherCalls)
{
    config.watchdogTimeout = 60s; // so that a command has the time commandTimeout
    config.commandTimeout = 10s;
    config.unreachableAfter = 20s;
    const auto semaphore = client().getSemaphore(counter);
    const auto permits = client().getPermitExpirableSemaphore(counter);
    const auto latch = client().getCountDownLatch(counter);
    Permit permit;
    const struct {
        const char* name;
        const Script& question;
        std::function<void()> prepare;
        std::function<void()> give;
        std::function<bool()> ask;
    } cases[] = {
        {"leased permit", permitExpirableSemaphoreAcquire,
         [&] {
             ASSERT_TRUE(permits.trySetPermits(1));
             permit = permits.acquire(60s);
         },
         [&] { permit = Permit(); }, [&] { return static_cast<bool>(permits.tryAcquire(oneAttempt, 60s)); }},
        {"permit", semaphoreAcquire, [&] { set(0); }, [&] { semaphore.asyncRelease(1, [](error_code) {}); },
         [&] { return semaphore.tryAcquire(); }},
        {"latch", detail::scripts::counterGet, [&] { set(1); },
         [&] { latch.asyncCountDown([](error_code, std::int64_t) {}); }, [&] { return latch.wait(oneAttempt); }},
    };
    for (const auto& each : cases) {
        SCOPED_TRACE(each.name);
        each.prepare();
        Gate gate(lock());
        gate.await();
        each.give(); // its release is sent behind the gate
        const auto refusal = inject(reply(each.question), Action::stallDirection(), 1);
        auto asked = std::async(std::launch::async, each.ask);
        ASSERT_TRUE(proxy.awaitHits(refusal));
        gate.open();
        EXPECT_EQ(client().getSemaphore("another").asyncAvailablePermits(asio::use_future).get(), 0) << "behind it";
        proxy.resume();
        EXPECT_TRUE(asked.get());
        permits.asyncAvailablePermits(asio::use_future).get(); // by this answer the permits are given back
        redis.command({"DEL", counter, timeouts});
    }
}

using SemaphoreFault = CounterFault;

TEST_F(SemaphoreFault, AcquireTakesItsPermitsOnceWhateverIsLost)
{
    const auto semaphore = client().getSemaphore(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(10);
        inject(request(semaphoreAcquire), loss);
        semaphore.acquire(3);
        EXPECT_EQ(value(), "7");
        inject(request(semaphoreDrain), loss);
        EXPECT_EQ(semaphore.drainPermits(), 7);
        EXPECT_EQ(value(), "0");
    }
}

TEST_F(SemaphoreFault, ReleaseGivesItsPermitsOnceWhateverIsLost)
{
    const auto semaphore = client().getSemaphore(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(1);
        inject(request(semaphoreAdd), loss);
        semaphore.release(3);
        EXPECT_EQ(value(), "4");
    }
}

TEST_F(SemaphoreFault, AsynchronousCallsTakeAndGiveOnceWhateverIsLost)
{
    const auto semaphore = client().getSemaphore(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(5);
        inject(request(semaphoreAcquire), loss);
        semaphore.asyncAcquire(2, boost::asio::use_future).get();
        EXPECT_EQ(value(), "3");
        inject(request(semaphoreAdd), loss);
        semaphore.asyncRelease(2, boost::asio::use_future).get();
        EXPECT_EQ(value(), "5");
    }
}

TEST_F(SemaphoreFault, AcquireThatIsGivenUpLeavesNothingTaken)
{
    config.unreachableAfter = 800ms;
    set(5);
    const auto lost = inject(reply(semaphoreAcquire, 0), Action::swallow());
    std::error_code ec;
    client().getSemaphore(counter).acquire(2, ec);
    EXPECT_EQ(ec, Errc::unreachable);
    proxy.remove(lost);
    EXPECT_TRUE(isLeft("5"));
}

TEST_F(SemaphoreFault, LateCopyOfAnAcquireThatWasGivenUpTakesNothing)
{
    set(5);
    const auto late = inject(request(semaphoreAcquire), Action::stallDirection());
    std::error_code ec;
    EXPECT_FALSE(client().getSemaphore(counter).tryAcquire(2, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(proxy.awaitRequests(request(semaphoreWithdraw)));
    EXPECT_TRUE(eventually([&] { return redis.command({"KEYS", "redislock_request:*"}).elements.size() == 1; }));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late acquire did not run";
    EXPECT_EQ(value(), "5");
}

TEST_F(SemaphoreFault, CancelledAcquireGivesBackWhatItWasGranted)
{
    set(5);
    boost::asio::cancellation_signal cancel;
    const auto stalled = inject(reply(semaphoreAcquire), Action::delay(100ms));
    auto taken = client().getSemaphore(counter).asyncAcquire(
        2, boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    EXPECT_TRUE(proxy.awaitHits(stalled));
    EXPECT_EQ(value(), "3");
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW(taken.get(), boost::system::system_error);
    EXPECT_TRUE(isLeft("5"));
}

TEST_F(SemaphoreFault, ReleaseWithoutAnAnswerGoesOnInTheBackgroundAndCountsOnce)
{
    config.unreachableAfter = 800ms;
    set(1);
    const auto lost = inject(request(semaphoreAdd, 0), Action::drop());
    std::error_code ec;
    client().getSemaphore(counter).release(2, ec);
    EXPECT_EQ(ec, Errc::unreachable);
    EXPECT_EQ(value(), "1");
    proxy.remove(lost);
    EXPECT_TRUE(isLeft("3"));
}

TEST_F(SemaphoreFault, WaiterMissesNoReleaseWhileItsSubscriberIsGone)
{
    set(0);
    const auto semaphore = client().getSemaphore(counter);
    auto waiter = std::async(std::launch::async, [&] { return semaphore.tryAcquire(1, 15s); });
    auto asynchronous = semaphore.asyncTryAcquire(1, 15s, boost::asio::use_future);
    EXPECT_TRUE(somebodyListens(semaphoreChannel));
    redis.command({"MULTI"});
    redis.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    redis.command({"SET", counter, "2"});
    redis.command({"PUBLISH", semaphoreChannel, "2"});
    expectFault(redis.command({"EXEC"}).elements.at(0).integer() == 1, "subscriber killed");
    const Stopwatch watch;
    EXPECT_TRUE(waiter.get());
    EXPECT_TRUE(asynchronous.get());
    EXPECT_LT(watch.elapsed(), 1s + slack) << "the poll is every 20 s";
    EXPECT_EQ(value(), "0");
}

TEST_F(SemaphoreFault, LostMessageDelaysAWaiterByThePollAtMost)
{
    config.pollInterval = 300ms;
    set(0);
    const auto semaphore = client().getSemaphore(counter);
    inject({.command = "message", .direction = Direction::push, .nth = 0}, Action::drop());
    auto waiter = std::async(std::launch::async, [&] { return semaphore.tryAcquire(1, 15s); });
    EXPECT_TRUE(somebodyListens(semaphoreChannel));
    semaphore.release();
    const Stopwatch watch;
    EXPECT_TRUE(waiter.get());
    EXPECT_LT(watch.elapsed(), config.pollInterval + slack);
}

} // namespace
} // namespace redislock::test
