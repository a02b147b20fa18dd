// The wall clock of the server's machine, which counts times to live, is set.
#include "fault/fault_test.hpp"

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

    /// Sets the clock. @param by the offset from the right time.
    void setClock(std::chrono::microseconds by) { *offset_ = by.count(); }

private:
    testing::detail::TemporaryFolder folder_;
    std::atomic<std::int64_t>* offset_ = nullptr;
};

class ServerClock : protected ServerClockFile, public FaultTest {
protected:
    ServerClock()
    {
        ::unsetenv("LD_PRELOAD");
        ::unsetenv("REDISLOCK_TEST_CLOCK");
    }

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

} // namespace
} // namespace redislock::test
