// Waits that end while the server is silent or gone.
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using boost::asio::use_future;

/// The times after which connections and calls end by themselves are far longer than these tests.
class EndOfWait : public FaultTest {
protected:
    EndOfWait()
    {
        config.commandTimeout = 60s;
        config.connectTimeout = 60s;
        config.unreachableAfter = 10min;
        config.watchdogTimeout = 10min;
    }

    /// Runs a call on another thread. @return its result; nothing if the call does not end while the server is silent.
    template <class Function>
    static auto endOf(Function function)
    {
        auto call = std::async(std::launch::async, std::move(function));
        EXPECT_EQ(call.wait_for(20s), std::future_status::ready) << "it waits for the server";
        return call;
    }

    /// Calls that wait, in every form. Each returns the error with which it ended.
    std::vector<std::pair<std::string, std::function<std::error_code()>>> calls()
    {
        constexpr auto wait = 100ms;
        const auto& of = client();
        // no exception passes from thread to thread
        const auto endOfHandler = [](auto begin) {
            const auto ended = std::make_shared<std::promise<std::error_code>>();
            begin([ended](boost::system::error_code ec, const auto&) { ended->set_value(std::error_code(ec)); });
            return ended->get_future().get();
        };
        const auto lockCall = [wait](auto one) {
            return [one, wait] {
                std::error_code ec;
                EXPECT_FALSE(one.tryLock(wait, 10s, ec));
                return ec;
            };
        };
        const auto asyncCall = [wait, endOfHandler](auto one) {
            return [=] { return endOfHandler([&](auto handler) { one.asyncTryLock(wait, 10s, handler); }); };
        };
        return {
            {"lock", lockCall(of.getLock(name))},
            {"lock, asynchronously", asyncCall(of.getLock(name))},
            {"fair lock", lockCall(of.getFairLock("fair"))},
            {"read lock", lockCall(of.getReadWriteLock("read").readLock())},
            {"fenced lock, asynchronously", asyncCall(of.getFencedLock("fenced"))},
            {"several", lockCall(MultiLock({of.getLock("first"), of.getLock("second")}))},
            {"semaphore",
             [one = of.getSemaphore("semaphore"), wait] {
                 std::error_code ec;
                 EXPECT_FALSE(one.tryAcquire(1, wait, ec));
                 return ec;
             }},
            {"semaphore, asynchronously",
             [=, one = of.getSemaphore("semaphore")] {
                 return endOfHandler([&](auto handler) { one.asyncTryAcquire(1, wait, handler); });
             }},
            {"permit",
             [one = of.getPermitExpirableSemaphore("permits"), wait] {
                 std::error_code ec;
                 EXPECT_FALSE(one.tryAcquire(wait, 10s, ec));
                 return ec;
             }},
            {"latch",
             [one = of.getCountDownLatch("latch"), wait] {
                 std::error_code ec;
                 EXPECT_FALSE(one.wait(wait, ec));
                 return ec;
             }},
        };
    }
};

TEST_F(EndOfWait, IsTheEndOfTheCallThoughTheServerIsSilent)
{
    EXPECT_TRUE(lockOf("connected").tryLock(20s, 10s));
    EXPECT_EQ(lockOf("connected").unlock(), Unlocked::released);
    EXPECT_FALSE(lockOf("connected").asyncIsLocked(use_future).get());
    redis.command({"SET", "semaphore", "1"});
    redis.command({"SET", "latch", "1"});
    proxy.stall();
    for (const auto& [form, call] : calls()) {
        SCOPED_TRACE(form);
        EXPECT_EQ(endOf(call).get(), Errc::unreachable) << "nobody said that another has it";
    }
    proxy.resume();
    expectFault(true, "a server that is silent");
    EXPECT_TRUE(eventually([&] {
        return redis.command({"GET", "semaphore"}).text() == "1" && !redis.exists(name);
    })) << "what was granted in vain is given back";
    redis.command({"DEL", "semaphore", "latch"});
    EXPECT_TRUE(eventually([&] {
        for (const char* key : {"fair", "read", "fenced", "first", "second"}) {
            if (redis.exists(key)) {
                return false;
            }
        }
        return true;
    }));
    forgetClient();
    redis.command({"FLUSHALL"}); // removes the records of counters
}

TEST_F(EndOfWait, IsTheEndOfTheCallThoughAnotherCallerLeadsAndItsAnswerIsHeldBack)
{
    EXPECT_TRUE(lockOf("connected").tryLock(20s, 10s));
    EXPECT_EQ(lockOf("connected").unlock(), Unlocked::released);
    const auto held = inject(reply(redisLockLock), Action::stallDirection());
    auto first = waitInBackground(10min);
    EXPECT_TRUE(proxy.awaitHits(held));
    for (const auto& wanted : {name, std::string("another")}) {
        std::error_code ec;
        EXPECT_FALSE(endOf([&] { return lockOf(wanted).tryLock(100ms, 10s, ec); }).get());
        EXPECT_EQ(ec, Errc::unreachable) << wanted;
    }
    proxy.resume();
    expectGranted(first.get());
    EXPECT_TRUE(eventually([&] { return !redis.exists("another"); })) << "it was granted, to nobody";
}

TEST_F(EndOfWait, IsContentionWhereAnotherIsKnownToHoldTheLock)
{
    foreignLock(10min);
    config.pollInterval = 100ms;
    EXPECT_TRUE(lock().isLocked()); // so that the client is connected
    const auto held = inject(reply(redisLockLock, 2), Action::stallDirection());
    std::error_code ec;
    EXPECT_FALSE(endOf([&] { return lock().tryLock(3s, 10s, ec); }).get()) << "its second request gets no answer";
    EXPECT_TRUE(proxy.awaitHits(held));
    EXPECT_EQ(ec, std::error_code());
    redis.command({"DEL", name});
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); })) << "what was granted in vain is given back";
}

TEST_F(EndOfWait, OfOneAttemptIsTheFirstRefusalOfTheAddress)
{
    config.unreachableAfter = 10min;
    proxy.refuse();
    auto waiter = waitInBackground(10min); // by then the pauses have grown to a second
    ASSERT_TRUE(seen->await(Event::disconnected, 8));
    const Stopwatch watch;
    for (int i = 0; i < 20; ++i) {
        std::error_code ec;
        EXPECT_FALSE(lockOf("wanted").tryLock(ec));
        EXPECT_EQ(ec, Errc::unreachable);
        const auto held = lockOf("wanted").asyncTryLock(use_future);
        EXPECT_EQ(held.wait_for(20s), std::future_status::ready);
    }
    EXPECT_LT(watch.elapsed(), 12s) << "it waits for long pauses: 40 of them are half a minute";
    expectFault(true, "an address that refuses");
    proxy.accept();
    expectGranted(waiter.get());
}

} // namespace
} // namespace redislock::test
