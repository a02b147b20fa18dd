// Errors that the library does not know, as proxies give them: they may pass, and do not say what was executed.
#include "fault/fault_test.hpp"
#include "integration/fake_server.hpp"

#include <boost/asio/use_future.hpp>

#include <utility>

namespace redislock::test {
namespace {

/// A proxy on the way gives errors of its own.
class UnknownError : public FaultTest {
protected:
    struct Way {
        const char* how;
        const char* words;
        Match match;
        Action action;
    };

    UnknownError()
    {
        config.commandTimeout = 1s;
        config.unreachableAfter = 20s;
    }

    static std::vector<Way> ways()
    {
        const std::string script = "return redis.error_reply('ERR Connection refused')";
        return {{"instead of the answer",
                 "no upstream host",
                 {.direction = Direction::reply, .nth = 0},
                 Action::replace("-no upstream host\r\n")},
                {"instead of the execution",
                 "ERR Connection refused",
                 {.direction = Direction::request, .nth = 0},
                 Action::replace("*3\r\n$4\r\nEVAL\r\n$" + std::to_string(script.size()) + "\r\n" + script +
                                 "\r\n$1\r\n0\r\n")}};
    }

    /// What the server says is replaced from now on. @param limit how often; 0: for ever
    void refuse(const Way& way, std::size_t limit) { rule_ = inject(way.match, way.action, limit); }
    std::size_t refusals() { return proxy.hits(rule_); }
    bool haveEnded(std::size_t limit)
    {
        return eventually([&] { return refusals() == limit; });
    }

    static void expectToldInWords(std::string_view words, const std::function<void()>& call)
    {
        try {
            call();
            ADD_FAILURE() << "no error";
        } catch (const LockError& e) {
            EXPECT_EQ(e.code(), Errc::serverRefused) << e.what();
            EXPECT_NE(std::string_view(e.what()).find(words), std::string_view::npos) << e.what();
        }
    }

    bool isFree()
    {
        return eventually([this] { return !redis.exists(name); });
    }

    RuleId rule_{};
};

TEST_F(UnknownError, ThatPassesEndsNoCall)
{
    constexpr std::size_t times = 2;
    client().connect();
    const RedisLock lock = client().getLock(name);
    const Semaphore semaphore = client().getSemaphore("{c}:semaphore");
    const PermitExpirableSemaphore permits = client().getPermitExpirableSemaphore("{c}:permits");
    const CountDownLatch latch = client().getCountDownLatch("{c}:latch");
    const MultiLock multi({client().getLock(name), client().getLock("other")});
    const RedLock red({client().getLock(name)});
    Permit permit;
    using Refuse = std::function<void()>;
    const auto takesAndFrees = [](const auto& of) {
        return [of](const Refuse& refuse) {
            refuse();
            of.lock(20s);
            refuse();
            EXPECT_EQ(of.unlock(), Unlocked::released);
        };
    };
    const auto asks = [](auto question) {
        return [question](const Refuse& refuse) {
            refuse();
            question();
        };
    };
    const std::pair<const char*, std::function<void(const Refuse&)>> cases[] = {
        {"lock", takesAndFrees(lock)},
        {"fair lock", takesAndFrees(client().getFairLock(name))},
        {"spin lock", takesAndFrees(client().getSpinLock(name))},
        {"lock to read", takesAndFrees(client().getReadWriteLock(name).readLock())},
        {"lock to write", takesAndFrees(client().getReadWriteLock(name).writeLock())},
        {"several locks", takesAndFrees(multi)},
        {"a majority of one", takesAndFrees(red)},
        {"tryLock with a wait",
         [&](const Refuse& refuse) {
             refuse();
             EXPECT_TRUE(lock.tryLock(15s, 20s));
             EXPECT_EQ(countInRedis(), "1");
             EXPECT_EQ(lock.unlock(), Unlocked::released);
         }},
        {"nested",
         [&](const Refuse& refuse) {
             lock.lock(20s);
             refuse();
             lock.lock(20s);
             EXPECT_EQ(countInRedis(), "2");
             refuse();
             EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
             EXPECT_EQ(countInRedis(), "1");
             EXPECT_EQ(lock.unlock(), Unlocked::released);
         }},
        {"guards",
         [&](const Refuse& refuse) {
             LockGuard outer(lock, Lease(20s));
             refuse();
             {
                 const LockGuard inner(lock, Lease(20s));
                 refuse();
             }
             EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }));
             refuse();
             outer = LockGuard();
             EXPECT_TRUE(isFree());
         }},
        {"asynchronous calls",
         [&](const Refuse& refuse) {
             refuse();
             LockGuard guard = lock.asyncLock(Lease(20s), boost::asio::use_future).get();
             refuse();
             EXPECT_TRUE(lock.asyncIsLocked(boost::asio::use_future).get());
             refuse();
             EXPECT_EQ(guard.asyncRelease(boost::asio::use_future).get(), Unlocked::released);
         }},
        {"questions",
         [&](const Refuse& refuse) {
             foreignLock(60s);
             refuse();
             EXPECT_TRUE(lock.isLocked());
             refuse();
             EXPECT_GT(lock.remainingTimeToLive().value_or(0ms), 50s);
             refuse();
             EXPECT_TRUE(lock.explain());
             refuse();
             EXPECT_TRUE(lock.forceUnlock());
             EXPECT_FALSE(redis.exists(name));
         }},
        {"semaphore is made", asks([&] { EXPECT_TRUE(semaphore.trySetPermits(3)); })},
        {"semaphore is taken", asks([&] { semaphore.acquire(2); })},
        {"semaphore is looked at", asks([&] { EXPECT_EQ(semaphore.availablePermits(), 1); })},
        {"semaphore is given back", asks([&] { semaphore.release(2); })},
        {"semaphore is drained", asks([&] { EXPECT_EQ(semaphore.drainPermits(), 3); })},
        {"semaphore is filled", asks([&] { semaphore.addPermits(2); })},
        {"semaphore, asynchronously", asks([&] {
             EXPECT_EQ(semaphore.asyncAvailablePermits(boost::asio::use_future).get(), 2);
             semaphore.asyncAcquire(1, boost::asio::use_future).get();
             EXPECT_EQ(semaphore.availablePermits(), 1);
         })},
        {"permits are made", asks([&] { EXPECT_TRUE(permits.trySetPermits(2)); })},
        {"permit is taken", asks([&] { permit = permits.acquire(20s); })},
        {"permit is prolonged", asks([&] { EXPECT_TRUE(permits.updateLeaseTime(permit.id(), 60s)); })},
        {"permit is looked at", asks([&] { EXPECT_GT(permits.getLeaseTime(permit.id()).value_or(0ms), 50s); })},
        {"permit is given back", asks([&] { EXPECT_EQ(permit.release(), Unlocked::released); })},
        {"permits are counted", asks([&] { EXPECT_EQ(permits.availablePermits(), 2); })},
        {"latch is set", asks([&] { EXPECT_TRUE(latch.trySetCount(2)); })},
        {"latch is counted down", asks([&] { latch.countDown(); })},
        {"latch is looked at", asks([&] { EXPECT_EQ(latch.getCount(), 1); })},
        {"latch is waited for", asks([&] { EXPECT_FALSE(latch.wait(400ms)); })},
    };
    for (const auto& way : ways()) {
        for (const auto& [what, call] : cases) {
            SCOPED_TRACE(std::string(what) + ", an error " + way.how);
            const auto before = proxy.accepted();
            bool isFirst = true;
            call([&] {
                EXPECT_TRUE(std::exchange(isFirst, false) || haveEnded(times)) << "not asked again";
                refuse(way, times);
            });
            EXPECT_TRUE(haveEnded(times)) << "not asked again";
            EXPECT_LE(proxy.accepted() - before, 2U) << "connections were given up";
            EXPECT_TRUE(isFree());
        }
        redis.command({"FLUSHALL"});
    }
}

TEST_F(UnknownError, ThatStaysIsToldInTheServersWordsWhenTheTimeIsOver)
{
    config.unreachableAfter = 400ms;
    client().connect();
    const RedisLock lock = client().getLock(name);
    const Semaphore semaphore = client().getSemaphore("{c}:semaphore");
    const PermitExpirableSemaphore permits = client().getPermitExpirableSemaphore("{c}:permits");
    const CountDownLatch latch = client().getCountDownLatch("{c}:latch");
    const MultiLock multi({client().getLock(name), client().getLock("other")});
    const std::pair<const char*, std::function<void()>> cases[] = {
        {"lock", [&] { lock.lock(20s); }},
        {"tryLock", [&] { (void)lock.tryLock(60s, 20s); }},
        {"fair lock", [&] { client().getFairLock(name).lock(20s); }},
        {"several locks", [&] { multi.lock(20s); }},
        {"isLocked", [&] { (void)lock.isLocked(); }},
        {"forceUnlock", [&] { lock.forceUnlock(); }},
        {"explain", [&] { (void)lock.explain(); }},
        {"trySetPermits", [&] { semaphore.trySetPermits(3); }},
        {"acquire", [&] { semaphore.acquire(); }},
        {"release", [&] { semaphore.release(); }},
        {"drainPermits", [&] { semaphore.drainPermits(); }},
        {"a permit", [&] { (void)permits.acquire(20s); }},
        {"a latch's count", [&] { latch.countDown(); }},
        {"a wait for a latch", [&] { latch.wait(); }},
    };
    for (const auto& way : ways()) {
        for (const auto& [what, call] : cases) {
            SCOPED_TRACE(std::string(what) + ", an error " + way.how);
            redis.command({"SET", "{c}:semaphore", "0"});
            redis.command({"SET", "{c}:latch", "1"});
            const Stopwatch watch;
            refuse(way, 0);
            expectToldInWords(way.words, call);
            EXPECT_GE(watch.elapsed(), 400ms);
            EXPECT_LT(watch.elapsed(), 400ms + slack);
            proxy.clear();
            EXPECT_TRUE(isFree()) << "what was granted unknown to the caller is given back";
        }
    }
    forgetClient(); // this ends when the repeated requests are answered
    redis.command({"FLUSHALL"});
}

TEST_F(UnknownError, OfAReleaseLeavesItToTheBackgroundForAsLongAsTheLeaseLasts)
{
    config.unreachableAfter = 400ms;
    for (const auto& way : ways()) {
        SCOPED_TRACE(way.how);
        lock().lock(60s);
        const Stopwatch watch;
        refuse(way, 0);
        EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
        EXPECT_GE(watch.elapsed(), 400ms);
        const auto before = refusals();
        EXPECT_TRUE(eventually([&] { return refusals() > before; })) << "the release does not go on";
        proxy.clear();
        EXPECT_TRUE(isFree());
        EXPECT_TRUE(seen->await(Event::released));
    }
}

TEST_F(UnknownError, OfARenewalIsAFailedTryAndNoLoss)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    const auto way = ways().back();
    inject({.script = std::string(redisLockRenew.sha1), .nth = 0}, way.action, 2);
    EXPECT_TRUE(seen->await(Event::renewed));
    const auto failed = seen->all(Event::renewalFailed);
    EXPECT_EQ(failed.size(), 2U);
    for (const auto& told : failed) {
        EXPECT_EQ(told.error, Errc::serverRefused);
    }
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(UnknownError, OfASubscriptionIsNoEndOfListening)
{
    foreignLock(60s);
    inject({.command = "SUBSCRIBE", .nth = 0}, ways().back().action, 2);
    auto waiter = waitInBackground(20s);
    EXPECT_TRUE(eventually([&] {
        return redis.command({"PUBSUB", "NUMSUB", detail::lockChannel(name)}).elements.at(1).integer() == 1;
    }));
    EXPECT_EQ(seen->count(Event::subscribeRefused), 1U) << "told once";
    EXPECT_EQ(foreignUnlock(), 1);
    const Stopwatch watch;
    expectGranted(waiter.get());
    EXPECT_LT(watch.elapsed(), slack) << "it polls";
}

TEST_F(UnknownError, OfANewConnectionIsFollowedByAnotherConnection)
{
    config.password = "pw";
    redis.command({"CONFIG", "SET", "requirepass", "pw"});
    inject({.command = "AUTH", .direction = Direction::reply, .nth = 0}, ways().front().action, 3);
    lock().lock(20s);
    EXPECT_EQ(proxy.accepted(), 4U);
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    forgetClient();
    redis.command({"CONFIG", "SET", "requirepass", ""});
    config.password.clear();
    const FakeServer greeter("-no upstream host\r\n");
    Config others = config;
    others.endpoint.port = greeter.port();
    others.unreachableAfter = 400ms;
    const Client greeted(others);
    expectToldInWords("no upstream host", [&] { greeted.connect(); });
    expectToldInWords("no upstream host", [&] { greeted.getLock(name).lock(); });
    expectToldInWords("no upstream host", [&] { (void)LockMonitor(others).list(); });
    EXPECT_GE(greeter.accepted(), 5) << "lock() does not go on";
}

TEST_F(UnknownError, IsToldByAMonitorInTheServersWords)
{
    LockMonitor monitor(config);
    EXPECT_TRUE(monitor.list().empty());
    refuse(ways().front(), 0);
    expectToldInWords("no upstream host", [&] { (void)monitor.list(); });
    proxy.clear();
    EXPECT_TRUE(monitor.list().empty());
}

} // namespace
} // namespace redislock::test
