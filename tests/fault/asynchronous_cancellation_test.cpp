// Asynchronous acquires that are cancelled at every possible point. A fault stops the acquire at that point.
#include "fault/asynchronous_test.hpp"

#include <functional>
#include <future>
#include <optional>
#include <vector>

namespace redislock::test {
namespace {

using asio::use_future;

/// A point of an acquire: how the test brings the acquire there, and how the test sees that it is there.
struct Point {
    const char* name;
    std::function<void()> prepare;
    std::function<bool()> reached;
    bool ofAWait = false; ///< a single attempt never comes to this point
};

class CancelledAsyncAcquire : public AsynchronousFaultTest {
protected:
    CancelledAsyncAcquire()
    {
        config.watchdogTimeout = 60s; // so that a command has the time commandTimeout
        config.commandTimeout = 300ms;
        config.unreachableAfter = 20s;
    }

    /// Ways to ask for the lock.
    struct Form {
        const char* name;
        std::function<std::unique_ptr<WatchedCall<LockGuard>>()> start;
        bool waits = true;
    };
    std::vector<Form> forms()
    {
        const auto watched = [this](auto start) {
            return [this, start] {
                return std::make_unique<WatchedCall<LockGuard>>([&](auto token) { start(lock(), std::move(token)); });
            };
        };
        return {
            {"asyncLock", watched([](const RedisLock& l, auto token) { l.asyncLock(lease, std::move(token)); })},
            {"asyncTryLock, with a wait",
             watched([](const RedisLock& l, auto token) { l.asyncTryLock(50s, lease, std::move(token)); })},
            {"asyncTryLock, one attempt",
             watched([](const RedisLock& l, auto token) { l.asyncTryLock(0ms, lease, std::move(token)); }), false},
        };
    }

    Point stalling(const char* pointName, const Match& match, bool contended = false)
    {
        return {pointName,
                [this, match, contended] {
                    if (contended) {
                        foreignLock(60s);
                    }
                    rule_ = inject(match, Action::stallDirection());
                },
                [this] { return proxy.hits(rule_) == 1; }, contended};
    }

    Point losing(const char* pointName, const Action& action)
    {
        return {pointName, [this, action] { rule_ = inject(reply(redisLockLock), action); },
                [this] { return proxy.hits(rule_) == 1; }};
    }

    std::vector<Point> connectingPoints()
    {
        return {
            {"connecting", [this] { proxy.refuse(); },
             [this] { return seen->count(Event::disconnected) > disconnected_; }, true},
            stalling("greeting", {.command = "PING"}),
            {"connecting again",
             [this] {
                 lock().asyncLock(use_future).get().asyncRelease(use_future).get();
                 rule_ = inject(request(redisLockLock), Action::cut());
                 proxy.refuse();
             },
             [this] { return proxy.hits(rule_) == 1 && seen->count(Event::disconnected) > disconnected_; }, true},
        };
    }

    std::vector<Point> askingPoints()
    {
        return {
            stalling("asking, not arrived", request(redisLockLock)),
            stalling("asking, executed", reply(redisLockLock)),
            losing("reply lost, the connection stays", Action::swallow()),
            {"reply lost with the connection",
             [this] {
                 rule_ = inject(request(redisLockLock), Action::cutAfterForward());
                 second_ = inject(request(redisLockLock, 2), Action::stallDirection());
             },
             [this] { return proxy.hits(second_) == 1; }, true},
            {"asking, the script is not known",
             [this] {
                 redis.command({"SCRIPT", "FLUSH"});
                 redis.command({"SCRIPT", "LOAD", redisLockUnlock.text()});
                 rule_ = inject(reply(redisLockLock), Action::stallDirection());
             },
             [this] { return proxy.hits(rule_) == 1; }},
            {"asking again with the script",
             [this] {
                 redis.command({"SCRIPT", "FLUSH"});
                 rule_ = inject({.command = "EVAL", .direction = Direction::reply}, Action::stallDirection());
             },
             [this] { return proxy.hits(rule_) == 1; }},
        };
    }

    std::vector<Point> waitingPoints()
    {
        // if a later question was answered, the answer before it was read too
        const auto answered = [this] { return lock().asyncIsLocked(use_future).get(); };
        const auto asked = [this](std::size_t times) { return proxy.requests(request(redisLockLock)) >= times; };
        return {
            {"awaiting its turn behind another call", [this] { first_ = lock().asyncLock(lease, use_future).get(); },
             [this] {
                 awaitThread();
                 return true;
             },
             true},
            {"behind a release that is not answered",
             [this] {
                 const LockGuard held(lock(), Lease(lease));
                 rule_ = inject(request(redisLockUnlock), Action::stallDirection());
             },
             [=, this] { return proxy.hits(rule_) == 1 && asked(2) && answered(); }},
            stalling("subscribing", {.command = "SUBSCRIBE"}, true),
            stalling("subscribed, asking again", request(redisLockLock, 2), true),
            {"asleep", [this] { foreignLock(60s); }, [=] { return asked(2) && answered(); }, true},
            {"backing off",
             [this] {
                 redis.command({"CONFIG", "SET", "maxmemory", "1"});
             },
             [=, this] { return errorsSent("OOM") > 0 && !answered(); }, true},
        };
    }

    void expectCancellableAt(const std::vector<Point>& points)
    {
        for (const auto& point : points) {
            for (const auto& form : forms()) {
                for (const auto type : cancellations) {
                    if (form.waits || !point.ofAWait) {
                        SCOPED_TRACE(std::string(point.name) + ": " + form.name + ", cancellation " +
                                     std::to_string(static_cast<int>(type)));
                        expectCancellable(point, form, type);
                    }
                }
            }
        }
        reset();
    }

    static constexpr auto lease = 60s; // a key that is left behind lives longer than any test

private:
    void expectCancellable(const Point& point, const Form& form, asio::cancellation_type type)
    {
        reset();
        disconnected_ = seen->count(Event::disconnected);
        point.prepare();
        const auto call = form.start();
        expectFault(eventually(point.reached), point.name);
        const Stopwatch watch;
        call->cancel(type);
        ASSERT_TRUE(call->finish());
        EXPECT_LT(watch.elapsed(), slack);
        EXPECT_EQ(call->error, asio::error::operation_aborted);
        EXPECT_FALSE(call->value);
        endFaults();
        redis.command({"CONFIG", "SET", "maxmemory", "0"});
        first_ = LockGuard();
        expectNothingLeft();
    }

    RuleId rule_{};
    RuleId second_{};
    std::size_t disconnected_ = 0;
    LockGuard first_;
};

TEST_F(CancelledAsyncAcquire, WhileItConnectsEndsAtOnceAndLeavesNothing)
{
    expectCancellableAt(connectingPoints());
}

TEST_F(CancelledAsyncAcquire, WhileItAsksEndsAtOnceAndGivesBackWhatItWasGranted)
{
    expectCancellableAt(askingPoints());
}

TEST_F(CancelledAsyncAcquire, WhileItWaitsEndsAtOnceAndLeavesNothing)
{
    expectCancellableAt(waitingPoints());
}

TEST_F(CancelledAsyncAcquire, BeforeItBeginsSendsNothing)
{
    for (const auto& form : forms()) {
        SCOPED_TRACE(form.name);
        reset();
        std::optional<StandingThread> standing(lock());
        const auto call = form.start();
        call->cancel();
        standing.reset();
        ASSERT_TRUE(call->finish());
        EXPECT_EQ(call->error, asio::error::operation_aborted);
        EXPECT_FALSE(call->value);
        expectFault(proxy.requests(request(redisLockLock)) == 0, "cancelled before it began");
        expectNothingLeft();
    }
}

TEST_F(CancelledAsyncAcquire, AfterItsGrantComesTooLate)
{
    for (const auto& form : forms()) {
        SCOPED_TRACE(form.name);
        reset();
        const auto before = seen->count(Event::acquired);
        const auto call = form.start();
        expectFault(seen->await(Event::acquired, before + 1), "granted, and the handler has not run");
        call->cancel();
        ASSERT_TRUE(call->finish());
        EXPECT_FALSE(call->error);
        EXPECT_TRUE(call->value);
        EXPECT_EQ(countInRedis(), "1");
        call->cancel(); // there is nothing left to cancel
        EXPECT_TRUE(call->value);
        EXPECT_EQ(call->value.asyncRelease(use_future).get(), Unlocked::released);
        expectNothingLeft();
    }
}

TEST_F(CancelledAsyncAcquire, WhileTheClientShutsDownEndsOnce)
{
    for (const bool beforeItBegins : {false, true}) {
        SCOPED_TRACE(beforeItBegins);
        reset();
        const LockGuard witness(lockOf("witness"), Lease(lease)); // lost when the shutdown has begun
        LockGuard held(lock(), Lease(lease));
        const auto stalled = inject(request(redisLockUnlock), Action::stallDirection());
        held = LockGuard();
        ASSERT_TRUE(proxy.awaitHits(stalled));
        std::optional<StandingThread> standing(lock());
        const auto call = forms().front().start();
        if (!beforeItBegins) {
            standing.reset();
            ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 3));
        }
        auto ended = std::async(std::launch::async, [&] { return client().shutdown(3s); }); // the release holds it up
        ASSERT_TRUE(eventually([&] { return !witness; }));
        call->cancel();
        standing.reset();
        ASSERT_TRUE(call->finish());
        EXPECT_TRUE(call->error == asio::error::operation_aborted || call->error == make_error_code(Errc::shutdown))
            << call->error.message();
        EXPECT_FALSE(call->value);
        endFaults();
        EXPECT_TRUE(ended.get()) << "the release was answered";
        forgetClient();
        redis.command({"DEL", "witness"});
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
        expectNothingLeft();
    }
}

/// The client's own thread comes to this acquire only when the shutdown has ended all waiters and still waits for a
/// release.
TEST_F(CancelledAsyncAcquire, ByAShutdownThatBeganBeforeItDidEndsAtOnce)
{
    config.pollInterval = 60s;
    foreignLock(60s);
    const LockGuard witness(lockOf("witness"), Lease(lease)); // lost when the shutdown has begun
    LockGuard other(lockOf("other"), Lease(lease));
    const auto stalled = inject(request(redisLockUnlock), Action::stallDirection());
    other = LockGuard();
    ASSERT_TRUE(proxy.awaitHits(stalled));
    std::optional<StandingThread> standing(lock());
    const auto call = forms().front().start();
    auto ended = std::async(std::launch::async, [&] { return client().shutdown(4s); }); // the release holds it up
    ASSERT_TRUE(eventually([&] { return !witness; }));
    const Stopwatch watch;
    standing.reset();
    EXPECT_TRUE(call->finish(3s)) << "it waits though its client is being shut down";
    EXPECT_LT(watch.elapsed(), slack);
    endFaults();
    EXPECT_TRUE(ended.get());
    ASSERT_TRUE(call->finish());
    EXPECT_EQ(call->error, make_error_code(Errc::shutdown));
    forgetClient();
    redis.command({"DEL", name, "witness"});
    expectNothingLeft();
}

} // namespace
} // namespace redislock::test
