// Spans at the ends of what can be said, in every function that takes one.
#include "behaviour/counter_test.hpp"
#include "behaviour/worker.hpp"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock::test {
namespace {

using Spans = CounterTest;
using Span = std::pair<const char*, milliseconds>;

const std::array longSpans{
    Span{"max", milliseconds::max()},
    Span{"just below max", milliseconds::max() - 1ms},
    Span{"300 years", std::chrono::years(300)},
    Span{"292 years", std::chrono::years(292)},
};

const std::array shortSpans{
    Span{"zero", 0ms},
    Span{"negative", -1ms},
    Span{"-300 years", -std::chrono::years(300)},
    Span{"just above min", milliseconds::min() + 1ms},
    Span{"min", milliseconds::min()},
};

/// A form of waiting for something that is taken. Frees at once what it gets.
struct Form {
    const char* what;
    std::function<bool(Wait)> take;
};

TEST_F(Spans, OfAWaitMeanOneAttemptOrUntilItIsFree)
{
    const RedisLock held = client.getLock(uniqueName());
    const RedisLock lock = far.getLock(held.name());
    const FencedLock fenced = far.getFencedLock(held.name());
    const FairLock fair = far.getFairLock(held.name());
    const MultiLock multi({lock});
    const Semaphore semaphore = far.getSemaphore(counterName());
    const PermitExpirableSemaphore permits = far.getPermitExpirableSemaphore(counterName());
    const CountDownLatch latch = far.getCountDownLatch(counterName());
    const auto often = RetryPolicy::fixed(5ms);
    const auto token = boost::asio::use_future;
    const auto freed = [](const auto& of, bool granted) { return granted && of.unlock() == Unlocked::released; };
    const Form forms[] = {
        {"tryLock", [&](Wait wait) { return freed(lock, lock.tryLock(wait)); }},
        {"tryLock of a fair lock", [&](Wait wait) { return freed(fair, fair.tryLock(wait)); }},
        {"tryLock with a policy", [&](Wait wait) { return freed(lock, lock.tryLock(wait, 10s, often)); }},
        {"try_lock_for", [&](Wait wait) { return freed(lock, lock.try_lock_for(wait.span())); }},
        {"a guard", [&](Wait wait) { return static_cast<bool>(LockGuard(lock, wait, 10s)); }},
        {"tryLockAndGetToken",
         [&](Wait wait) { return freed(fenced, fenced.tryLockAndGetToken(wait, 10s).has_value()); }},
        {"asyncTryLock", [&](Wait wait) { return static_cast<bool>(lock.asyncTryLock(wait, 10s, token).get()); }},
        {"asyncTryLock with a policy",
         [&](Wait wait) { return static_cast<bool>(lock.asyncTryLock(wait, 10s, often, token).get()); }},
        {"a group", [&](Wait wait) { return freed(multi, multi.tryLock(wait, 10s)); }},
        {"a group with a policy", [&](Wait wait) { return freed(multi, multi.tryLock(wait, 10s, often)); }},
        {"a group, asynchronously",
         [&](Wait wait) { return static_cast<bool>(multi.asyncTryLock(wait, 10s, token).get()); }},
        {"executeWithLock", [&](Wait wait) { return executeWithLock(lock, wait, 10s, [] { return 1; }).has_value(); }},
        {"a semaphore", [&](Wait wait) { return semaphore.tryAcquire(1, wait); }},
        {"a semaphore, asynchronously", [&](Wait wait) { return semaphore.asyncTryAcquire(1, wait, token).get(); }},
        {"a permit", [&](Wait wait) { return static_cast<bool>(permits.tryAcquire(wait, 10s)); }},
        {"a permit, asynchronously",
         [&](Wait wait) { return static_cast<bool>(permits.asyncTryAcquire(wait, 10s, token).get()); }},
        {"a latch", [&](Wait wait) { return latch.wait(wait); }},
        {"a latch, asynchronously", [&](Wait wait) { return latch.asyncWait(wait, token).get(); }},
    };
    const auto take = [&] {
        held.lock();
        semaphore.forceDelete();
        permits.forceDelete();
        EXPECT_TRUE(semaphore.trySetPermits(0) && permits.trySetPermits(0) && latch.trySetCount(1));
    };
    Worker waiter;
    for (const auto& [what, form] : forms) {
        for (const auto& [name, span] : shortSpans) {
            SCOPED_TRACE(std::string(what) + ", " + name);
            take();
            const Stopwatch watch;
            EXPECT_FALSE(waiter.run([&, wait = span, &form = form] { return form(wait); }));
            EXPECT_LT(watch.elapsed(), soon);
            held.unlock();
            latch.countDown();
        }
        for (const auto& [name, span] : longSpans) {
            SCOPED_TRACE(std::string(what) + ", " + name);
            take();
            auto waiting = waiter.start([&, wait = span, &form = form] { return form(wait); });
            EXPECT_EQ(waiting.wait_for(10ms), std::future_status::timeout);
            held.unlock();
            semaphore.release();
            permits.setPermits(1);
            latch.countDown();
            ASSERT_TRUE(isDone(waiting));
            EXPECT_TRUE(waiting.get());
        }
    }
}

TEST_F(Spans, ThatEndAtAMomentMeanOneAttemptOrUntilItIsFree)
{
    const RedisLock held = client.getLock(uniqueName());
    const RedisLock lock = far.getLock(held.name());
    Worker waiter;
    const auto ends = [&]<class Clock>(Clock /*clock*/) {
        using Moment = typename Clock::time_point;
        for (const auto past : {Moment::min(), Moment{}, Clock::now() - 1s}) {
            held.lock();
            EXPECT_FALSE(waiter.run([&] { return lock.try_lock_until(past); }));
            held.unlock();
        }
        for (const auto future : {Moment::max(), Moment::max() - 1s}) {
            held.lock();
            auto waiting = waiter.start([&] { return lock.try_lock_until(future); });
            EXPECT_EQ(waiting.wait_for(10ms), std::future_status::timeout);
            held.unlock();
            ASSERT_TRUE(isDone(waiting));
            EXPECT_TRUE(waiting.get());
            EXPECT_EQ(waiter.run([&] { return lock.unlock(); }), Unlocked::released);
        }
    };
    ends(std::chrono::system_clock());
    ends(std::chrono::steady_clock());
    ends(BootClock());
}

TEST_F(Spans, OfAPauseEndWithTheWait)
{
    using Try = std::pair<const char*, std::function<bool(const RetryPolicy&)>>;
    const RedisLock held = client.getLock(uniqueName());
    const RedisLock lock = far.getLock(held.name());
    const MultiLock multi({lock});
    const Try forms[] = {
        {"tryLock",
         [&](const auto& policy) {
             return std::async(std::launch::async, [&] { return lock.tryLock(20ms, 10s, policy); }).get();
         }},
        {"asyncTryLock",
         [&](const auto& policy) {
             return static_cast<bool>(lock.asyncTryLock(20ms, 10s, policy, boost::asio::use_future).get());
         }},
        {"a group",
         [&](const auto& policy) {
             return std::async(std::launch::async, [&] { return multi.tryLock(20ms, 10s, policy); }).get();
         }},
    };
    std::map<std::string, int> pauses;
    const auto endsWithoutIt = [&](const Try& form, const RetryPolicy& policy) {
        try {
            const bool isGranted = form.second(policy);
            pauses[form.first] += isGranted ? 0 : 1;
            return !isGranted;
        } catch (const std::system_error& e) { // on a busy machine 20 ms may be over before the first answer
            return e.code() == Errc::unreachable;
        } catch (const boost::system::system_error& e) {
            return e.code() == Errc::unreachable;
        }
    };
    held.lock();
    for (const auto& spans :
         {std::vector(longSpans.begin(), longSpans.end()), std::vector(shortSpans.begin(), shortSpans.end())}) {
        for (const auto& [name, span] : spans) {
            SCOPED_TRACE(name);
            for (const auto& policy : {RetryPolicy::fixed(span), RetryPolicy::exponential(span, span),
                                       RetryPolicy::exponential(1ms, span), RetryPolicy::spinThenSleep(1, span)}) {
                const Stopwatch watch;
                for (const auto& form : forms) {
                    EXPECT_TRUE(endsWithoutIt(form, policy)) << form.first;
                }
                std::stop_source stop;
                auto waiting =
                    inBackground([&, policy] { return lock.tryLock(waitForever, 10s, policy, stop.get_token()); });
                stop.request_stop();
                EXPECT_FALSE(waiting.get());
                EXPECT_LT(watch.elapsed(), soon);
            }
        }
    }
    EXPECT_EQ(held.unlock(), Unlocked::released);
    for (const auto& [what, form] : forms) {
        EXPECT_GT(pauses[what], 0) << what;
    }
}

TEST_F(Spans, OfALeaseThatAreTooShortOrTooLongAreRefused)
{
    const auto semaphore = client.getSemaphore(counterName());
    const auto permits = client.getPermitExpirableSemaphore(counterName());
    ASSERT_TRUE(permits.trySetPermits(1));
    const Permit permit = permits.acquire(20s);
    const auto token = boost::asio::use_future;
    const auto isRefused = [](const auto& call) {
        try {
            call();
            ADD_FAILURE() << "no error";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), Errc::invalidArgument) << e.what();
        } catch (const boost::system::system_error& e) {
            EXPECT_EQ(e.code(), Errc::invalidArgument) << e.what();
        }
    };
    for (const auto& [name, span] : {longSpans[0], longSpans[1], longSpans[2], longSpans[3], shortSpans[0],
                                     shortSpans[1], shortSpans[2], shortSpans[3], shortSpans[4]}) {
        SCOPED_TRACE(name);
        const Lease lease = span;
        const auto each = span; // Clang 14 captures no structured binding
        if (lease != nonExpiring) {
            isRefused([&] { (void)permits.acquire(lease); });
            isRefused([&] { (void)permits.asyncAcquire(lease, token).get(); });
            isRefused([&] { permits.updateLeaseTime(permit.id(), lease); });
            isRefused([&] { permits.asyncUpdateLeaseTime(permit.id(), lease, token).get(); });
        }
        isRefused([&] { semaphore.trySetPermits(1, each); });
        isRefused([&] { permits.trySetPermits(1, each); });
        if (each != 0ms) { // this means no time to live there
            isRefused([&] { semaphore.asyncTrySetPermits(1, each, token).get(); });
            isRefused([&] { permits.asyncTrySetPermits(1, each, token).get(); });
        }
        const auto lock = client.getLock(uniqueName());
        isRefused([&] { lock.lock(lease); });
        isRefused([&] { (void)lock.asyncLock(lease, token).get(); });
        isRefused([&] { MultiLock({lock}).lock(lease); });
        isRefused([&] { (void)MultiLock({lock}).asyncLock(lease, token).get(); });
    }
    EXPECT_GT(permits.getLeaseTime(permit.id()).value_or(0ms), 10s);
    EXPECT_TRUE(permits.updateLeaseTime(permit.id(), nonExpiring));
}

TEST_F(Spans, OfTheConfigurationAreWithinTheirRulesOrRefused)
{
    const auto isValid = [](milliseconds Config::*field, milliseconds span) {
        Config settings = config();
        settings.*field = span;
        try {
            settings.validate();
            return true;
        } catch (const LockError& e) {
            EXPECT_EQ(e.code(), Errc::badConfig);
            return false;
        }
    };
    for (const auto field : {&Config::connectTimeout, &Config::commandTimeout, &Config::unreachableAfter,
                             &Config::watchdogTimeout, &Config::pollInterval, &Config::maxHold}) {
        const bool mayBeAny = field == &Config::maxHold; // zero: without limit
        for (const auto& [name, span] : longSpans) {
            EXPECT_EQ(isValid(field, span), mayBeAny) << name;
        }
        for (const auto& [name, span] : shortSpans) {
            EXPECT_EQ(isValid(field, span), mayBeAny && span == 0ms) << name;
        }
    }
    for (const auto span : {std::chrono::microseconds::max(), -1us, std::chrono::microseconds::min()}) {
        Config settings = config();
        settings.turn = span;
        EXPECT_THROW(settings.validate(), LockError);
    }
}

TEST_F(Spans, OfAlarmsAreNeverOverOrAlways)
{
    const auto lock = client.getLock(uniqueName());
    lock.lock(10s);
    LockMonitor monitor(config());
    const auto raised = [&](milliseconds heldFor, milliseconds within) {
        std::pair<int, int> times{0, 0};
        MonitorAlarms alarms;
        alarms.heldFor = heldFor;
        alarms.heldTooLong = [&](const auto&...) { ++times.first; };
        alarms.clientId = client.id();
        alarms.deadlineWithin = within;
        alarms.nearDeadline = [&](const auto&...) { ++times.second; };
        monitor.check(lock.name(), alarms);
        return times;
    };
    for (const auto& [name, span] : longSpans) {
        EXPECT_EQ(raised(span, span), std::pair(0, 1)) << name;
    }
    for (const auto& [name, span] : shortSpans) {
        EXPECT_EQ(raised(span, span).second, 0) << name;
    }
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Spans, OfAnEndAreOnlyWaitedForWhileSomethingIsUnderWay)
{
    for (const auto& spans :
         {std::vector(longSpans.begin(), longSpans.end()), std::vector(shortSpans.begin(), shortSpans.end())}) {
        for (const auto& [name, span] : spans) {
            SCOPED_TRACE(name);
            for (const bool isBlocking : {true, false}) {
                Client ending(config());
                const auto lock = ending.getLock(uniqueName());
                lock.lock(200ms);
                const Stopwatch watch;
                EXPECT_TRUE(isBlocking ? ending.shutdown(span)
                                       : ending.asyncShutdown(span, boost::asio::use_future).get());
                EXPECT_LT(watch.elapsed(), soon);
            }
        }
    }
}

/// The time that this thread has used of its processor.
std::chrono::microseconds timeOfThread()
{
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

TEST_F(Spans, OfAnEndWithoutLimitAreSleptThroughUntilTheServerAnswers)
{
    for (const auto& [name, span] : longSpans) {
        SCOPED_TRACE(name);
        testing::RedisServer silent = testServer();
        Config settings = testConfig(silent);
        settings.commandTimeout = 30s;
        Client ending(settings);
        const auto lock = ending.getLock("held");
        std::optional guard{LockGuard(lock)};
        silent.freeze();
        guard.reset();
        auto end = inBackground([&, limit = span] {
            const auto before = timeOfThread();
            const Stopwatch watch;
            const bool isAnswered = ending.shutdown(limit);
            EXPECT_LT(timeOfThread() - before, watch.elapsed() / 4) << "it does not sleep";
            return isAnswered;
        });
        EXPECT_EQ(end.wait_for(100ms), std::future_status::timeout);
        silent.thaw();
        ASSERT_TRUE(isDone(end));
        EXPECT_TRUE(end.get());
        EXPECT_FALSE(RawRedis(silent).exists("held"));
    }
}

TEST_F(Spans, OfTheStartOfATestsServerAreNeverOver)
{
    for (const auto& [name, span] : longSpans) {
        testing::RedisServer started({.startTimeout = span});
        EXPECT_NO_THROW(started.restart()) << name;
    }
}

} // namespace
} // namespace redislock::test
