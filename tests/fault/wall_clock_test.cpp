// The wall clock of the client's machine is set: nothing of the library looks at it.
//
// This program has its own clock_gettime(), gettimeofday() and time(), which all of it uses, the library included.
#include "fault/fault_test.hpp"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>

namespace {

std::atomic<std::int64_t> wallClockSetBy{0}; // seconds

} // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept
{
    const long result = ::syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += wallClockSetBy.load(std::memory_order_relaxed);
    }
    return static_cast<int>(result);
}

extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept
{
    timespec now{};
    const int result = ::clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}

extern "C" std::time_t time(std::time_t* time) noexcept
{
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    if (time != nullptr) {
        *time = now.tv_sec;
    }
    return now.tv_sec;
}

namespace redislock::test {
namespace {

class WallClock : public FaultTest {
protected:
    /// Sets the wall clock of this process.
    void set(std::chrono::seconds by)
    {
        const auto before = std::chrono::system_clock::now();
        wallClockSetBy += by.count();
        const auto moved = std::chrono::system_clock::now() - before;
        expectFault(moved > by - 10s && moved < by + 10s, "a clock that was set");
    }
    ~WallClock() override { wallClockSetBy = 0; }
};

TEST_F(WallClock, SetByADayForwardOrBackLosesNoHoldAndEndsNoWait)
{
    config.watchdogTimeout = 1200ms;
    foreignLock("wanted", 60s);
    auto waiter = std::async(std::launch::async, [wanted = lockOf("wanted")] {
        return wanted.tryLock(20s, 20s) && wanted.unlock() == Unlocked::released;
    });
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    const RedisLock held = lock();
    held.lock();
    for (const auto by : {24h, -48h}) {
        set(by);
        EXPECT_GT(held.validFor(), 0ms);
        EXPECT_LE(held.validFor(), config.watchdogTimeout);
        const auto renewed = seen->count(Event::renewed);
        EXPECT_TRUE(seen->await(Event::renewed, renewed + 2));
        const Stopwatch watch;
        EXPECT_FALSE(lockOf("wanted").tryLock(200ms, 20s));
        EXPECT_GE(watch.elapsed(), 200ms);
        EXPECT_LT(watch.elapsed(), 200ms + slack);
    }
    EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    redis.command({"DEL", "wanted"});
    redis.command({"PUBLISH", detail::lockChannel("wanted"), "0"});
    EXPECT_TRUE(waiter.get());
}

} // namespace
} // namespace redislock::test
