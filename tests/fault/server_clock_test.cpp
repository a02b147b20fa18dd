// The wall clock of the server's machine, which counts times to live, is set.
#include "fault/counter_fault.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace redislock::test {
namespace {

/// The offset of the clock of all servers that are started while this object lives. It must exist before the server,
/// hence a base class.
class ServerClockFile {
protected:
    ServerClockFile()
    {
        const auto path = folder_.path() / "clock";
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ::ftruncate(file, sizeof *offset_) != 0) {
            throw std::system_error(errno, std::generic_category(), path);
        }
        offset_ = static_cast<std::atomic<std::int64_t>*>(
            ::mmap(nullptr, sizeof *offset_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
        ::setenv("REDISLOCK_TEST_CLOCK", path.c_str(), 1);
        ::setenv("LD_PRELOAD", REDISLOCK_CLOCK_SHIM, 1);
    }
    ServerClockFile(const ServerClockFile&) = delete;
    ServerClockFile& operator=(const ServerClockFile&) = delete;
    ~ServerClockFile() { ::munmap(offset_, sizeof *offset_); }

    /// Later programs have the right clock.
    static void endEnvironment()
    {
        ::unsetenv("LD_PRELOAD");
        ::unsetenv("REDISLOCK_TEST_CLOCK");
    }

    /// Sets the clock. @param by the offset from the right time.
    void setClock(std::chrono::microseconds by) { *offset_ = by.count(); }

private:
    testing::detail::TemporaryFolder folder_;
    std::atomic<std::int64_t>* offset_ = nullptr;
};

template <class Fixture>
class WithServerClock : protected ServerClockFile, public Fixture {
protected:
    WithServerClock() { endEnvironment(); }
};

class ServerClock : public WithServerClock<FaultTest> {
protected:
    std::int64_t serverTime() { return std::stoll(redis.command({"TIME"}).elements.at(0).text()); }
};

TEST_F(ServerClock, SetForwardLosesTheHoldWithTheNextRenewalAndHarmsTheNextHolderNot)
{
    config.watchdogTimeout = 3s;
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    const auto grantedAt = bootTime();
    const auto before = serverTime();
    setClock(1h);
    expectFault(serverTime() >= before + 3600, "a clock that was set forward");
    Config others = config;
    others.observer = nullptr;
    const Client other(others);
    const RedisLock next = other.getLock(name);
    EXPECT_TRUE(next.tryLock(0ms, 20s)) << "exclusion ends here, and no client can help it";
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_LT(bootTime() - grantedAt, 2800ms) << "not by the renewal, but when its time was over";
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(countInRedis(other), "1");
    EXPECT_EQ(next.unlock(), Unlocked::released);
}

TEST_F(ServerClock, SetBackKeepsTheLockOfADeadHolderAndEndsEveryWaitInTime)
{
    config.pollInterval = 200ms;
    foreignLock(1s);
    const auto before = serverTime();
    setClock(-1h);
    expectFault(serverTime() <= before - 3590 && redis.pttl(name) > 50min, "a clock that was set back");
    const Stopwatch watch;
    EXPECT_FALSE(lock().tryLock(900ms, 10s));
    EXPECT_GE(watch.elapsed(), 900ms);
    EXPECT_LT(watch.elapsed(), 900ms + slack);
    EXPECT_GE(requestsFor(redisLockLock).size(), 4U) << "it waits for a time that is not true";
    auto waiter = waitInBackground(20s);
    setClock(0s);
    expectGranted(waiter.get()); // the waiter's poll gets it
}

TEST_F(ServerClock, SetBackLosesNoHoldAndIsNotBelieved)
{
    config.watchdogTimeout = 1500ms;
    const RedisLock held = lock();
    held.lock();
    const auto before = serverTime();
    setClock(-1h);
    expectFault(serverTime() <= before - 3590, "a clock that was set back");
    EXPECT_TRUE(seen->await(Event::renewed, 2));
    EXPECT_LE(held.validFor(), config.watchdogTimeout);
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
}

using CounterAndServerClock = WithServerClock<CounterFault>;

TEST_F(CounterAndServerClock, SetForwardWhileAnAnswerIsLateLetsNoRequestCountTwice)
{
    const auto semaphore = client().getSemaphore(counter);
    const auto latch = client().getCountDownLatch(counter);
    const auto permits = client().getPermitExpirableSemaphore(counter);
    struct Case {
        const char* how;
        const Script& script;
        std::int64_t before;
        std::function<void()> ask;
        std::string after;
    };
    using detail::scripts::permitExpirableSemaphoreSet;
    redis.command({"SCRIPT", "LOAD", permitExpirableSemaphoreSet.text()});
    const Case cases[] = {
        {"acquire", detail::scripts::semaphoreAcquire, 5, [&] { semaphore.acquire(2); }, "3"},
        {"asyncAcquire", detail::scripts::semaphoreAcquire, 5,
         [&] { semaphore.asyncAcquire(2, boost::asio::use_future).get(); }, "3"},
        {"release", detail::scripts::semaphoreAdd, 5, [&] { semaphore.release(2); }, "7"},
        {"addPermits", detail::scripts::semaphoreAdd, 5, [&] { semaphore.addPermits(-2); }, "3"},
        {"drainPermits", detail::scripts::semaphoreDrain, 5, [&] { EXPECT_EQ(semaphore.drainPermits(), 5); }, "0"},
        {"forceDelete", detail::scripts::counterDelete, 5, [&] { EXPECT_TRUE(semaphore.forceDelete()); }, "none"},
        {"trySetPermits", detail::scripts::counterTrySet, -1, [&] { EXPECT_TRUE(semaphore.trySetPermits(4)); }, "4"},
        {"setPermits", permitExpirableSemaphoreSet, 5, [&] { permits.setPermits(6); }, "6"},
        {"countDown", detail::scripts::countDownLatchCountDown, 5, [&] { EXPECT_EQ(latch.countDown(), 4); }, "4"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.how);
        redis.command({"DEL", counter});
        if (c.before >= 0) {
            set(c.before);
        }
        setClock(0s);
        const auto lost = inject(reply(c.script), Action::swallow(), 1);
        auto asked = std::async(std::launch::async, c.ask);
        EXPECT_TRUE(proxy.awaitHits(lost));
        setClock(24h * 29);
        asked.get();
        EXPECT_EQ(value(), c.after);
    }
}

TEST_F(CounterAndServerClock, SetForwardLosesNoPermitOfAnAcquireThatIsWithdrawn)
{
    config.unreachableAfter = 1s;
    set(5);
    const auto lost = inject(reply(detail::scripts::semaphoreAcquire, 0), Action::swallow());
    auto asked = std::async(std::launch::async, [this] {
        std::error_code ec;
        client().getSemaphore(counter).acquire(2, ec);
        return ec;
    });
    ASSERT_TRUE(proxy.awaitHits(lost));
    EXPECT_EQ(value(), "3");
    setClock(24h * 29);
    EXPECT_EQ(asked.get(), Errc::unreachable);
    EXPECT_TRUE(isLeft("5"));
}

} // namespace
} // namespace redislock::test
