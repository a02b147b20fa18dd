// Calls that end, by shutdown or by their deadline, at every point where they may be waiting.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

/// A point where an acquire waits: how the test brings the acquire there, and how the test sees that it is there.
struct AwaitPoint {
    const char* name;
    std::function<void()> prepare;
    std::function<bool()> reached;
};

class CancelledAcquire : public FaultTest {
protected:
    std::vector<AwaitPoint> points()
    {
        const auto injecting = [this](const Match& match) {
            return [this, match] { rule_ = inject(match, Action::stallDirection()); };
        };
        const auto contendedInjecting = [this](const Match& match) {
            return [this, match] {
                foreignLock(60s);
                rule_ = inject(match, Action::stallDirection());
            };
        };
        const auto hit = [this] { return proxy.hits(rule_) == 1; };
        return {
            {"connecting",
             [this] {
                 proxy.refuse();
                 disconnected_ = seen->count(Event::disconnected);
             },
             [this] { return seen->count(Event::disconnected) > disconnected_; }},
            {"greeting", injecting({.command = "PING"}), hit},
            {"asking, not arrived", injecting(request(redisLockLock)), hit},
            {"asking, executed", injecting(reply(redisLockLock)), hit},
            {"asking again after NOSCRIPT",
             [this] {
                 redis.command({"SCRIPT", "FLUSH"});
                 rule_ = inject({.command = "EVAL", .direction = Direction::reply}, Action::stallDirection());
             },
             hit},
            {"subscribing", contendedInjecting({.command = "SUBSCRIBE"}), hit},
            {"subscribed, asking again", contendedInjecting(request(redisLockLock, 2)), hit},
            {"asleep", [this] { foreignLock(60s); }, [this] { return proxy.requests(request(redisLockLock)) >= 2; }},
            {"backing off",
             [this] {
                 redis.command({"CONFIG", "SET", "maxmemory", "1"});
                 redis.command({"CONFIG", "RESETSTAT"});
             },
             [this] { return errorsSent("OOM") > 0; }},
        };
    }

    /// Restores the state before the first point, with a new client.
    void reset()
    {
        forgetClient();
        endFaults();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"FLUSHALL"});
        loadScripts();
        proxy.clearRequestLog();
    }

    /// Expects that nothing of the client is left in Redis, at the latest when the leases are over.
    void expectNothingLeft()
    {
        EXPECT_TRUE(eventually([&] {
            const auto hash = redis.hash(name);
            return hash.empty() || hash.contains(foreigner);
        })) << "a hold that nobody has";
    }

    static constexpr auto lease = 600ms;

private:
    RuleId rule_{};
    std::size_t disconnected_ = 0;
};

TEST_F(CancelledAcquire, ByShutdownAtEveryAwaitPointReturnsAtOnceAndLeavesNothing)
{
    config.unreachableAfter = 20s;
    config.commandTimeout = 20s;
    config.connectTimeout = 20s;
    for (const auto& [point, prepare, reached] : points()) {
        SCOPED_TRACE(point);
        reset();
        prepare();
        auto first = waitInBackground(40s, lease);
        auto behindIt = waitInBackground(40s, lease); // waits for its turn
        expectFault(eventually(reached), point);
        const Stopwatch watch;
        client().shutdown(100ms);
        for (auto* waiter : {&first, &behindIt}) {
            const auto waited = waiter->get();
            EXPECT_FALSE(waited.granted);
            EXPECT_EQ(waited.error, Errc::shutdown);
        }
        EXPECT_LT(watch.elapsed(), slack);
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(ec));
        EXPECT_EQ(ec, Errc::shutdown);
        endFaults();
        EXPECT_TRUE(eventually([&] { return proxy.connections() == 0; })) << "a connection was left";
        expectNothingLeft();
    }
    reset();
}

TEST_F(CancelledAcquire, ByItsDeadlineAtEveryAwaitPointReturnsInTimeAndLeavesNothing)
{
    config.connectTimeout = 250ms;
    config.commandTimeout = 250ms;
    config.unreachableAfter = 40s; // as pollInterval: what could end it instead of its deadline
    for (const auto& [point, prepare, reached] : points()) {
        SCOPED_TRACE(point);
        bool hit = false;
        // A wait that was over before the point was reached does not test the point: the next wait is longer.
        for (auto wait = 350ms; !hit && wait < 20s; wait *= 2) {
            reset();
            prepare();
            auto first = waitInBackground(wait, lease);
            auto behindIt = waitInBackground(wait, lease); // waits for its turn
            for (auto* waiter : {&first, &behindIt}) {
                const auto waited = waiter->get();
                EXPECT_LT(waited.time, wait + 10s);
                EXPECT_NE(waited.error, Errc::shutdown);
            }
            hit = reached();
        }
        expectFault(hit, point);
        endFaults();
        expectNothingLeft();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"DEL", name});
        EXPECT_TRUE(lock().tryLock(10s, 10s));
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_TRUE(eventually([&] { return redis.command({"PUBSUB", "CHANNELS"}).elements.empty(); }));
    }
    reset();
}

/// Acquires that are called off, by a stop token.
class CalledOffAcquire : public CancelledAcquire {
protected:
    CalledOffAcquire()
    {
        config.commandTimeout = 20s;
        config.connectTimeout = 20s;
        config.unreachableAfter = 40s;
    }

    std::vector<AwaitPoint> points()
    {
        auto all = CancelledAcquire::points();
        all.push_back({"behind a release that is not answered",
                       [this] {
                           const LockGuard held(lock(), Lease(longLease));
                           release_ = inject(request(redisLockUnlock), Action::stallDirection());
                       },
                       [this] { return proxy.hits(release_) == 1; }});
        return all;
    }

    struct Ended {
        bool granted = false;
        std::error_code error;
    };
    std::future<Ended> start()
    {
        return std::async(std::launch::async, [waited = lock(), stop = source.get_token()] {
            Ended end;
            end.granted = waited.lock(longLease, stop, end.error);
            return end;
        });
    }

    /// With the faults gone: expects that nothing of the client is left in Redis, and that it gets the lock at once.
    void expectLockIsFree()
    {
        endFaults();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"HDEL", name, foreigner});
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
        EXPECT_TRUE(lock().tryLock(10s, 10s));
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_TRUE(eventually([&] { return redis.command({"PUBSUB", "CHANNELS"}).elements.empty(); }));
    }

    static constexpr auto longLease = 60s; // a key that is left behind lives longer than any test
    std::stop_source source;

private:
    RuleId release_{};
};

TEST_F(CalledOffAcquire, AtEveryAwaitPointReturnsAtOnceAndLeavesNothing)
{
    for (const auto& [point, prepare, reached] : points()) {
        SCOPED_TRACE(point);
        reset();
        source = std::stop_source();
        prepare();
        auto first = start();
        auto behindIt = start(); // waits for its turn
        expectFault(eventually(reached), point);
        const Stopwatch watch;
        source.request_stop();
        for (auto* waiter : {&first, &behindIt}) {
            const auto end = waiter->get();
            EXPECT_FALSE(end.granted);
            EXPECT_EQ(end.error, std::error_code());
        }
        EXPECT_LT(watch.elapsed(), slack);
        expectLockIsFree();
    }
    reset();
}

TEST_F(CalledOffAcquire, LetsTheThreadBehindItGoOn)
{
    foreignLock(60s);
    auto first = start();
    EXPECT_TRUE(eventually([&] { return proxy.requests(request(redisLockLock)) >= 2; }));
    auto behindIt = waitInBackground(50s);
    const auto fault = inject(request(redisLockLock), Action::stallDirection());
    redis.command({"HDEL", name, foreigner});
    redis.command({"PUBLISH", detail::lockChannel(name), "0"});
    expectFault(eventually([&] { return proxy.hits(fault) == 1; }), "its request is under way");
    source.request_stop();
    EXPECT_FALSE(first.get().granted);
    endFaults();
    expectGranted(behindIt.get());
}

TEST_F(CalledOffAcquire, OfANestedLevelLeavesTheCountOfTheHold)
{
    lock().lock(longLease);
    const auto stops = [this](const Match& match) {
        const auto fault = inject(match, Action::stallDirection());
        source = std::stop_source();
        auto stopped = std::async(std::launch::async, [&] {
            EXPECT_TRUE(eventually([&] { return proxy.hits(fault) == 1; }));
            source.request_stop();
        });
        std::error_code ec;
        EXPECT_FALSE(lock().lock(longLease, source.get_token(), ec));
        EXPECT_EQ(ec, std::error_code());
        stopped.get();
        expectFault(proxy.hits(fault) == 1, "the nested level is asked for");
        EXPECT_EQ(lock().holdCount(), 1U);
        endFaults();
        EXPECT_TRUE(eventually([&] { return proxy.requests(request(redisLockUnlock)) > 0; })) << "corrects the count";
        EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }));
        EXPECT_TRUE(lock().tryLock());
        EXPECT_EQ(lock().unlock(), Unlocked::stillHeld);
        EXPECT_EQ(countInRedis(), "1");
    };
    stops(request(redisLockLock));
    stops(reply(redisLockLock));
    EXPECT_EQ(lock().unlock(), Unlocked::released);
}

TEST_F(CalledOffAcquire, WhatItMayHaveBeenGrantedIsGivenBackBeforeTheClientEnds)
{
    const auto fault = inject(reply(redisLockLock), Action::stallDirection());
    auto waiter = start();
    expectFault(eventually([&] { return proxy.hits(fault) == 1 && redis.exists(name); }), "granted, and not told");
    source.request_stop();
    EXPECT_FALSE(waiter.get().granted);
    auto thaw = std::async(std::launch::async, [this] {
        EXPECT_TRUE(eventually([&] { return proxy.requests(request(redisLockUnlock)) > 0; }));
        endFaults();
    });
    EXPECT_TRUE(client().shutdown(20s));
    EXPECT_FALSE(redis.exists(name));
    thaw.get();
    forgetClient();
}

class CancelledUnlock : public FaultTest {};

TEST_F(CancelledUnlock, ByShutdownAtEveryAwaitPointReturnsUnconfirmedAtOnce)
{
    config.unreachableAfter = 20s;
    config.commandTimeout = 20s;
    RuleId rule{};
    const auto hit = [&] { return proxy.hits(rule) == 1; };
    const std::vector<AwaitPoint> points{
        {"asking, not arrived", [&] { rule = inject(request(redisLockUnlock), Action::stallDirection()); }, hit},
        {"asking, executed", [&] { rule = inject(reply(redisLockUnlock), Action::stallDirection()); }, hit},
        {"backing off",
         [&] {
             redis.command({"CONFIG", "RESETSTAT"});
             redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
         },
         [&] { return errorsSent("NOREPLICAS") > 0; }},
    };
    for (const auto& [point, prepare, reached] : points) {
        SCOPED_TRACE(point);
        std::promise<void> locked;
        std::promise<void> go;
        auto unlocked = std::async(std::launch::async, [&, held = lock()] {
            held.lock(1000ms);
            locked.set_value();
            go.get_future().wait();
            return held.unlock();
        });
        locked.get_future().wait();
        prepare();
        go.set_value();
        expectFault(eventually(reached), point);
        const Stopwatch watch;
        client().shutdown(100ms);
        EXPECT_EQ(unlocked.get(), Unlocked::unconfirmed);
        EXPECT_LT(watch.elapsed(), slack);
        endFaults();
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        EXPECT_TRUE(eventually([&] { return proxy.connections() == 0 && !redis.exists(name); }));
        forgetClient();
    }
}

} // namespace
} // namespace redislock::test
