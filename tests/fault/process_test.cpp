// Events in the client's own process: the client's thread stalls, the process ends, threads come and go, calls cross.
#include "fault/deadline.hpp"
#include "fault/fault_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>

namespace redislock::test {
namespace {

using StalledThread = FaultTest;
using EndedProcess = FaultTest;
using EndedThread = FaultTest;
using CrossingCalls = FaultTest;
using ManyLocks = FaultTest;
using ShutDownClient = FaultTest;

TEST_F(StalledThread, OfTheClientProlongsNoBelief)
{
    config.watchdogTimeout = 1200ms;
    std::promise<void> go;
    std::atomic<bool> stalled{false};
    seen->onEvent([&, resumed = go.get_future().share()](const Recorder::Told& told) {
        if (told.event == Event::renewed && !stalled.exchange(true)) {
            resumed.wait(); // the client's own thread stands still: nothing is renewed, no deadline is judged
        }
    });
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    ASSERT_TRUE(eventually([&] { return stalled.load(); }));
    expectHeldExactlyUntil(Deadline(held), held);
    EXPECT_EQ(seen->count(Event::lost), 0U) << "the thread was not stalled";
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    go.set_value();
    EXPECT_TRUE(seen->await(Event::lost));
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    expectFault(stalled, "a stalled thread");
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "a lost hold was renewed";
}

// Under the sanitizers a forked child may neither start threads nor allocate at any time.
#if !defined(REDISLOCK_THREAD_SANITIZER) && !defined(REDISLOCK_ADDRESS_SANITIZER)
TEST_F(EndedProcess, ByAnyExitEndsAtOnceAndLeavesItsLockToItsLease)
{
    using Exit = void (*)();
    const std::vector<std::pair<const char*, Exit>> exits{
        {"quick_exit", [] { std::quick_exit(0); }}, {"_exit", [] { ::_exit(0); }}, {"raise", [] { ::raise(SIGKILL); }}};
    config.observer = nullptr;
    for (const auto& [how, exit] : exits) {
        SCOPED_TRACE(how);
        const pid_t child = ::fork();
        if (child == 0) {
            const Client own(config);
            std::error_code ec;
            own.getLock(name).lock(1000ms, ec);
            exit();
        }
        const Stopwatch watch;
        int status = 0;
        const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
        if (!ended) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
        }
        EXPECT_TRUE(ended);
        EXPECT_TRUE(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
        expectFault(redis.exists(name) || watch.elapsed() > 1s, "a lock of a process that has ended");
        EXPECT_TRUE(lock().tryLock(1000ms + slack, 10s));
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
    }
}

/// Another thread of the process, which reads for all, sleeps meanwhile, waiting for an answer that does not come.
TEST_F(EndedProcess, LeavesNoLockWhoseGuardHasEnded)
{
    using Exit = void (*)();
    const std::vector<std::pair<const char*, Exit>> exits{{"quick_exit", [] { std::quick_exit(0); }},
                                                          {"_exit", [] { ::_exit(0); }},
                                                          {"exec", [] { ::execl("/bin/true", "true", nullptr); }}};
    const std::vector<std::string> names{"stock:1", "stock:2", "stock:3"};
    config.observer = nullptr;
    config.commandTimeout = 30s;
    config.unreachableAfter = 60s;
    for (const auto& [how, exit] : exits) {
        SCOPED_TRACE(how);
        int go[2];
        ASSERT_EQ(::pipe(go), 0);
        const auto silent = inject(reply(redisLockPttl), Action::stallDirection(), 1);
        const pid_t child = ::fork();
        if (child == 0) {
            const Client own(config);
            std::vector<LockGuard> guards;
            for (const auto& each : names) {
                guards.emplace_back(own.getLock(each), Lease(60s));
            }
            const std::thread reader([&own] {
                std::error_code ec;
                (void)own.getLock("another").isLocked(ec);
            });
            char byte = 0;
            (void)!::read(go[0], &byte, 1);
            guards.clear();
            exit();
        }
        EXPECT_TRUE(proxy.awaitHits(silent));
        EXPECT_TRUE(redis.exists(names.back()));
        EXPECT_EQ(::write(go[1], "x", 1), 1);
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        for (const auto& each : names) {
            EXPECT_TRUE(eventually([&] { return !redis.exists(each); })) << each << " was left";
            redis.command({"DEL", each});
        }
        proxy.resume();
        ::close(go[0]);
        ::close(go[1]);
    }
}

/// Other threads of the process lock and unlock all the time: one of them reads for all, and may stand at any place when
/// the guard ends.
TEST_F(EndedProcess, LeavesNoLockWhoseGuardHasEndedBesideBusyThreads)
{
    constexpr int rounds = 20;
    const Config direct = Config::fromUrl(server.url());
    int left = 0;
    for (const int busy : {1, 4, 16}) {
        for (int round = 0; round < rounds; ++round) {
            const pid_t child = ::fork();
            if (child == 0) {
                const Client own(direct);
                std::atomic<int> holds{0};
                std::vector<std::thread> threads;
                for (int i = 0; i < busy; ++i) {
                    threads.emplace_back([&, lock = own.getLock(own.id() + std::to_string(i))] {
                        for (;;) {
                            const LockGuard held(lock);
                            ++holds;
                        }
                    });
                }
                LockGuard held(own.getLock(name), Lease(60s));
                for (const int before = holds; holds < before + 2 * busy;) {
                    std::this_thread::sleep_for(100us);
                }
                held = LockGuard();
                ::_exit(0);
            }
            int status = 0;
            EXPECT_EQ(::waitpid(child, &status, 0), child);
            EXPECT_TRUE(WIFEXITED(status));
            if (!eventually([&] { return !redis.exists(name); }, 5s)) {
                ++left;
                redis.command({"DEL", name});
            }
        }
        EXPECT_EQ(left, 0) << "of " << rounds << ", beside " << busy;
    }
    expectFault(true, "processes that ended");
    redis.command({"FLUSHDB"}); // what the others held
}
#endif

TEST_F(EndedThread, LeavesItsHoldToNobodyWhoeverGetsItsNumberNext)
{
    const RedisLock shared = lock();
    std::set<std::thread::id> ids;
    std::size_t reused = 0;
    for (int round = 0; round < 20; ++round) {
        std::thread([&] {
            reused += ids.insert(std::this_thread::get_id()).second ? 0 : 1;
            EXPECT_FALSE(shared.isHeldByCurrentThread());
            EXPECT_EQ(shared.holdCount(), 0U);
            std::error_code ec;
            shared.unlock(ec);
            EXPECT_EQ(ec, Errc::notHeld);
            EXPECT_EQ(shared.tryLock(), round == 0);
        }).join();
    }
    expectFault(reused > 0, "a thread with the number of one that has ended");
    EXPECT_TRUE(shared.forceUnlock());
}

TEST_F(CrossingCalls, UnlockDuringARenewalEndsTheHoldForGood)
{
    config.watchdogTimeout = 1500ms;
    for (const auto direction : {Direction::request, Direction::reply}) {
        const RedisLock held = lock();
        held.lock();
        auto match = request(redisLockRenew);
        match.direction = direction;
        const auto late = inject(match, Action::stallDirection());
        ASSERT_TRUE(proxy.awaitHits(late));
        EXPECT_EQ(held.unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        const auto before = requestsFor(redisLockRenew).size();
        proxy.resume();
        lock().lock(); // its own renewal comes after the late one, or on the next connection
        const auto renewed = seen->count(Event::renewed);
        EXPECT_TRUE(seen->await(Event::renewed, renewed + 1));
        EXPECT_EQ(countInRedis(), "1");
        const auto renewals = requestsFor(redisLockRenew);
        const auto holder = redis.hash(name).begin()->first;
        EXPECT_LE(std::count_if(renewals.begin() + static_cast<std::ptrdiff_t>(before), renewals.end(),
                                [&](const auto& sent) { return sent.arguments.at(4) != holder; }),
                  1)
            << "the hold that was ended is still renewed";
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_EQ(seen->count(Event::lost), 0U);
    }
}

TEST_F(CrossingCalls, UnlockAtTheDeadlineEndsTheHoldOneWayOnly)
{
    constexpr std::size_t rounds = 40;
    std::size_t lost = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
        const RedisLock held = lock();
        std::error_code ec;
        held.lock(40ms, ec);
        if (ec) { // on a very busy machine the grant came too late
            ++lost;
            continue;
        }
        const auto moment = std::chrono::milliseconds(5 * (round % 3));
        while (moment == 0ms ? held.isHeldByCurrentThread() : held.validFor() > moment) {
        }
        const auto how = held.unlock();
        EXPECT_NE(how, Unlocked::stillHeld);
        lost += how == Unlocked::alreadyLost ? 1 : 0;
        EXPECT_EQ(held.holdCount(), 0U);
        held.unlock(ec);
        EXPECT_EQ(ec, Errc::notHeld) << "one hold was ended twice";
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    }
    const auto granted = [&] { return seen->count(Event::acquired); };
    EXPECT_TRUE(eventually([&] { return seen->count(Event::released) + seen->count(Event::lost) >= granted(); }));
    std::set<std::string> ended;
    for (const auto event : {Event::released, Event::lost}) {
        for (const auto& told : seen->all(event)) {
            EXPECT_TRUE(ended.insert(told.holder).second) << "told twice how one hold ended";
        }
    }
    EXPECT_EQ(ended.size(), granted());
    expectFault(lost > 0 && lost < rounds, "unlocks before and after the deadline");
}

TEST_F(ManyLocks, AreAllRenewedThoughTheirConnectionBreaks)
{
    constexpr std::size_t count = isSanitized ? 2'000 : 10'000;
    config.watchdogTimeout = 6s;
    config.commandTimeout = 3s;
    config.endpoint.port = server.port(); // the test measures the client, not the proxy
    std::vector<LockGuard> guards;
    for (std::size_t i = 0; i < count; ++i) {
        guards.emplace_back(lockOf("many:" + std::to_string(i)));
    }
    EXPECT_TRUE(seen->await(Event::renewed, 10));
    const bool killed = redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer() >= 2;
    expectFault(killed, "killed connections");
    const auto renewedHolds = [&] {
        std::set<std::string> holders;
        for (const auto& told : seen->all(Event::renewed)) {
            holders.insert(told.holder);
        }
        return holders.size();
    };
    EXPECT_TRUE(seen->await(Event::renewed, count, 20s));
    EXPECT_TRUE(eventually([&] { return renewedHolds() == count; }, 20s));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(redis.command({"DBSIZE"}).integer(), static_cast<std::int64_t>(count));
    guards.clear();
    EXPECT_TRUE(eventually([&] { return redis.command({"DBSIZE"}).integer() == 0; }, 20s));
}

TEST_F(ShutDownClient, WithAThousandWaitersAndADeadServerEndsInTime)
{
    constexpr std::size_t waiters = isSanitized ? 200 : 1000;
    config.commandTimeout = 20s;
    config.connectTimeout = 20s;
    config.unreachableAfter = 60s;
    foreignLock(60s);
    std::atomic<std::size_t> waiting{0};
    std::atomic<std::size_t> told{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < waiters; ++i) {
        threads.emplace_back([&, wanted = lock()] {
            ++waiting;
            std::error_code ec;
            const bool granted = wanted.tryLock(waitForever, 20s, ec);
            told += !granted && ec == Errc::shutdown ? 1 : 0;
        });
    }
    EXPECT_TRUE(eventually([&] { return waiting == waiters && proxy.requests(request(redisLockLock)) >= 2; }));
    LockGuard guard(lockOf("held"), Lease(1500ms));
    const auto stalled = inject(request(redisLockUnlock), Action::stallDirection());
    guard = LockGuard();
    EXPECT_TRUE(proxy.awaitHits(stalled));
    const Stopwatch watch;
    EXPECT_FALSE(client().shutdown(200ms)) << "a release was not answered";
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_LT(watch.elapsed(), 200ms + slack);
    EXPECT_EQ(told, waiters);
    forgetClient();
    redis.command({"DEL", name});
    EXPECT_TRUE(eventually([&] { return !redis.exists("held"); })) << "it ends with its lease";
}

} // namespace
} // namespace redislock::test
