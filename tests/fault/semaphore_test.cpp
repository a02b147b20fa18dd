// Semaphores and latches: a request that is lost, late or doubled neither takes, gives nor counts twice.
#include "fault/asynchronous_test.hpp"
#include "fault/denied_user.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace redislock::test {
namespace {

using detail::scripts::countDownLatchCountDown;
using detail::scripts::permitExpirableSemaphoreAcquire;
using detail::scripts::permitExpirableSemaphoreLease;
using detail::scripts::permitExpirableSemaphoreRelease;
using detail::scripts::semaphoreAcquire;
using detail::scripts::semaphoreAdd;
using detail::scripts::semaphoreDrain;
using detail::scripts::semaphoreWithdraw;

/// One counter beside the lock of the fixture. Only answers to requests, which expire, may be left of it.
class CounterFault : public FaultTest {
protected:
    CounterFault()
    {
        for (const auto* script :
             {&detail::scripts::counterGet, &detail::scripts::counterTrySet, &detail::scripts::counterDelete,
              &semaphoreAcquire, &semaphoreAdd, &semaphoreDrain, &semaphoreWithdraw, &permitExpirableSemaphoreAcquire,
              &permitExpirableSemaphoreLease, &permitExpirableSemaphoreRelease,
              &detail::scripts::permitExpirableSemaphoreCount, &countDownLatchCountDown}) {
            redis.command({"SCRIPT", "LOAD", script->text});
        }
    }

    void expectNothingLeft() override
    {
        // The second copy of a doubled request may run after the first was answered, and may leave an answer as well.
        forgetClient();
        EXPECT_TRUE(eventually([&] { return redis.info("connected_clients") == "1"; }));
        redis.command({"DEL", counter, timeouts});
        for (const Value& key : redis.command({"KEYS", "redislock_request:*"}).elements) {
            EXPECT_GT(redis.pttl(key.text()), 0ms) << key;
            redis.command({"DEL", key.text()});
        }
        FaultTest::expectNothingLeft();
    }

    static std::vector<Loss> everyLoss()
    {
        auto all = lostRequests();
        for (auto& loss : lostReplies()) {
            all.push_back(std::move(loss));
        }
        all.push_back({"request doubled", Action::duplicate()});
        return all;
    }

    void set(std::int64_t value) { redis.command({"SET", counter, std::to_string(value)}); }
    std::string value() { return redis.get(counter).value_or("none"); }
    bool isLeft(const std::string& expected, std::chrono::milliseconds within = 5s)
    {
        return eventually([&] { return value() == expected; }, within);
    }
    /// How many scripts were executed, for any client.
    std::uint64_t executed() { return redis.commandCalls("evalsha"); }
    std::int64_t listeners(const std::string& channel)
    {
        return redis.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer();
    }
    bool somebodyListens(const std::string& channel)
    {
        return eventually([&] { return listeners(channel) > 0; });
    }
    bool nobodyListens(const std::string& channel)
    {
        return eventually([&] { return listeners(channel) == 0; });
    }

    const std::string counter = "permits:7";
    const std::string timeouts = "{permits:7}:timeout";
    const std::string semaphoreChannel = detail::semaphoreChannel(counter);
    const std::string latchChannel = detail::latchChannel(counter);
};

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
using PermitFault = CounterFault;
using LatchFault = CounterFault;

/// The server denies the client's user its requests, and allows them again soon.
class DeniedCounterUser : public CounterFault {
protected:
    DeniedCounterUser()
    {
        config.unreachableAfter = 60s; // a call that returns sooner got the error
        config.commandTimeout = 5s;
    }

    /// Waits until a repetition in the background was denied too.
    void awaitDenial(const DeniedUser::Way& way, std::uint64_t before)
    {
        expectFault(eventually([&] { return errorsSent(way.error) >= before + 2; }), "a repetition that was denied");
    }

    DeniedUser user{redis, config};
};

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

TEST_F(PermitFault, AcquireTakesOnePermitWhateverIsLost)
{
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(5);
        inject(request(permitExpirableSemaphoreAcquire), loss);
        Permit permit = semaphore.acquire(20s);
        EXPECT_TRUE(permit);
        EXPECT_EQ(value(), "4");
        EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 1);
        inject(request(permitExpirableSemaphoreRelease), loss);
        EXPECT_EQ(permit.release(), Unlocked::released);
        EXPECT_EQ(value(), "5");
        EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
        permit = semaphore.asyncAcquire(nonExpiring, boost::asio::use_future).get();
        EXPECT_EQ(value(), "4");
        inject(request(permitExpirableSemaphoreRelease), loss);
        permit = Permit(); // the end of a permit does not wait
        EXPECT_TRUE(isLeft("5"));
    }
}

TEST_F(PermitFault, AcquireThatIsGivenUpLeavesNothingTakenThoughItComesLate)
{
    set(5);
    const auto late = inject(request(permitExpirableSemaphoreAcquire), Action::stallDirection());
    std::error_code ec;
    EXPECT_FALSE(client().getPermitExpirableSemaphore(counter).tryAcquire(0ms, nonExpiring, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(eventually([&] { return redis.command({"KEYS", "redislock_request:*"}).elements.size() == 1; }));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late acquire did not run";
    EXPECT_EQ(value(), "5");
    EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
}

TEST_F(PermitFault, AcquireThatIsCalledOffLeavesNothingTakenWhereverItIs)
{
    config.unreachableAfter = 20s;
    struct Kind {
        const char* name;
        const Script& script;
        std::function<bool(std::stop_token, std::error_code&)> acquire;
        std::function<std::int64_t()> ask;
    };
    const Kind kinds[] = {
        {"semaphore", semaphoreAcquire,
         [this](std::stop_token stop, std::error_code& ec) {
             return client().getSemaphore(counter).acquire(2, std::move(stop), ec);
         },
         [this] { return client().getSemaphore(counter).availablePermits(); }},
        {"leased permits", permitExpirableSemaphoreAcquire,
         [this](std::stop_token stop, std::error_code& ec) {
             const Permit taken = client().getPermitExpirableSemaphore(counter).acquire(600s, std::move(stop), ec);
             return static_cast<bool>(taken);
         },
         [this] { return client().getPermitExpirableSemaphore(counter).availablePermits(); }},
    };
    for (const Kind& kind : kinds) {
        for (const char* const point : {"connecting", "asking, not arrived", "asking, executed"}) {
            SCOPED_TRACE(std::string(kind.name) + ", " + point);
            const bool connecting = point == std::string_view("connecting");
            const bool executed = point == std::string_view("asking, executed");
            forgetClient();
            redis.command({"DEL", counter, timeouts});
            set(5);
            const auto disconnected = seen->count(Event::disconnected);
            std::optional<RuleId> stalled;
            if (connecting) {
                proxy.refuse();
            } else {
                stalled = inject(executed ? reply(kind.script) : request(kind.script), Action::stallDirection());
            }
            std::stop_source source;
            auto call = std::async(std::launch::async, [&] {
                std::error_code ec;
                const bool taken = kind.acquire(source.get_token(), ec);
                EXPECT_FALSE(ec) << ec.message();
                return taken;
            });
            expectFault(eventually([&] {
                            return stalled ? proxy.hits(*stalled) == 1
                                           : seen->count(Event::disconnected) > disconnected;
                        }),
                        "it is there");
            const Stopwatch watch;
            source.request_stop();
            EXPECT_FALSE(call.get());
            EXPECT_LT(watch.elapsed(), slack);
            endFaults();
            kind.ask(); // this answer comes after everything that the client has sent
            EXPECT_TRUE(isLeft("5"));
            EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
        }
    }
}

TEST_F(PermitFault, LateCopyOfItsAcquireLeavesALeaseAsItIs)
{
    set(1);
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    const auto late = inject(request(permitExpirableSemaphoreAcquire), Action::stallDirection());
    Permit permit = semaphore.acquire(10s);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(semaphore.updateLeaseTime(permit.id(), 600s));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late acquire did not run";
    EXPECT_GT(semaphore.getLeaseTime(permit.id()).value_or(0ms), 300s);
    EXPECT_GT(permit.validFor(), 300s);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}

TEST_F(PermitFault, LateChangeOfALeaseDoesNotCutTheNextOne)
{
    config.unreachableAfter = 800ms;
    set(1);
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    Permit permit = semaphore.acquire(600s);
    const auto late = inject(request(permitExpirableSemaphoreLease), Action::stallDirection());
    std::error_code ec;
    semaphore.updateLeaseTime(permit.id(), 20s, ec);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(semaphore.updateLeaseTime(permit.id(), 600s));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late change did not run";
    EXPECT_GT(semaphore.getLeaseTime(permit.id()).value_or(0ms), 300s);
    EXPECT_GT(permit.validFor(), 300s);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}

TEST_F(PermitFault, ReleaseWithoutAnAnswerIsUnconfirmedAndGoesOn)
{
    config.unreachableAfter = 800ms;
    set(1);
    Permit permit = client().getPermitExpirableSemaphore(counter).acquire(20s);
    const auto lost = inject(request(permitExpirableSemaphoreRelease, 0), Action::drop());
    EXPECT_EQ(permit.release(), Unlocked::unconfirmed);
    EXPECT_EQ(value(), "0");
    proxy.remove(lost);
    EXPECT_TRUE(isLeft("1"));
}

// Under the sanitizers a forked child may neither start threads nor allocate at any time.
#if !defined(REDISLOCK_THREAD_SANITIZER) && !defined(REDISLOCK_ADDRESS_SANITIZER)
TEST_F(PermitFault, PermitOfAProcessThatIsKilledIsFreeWhenItsLeaseIsOver)
{
    set(1);
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            Config own = config;
            own.observer = nullptr;
            Client other(own);
            const Permit permit = other.getPermitExpirableSemaphore(counter).acquire(600ms);
            ::kill(::getpid(), SIGKILL);
        } catch (...) {
        }
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    expectFault(WIFSIGNALED(status), "process killed");
    EXPECT_EQ(value(), "0");
    const Stopwatch watch;
    Permit permit = client().getPermitExpirableSemaphore(counter).tryAcquire(15s, 10s);
    EXPECT_TRUE(permit);
    EXPECT_LT(watch.elapsed(), 600ms + slack) << "the poll is every 20 s";
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}
#endif

TEST_F(LatchFault, CountDownCountsOnceWhateverIsLost)
{
    const auto latch = client().getCountDownLatch(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(3);
        inject(request(countDownLatchCountDown), loss);
        EXPECT_EQ(latch.countDown(), 2);
        EXPECT_EQ(value(), "2");
        inject(request(countDownLatchCountDown), loss);
        EXPECT_EQ(latch.asyncCountDown(boost::asio::use_future).get(), 1);
        EXPECT_EQ(value(), "1");
    }
}

TEST_F(LatchFault, CountDownWithoutAnAnswerGoesOnInTheBackgroundAndCountsOnce)
{
    config.unreachableAfter = 800ms;
    set(3);
    const auto lost = inject(reply(countDownLatchCountDown, 0), Action::swallow());
    std::error_code ec;
    client().getCountDownLatch(counter).countDown(ec);
    EXPECT_EQ(ec, Errc::unreachable);
    proxy.remove(lost);
    EXPECT_EQ(client().getCountDownLatch(counter).countDown(), 1);
    EXPECT_EQ(value(), "1");
}

TEST_F(LatchFault, WaitersGoThroughThoughTheirMessageIsLostOrTheirSubscriberGone)
{
    config.pollInterval = 300ms;
    const auto latch = client().getCountDownLatch(counter);
    for (const bool killed : {false, true}) {
        EXPECT_TRUE(nobodyListens(latchChannel)) << "to the latch before";
        set(1);
        auto waiter = std::async(std::launch::async, [&] { return latch.wait(15s); });
        auto asynchronous = latch.asyncWait(15s, boost::asio::use_future);
        EXPECT_TRUE(somebodyListens(latchChannel));
        if (killed) {
            expectFault(redis.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer() == 1, "subscriber killed");
        } else {
            inject({.command = "message", .direction = Direction::push, .nth = 0}, Action::drop());
        }
        EXPECT_EQ(latch.countDown(), 0);
        EXPECT_TRUE(waiter.get());
        EXPECT_TRUE(asynchronous.get());
    }
}

TEST_F(DeniedCounterUser, PermitIsGivenBackWhenItsUserIsBack)
{
    struct Case {
        const char* how;
        std::function<void(Permit&, const PermitExpirableSemaphore&)> end;
    };
    const Case cases[] = {
        {"release()", [](Permit& permit, const auto&) { EXPECT_EQ(permit.release(), Unlocked::unconfirmed); }},
        {"asyncRelease()",
         [](Permit& permit, const auto&) {
             EXPECT_THROW(permit.asyncRelease(boost::asio::use_future).get(), boost::system::system_error);
         }},
        {"the end of a guard", [](Permit& permit, const auto&) { permit = Permit(); }},
        {"release by its id",
         [](Permit& permit, const auto& semaphore) {
             std::error_code ec;
             EXPECT_EQ(semaphore.release(permit.id(), ec), Unlocked::unconfirmed);
             // no error if the request was under way when its connection was ended
             EXPECT_TRUE(!ec || ec == Errc::authFailed || ec == Errc::permissionDenied) << ec.message();
         }},
    };
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    for (const auto& way : DeniedUser::ways()) {
        for (const Case& c : cases) {
            SCOPED_TRACE(std::string(c.how) + ", " + way.how);
            set(1);
            Permit permit = semaphore.acquire(600s);
            const auto before = errorsSent(way.error);
            user.deny(way);
            c.end(permit, semaphore);
            awaitDenial(way, before);
            EXPECT_EQ(value(), "0");
            user.allow();
            EXPECT_TRUE(isLeft("1"));
        }
    }
}

TEST_F(DeniedCounterUser, RequestThatMayHaveBeenExecutedIsUnreachableAndCountsOnce)
{
    const auto off = DeniedUser::ways().front();
    const auto semaphore = client().getSemaphore(counter);
    const auto latch = client().getCountDownLatch(counter);
    struct Case {
        const char* how;
        Match lost;
        std::function<void(std::error_code&)> ask;
        std::string before, meanwhile, after;
    };
    const auto asynchronous = [](std::error_code& ec, auto future) {
        try {
            future.get();
        } catch (const boost::system::system_error& e) {
            ec = e.code();
        }
    };
    const Case cases[] = {
        {"release", reply(semaphoreAdd), [&](auto& ec) { semaphore.release(2, ec); }, "1", "3", "3"},
        {"asyncRelease", reply(semaphoreAdd),
         [&](auto& ec) { asynchronous(ec, semaphore.asyncRelease(2, boost::asio::use_future)); }, "1", "3", "3"},
        {"countDown", reply(countDownLatchCountDown), [&](auto& ec) { latch.countDown(ec); }, "3", "2", "2"},
        {"drainPermits", reply(semaphoreDrain), [&](auto& ec) { semaphore.drainPermits(ec); }, "3", "0", "3"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.how);
        set(3);
        EXPECT_EQ(semaphore.availablePermits(), 3); // so that the client is connected
        redis.command({"SET", counter, c.before});
        const auto before = errorsSent(off.error);
        const auto swallowed = inject(c.lost, Action::swallow(), 1);
        std::error_code ec;
        auto asked = std::async(std::launch::async, [&] { c.ask(ec); });
        ASSERT_TRUE(proxy.awaitHits(swallowed));
        user.deny(off);
        asked.get();
        EXPECT_EQ(ec, Errc::unreachable);
        awaitDenial(off, before);
        EXPECT_EQ(value(), c.meanwhile);
        proxy.clearRequestLog();
        user.allow();
        EXPECT_TRUE(proxy.awaitRequests({.command = "EVALSHA", .direction = Direction::request}));
        EXPECT_TRUE(isLeft(c.after));
    }
}

TEST_F(DeniedCounterUser, AcquireWithoutAnAnswerIsWithdrawnWhenItsUserIsBack)
{
    const auto off = DeniedUser::ways().front();
    set(3);
    const auto before = errorsSent(off.error);
    const auto swallowed = inject(reply(semaphoreAcquire), Action::swallow(), 1);
    std::error_code ec;
    auto asked = std::async(std::launch::async, [&] { client().getSemaphore(counter).acquire(2, ec); });
    ASSERT_TRUE(proxy.awaitHits(swallowed));
    user.deny(off);
    asked.get();
    EXPECT_EQ(ec, Errc::authFailed);
    awaitDenial(off, before);
    EXPECT_EQ(value(), "1");
    user.allow();
    EXPECT_TRUE(isLeft("3"));
}

} // namespace
} // namespace redislock::test
