// Calls that end, by shutdown or by their deadline, at every point where they may be waiting.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

/// A point where an acquire waits: how it is brought there, and how one sees that it is there.
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

    /// Everything as before the first point, with a new client.
    void reset()
    {
        forgetClient();
        endFaults();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        redis.command({"FLUSHALL"});
        loadScripts();
        proxy.clearRequestLog();
    }

    /// Nothing of the client is left in Redis, when the leases are over at the latest.
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
        // A wait that was over before the point was reached is no test of the point: the next one is longer.
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
