// If the wall clock of the client's machine is set, nothing happens, since the library does not use it. If the machine
// is suspended, work that became due meanwhile is done at once.
//
// The whole program, including the library, uses the clock_gettime(), gettimeofday(), time(), timerfd_create() and
// timerfd_settime() of this file. A suspend is a step of the boot clock and of its timers, which all other clocks do
// not make.
#include "fault/fault_test.hpp"

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>

namespace {

std::atomic<std::int64_t> wallClockSetBy{0}; // seconds

/// How long the machine was suspended, and the settings of the boot clock's timers, by their descriptors.
struct Suspendable {
    /// The setting of a descriptor; null if the descriptor is too large.
    std::optional<itimerspec>* find(int timer) noexcept
    {
        const auto at = static_cast<std::size_t>(timer);
        return timer >= 0 && at < timers.size() ? &timers[at] : nullptr;
    }
    /// Sets a timer of the system, whose boot clock was never suspended.
    int set(int timer, itimerspec time) const noexcept
    {
        if (time.it_value.tv_sec != 0 || time.it_value.tv_nsec != 0) {
            time.it_value.tv_sec -= suspended.load();
            if (time.it_value.tv_sec < 0) {
                time.it_value = {0, 1};
            }
            time.it_value.tv_nsec = std::max(time.it_value.tv_nsec, 1L); // all zero would disarm it
        }
        return static_cast<int>(::syscall(SYS_timerfd_settime, timer, TFD_TIMER_ABSTIME, &time, nullptr));
    }

    std::atomic<std::int64_t> suspended{0}; ///< seconds
    std::mutex mutex;
    std::array<std::optional<itimerspec>, 1024>
        timers{}; ///< by descriptor; without an allocation, which a test may refuse
};

Suspendable& suspendable()
{
    static Suspendable& time = *new Suspendable; // threads of the library may still set timers when the program ends
    return time;
}

} // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept
{
    const long result = ::syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += wallClockSetBy.load(std::memory_order_relaxed);
    }
    if (result == 0 && clock == CLOCK_BOOTTIME) {
        time->tv_sec += suspendable().suspended.load(std::memory_order_relaxed);
    }
    return static_cast<int>(result);
}

extern "C" int timerfd_create(clockid_t clock, int flags) noexcept
{
    const std::lock_guard lock(suspendable().mutex);
    const int timer = static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
    if (auto* const known = suspendable().find(timer)) {
        known->reset(); // the setting of another timer that was closed
        if (clock == CLOCK_BOOTTIME) {
            known->emplace();
        }
    }
    return timer;
}

extern "C" int timerfd_settime(int timer, int flags, const itimerspec* time, itimerspec* old) noexcept
{
    const std::lock_guard lock(suspendable().mutex);
    auto* const known = suspendable().find(timer);
    if (known == nullptr || !*known) {
        return static_cast<int>(::syscall(SYS_timerfd_settime, timer, flags, time, old));
    }
    *known = *time; // the library sets them to moments
    return suspendable().set(timer, *time);
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

/// Lets @p time pass on the boot clock alone, as in a suspend.
void suspend(std::chrono::seconds time)
{
    const std::lock_guard lock(suspendable().mutex);
    suspendable().suspended += time.count();
    for (std::size_t timer = 0; timer < suspendable().timers.size(); ++timer) {
        if (const auto& moment = suspendable().timers[timer]) {
            suspendable().set(static_cast<int>(timer), *moment);
        }
    }
}

/// A renewal is due after an hour, by any clock.
class SuspendedMachine : public FaultTest {
protected:
    SuspendedMachine()
    {
        config.watchdogTimeout = 3h;
        config.commandTimeout = 1min; // also for a renewal
        config.unreachableAfter = 1h;
    }
    ~SuspendedMachine() override { suspendable().suspended = 0; }

    RedisLock held() const { return *held_; }
    void hold()
    {
        held_.emplace(lock());
        held_->lock();
    }
    void sleep(std::chrono::seconds time)
    {
        const auto before = BootClock::now();
        suspend(time);
        expectFault(BootClock::now() - before >= time, "a suspend"); // the hold may be renewed already
    }

private:
    std::optional<RedisLock> held_;
};

TEST_F(SuspendedMachine, RenewsWhatIsOverdueWhenItWakes)
{
    hold();
    sleep(2h + 50min);
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_GT(held().validFor(), 2h + 50min);
    EXPECT_EQ(held().unlock(), Unlocked::released);
    EXPECT_EQ(seen->count(Event::lost), 0U);
}

TEST_F(SuspendedMachine, GivesUpARenewalWhoseAnswerIsOverdueWhenItWakes)
{
    hold();
    const auto lost = inject(request(redisLockRenew), Action::drop(), 1);
    sleep(2h);
    ASSERT_TRUE(proxy.awaitHits(lost));
    sleep(50min);
    EXPECT_TRUE(seen->await(Event::renewed));
    EXPECT_GT(held().validFor(), 2h + 50min);
    EXPECT_EQ(held().unlock(), Unlocked::released);
    EXPECT_EQ(seen->count(Event::lost), 0U);
}

TEST_F(SuspendedMachine, KnowsAtOnceThatAHoldIsLostWhenItWakes)
{
    hold();
    const auto stop = held().stopToken(StopAt::lost);
    sleep(3h);
    EXPECT_EQ(held().validFor(), 0ms);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held().unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(seen->count(Event::renewed), 0U);
    ASSERT_TRUE(seen->await(Event::lost));
    EXPECT_EQ(seen->all(Event::lost).front().reason, LossReason::paused);
    redis.command({"DEL", name}); // the server did not sleep
}

} // namespace
} // namespace redislock::test
