// Arguments outside their range, names of every kind, foreign keys: each has its own outcome, before any harm.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::test {
namespace {

class BadInput : public BehaviourTest {
protected:
    /// Counters that change with everything that clients send.
    std::pair<std::uint64_t, std::string> traffic() { return {scriptCalls(), raw.info("total_connections_received")}; }
};

INSTANTIATE_TEST_SUITE_P(, BadInput, driversWith({Feature::leases, Feature::waiting, Feature::guards}), driverName);

/// Cases in which others want the same lock.
class BadInputBesideOthers : public BadInput {};

INSTANTIATE_TEST_SUITE_P(, BadInputBesideOthers,
                         driversWith({Feature::leases, Feature::waiting, Feature::guards, Feature::exclusion}),
                         driverName);

const std::array badLeases{
    std::pair{"zero", Lease(0ms)},
    std::pair{"1 ms", Lease(1ms)},
    std::pair{"just too short", Lease(9'999us)},
    std::pair{"negative", Lease(-10s)},
    std::pair{"most negative", Lease(milliseconds::min())},
    std::pair{"just too long", Lease(maxLease + 1ms)},
    std::pair{"far too long", Lease(std::chrono::hours(24 * 31))},
    std::pair{"max", Lease(milliseconds::max())},
    std::pair{"max hours", Lease(std::chrono::hours::max())},
};

TEST_P(BadInput, BadLeaseIsRefusedAndNothingIsSent)
{
    const auto lock = make();
    const auto before = traffic();
    for (const auto& [name, lease] : badLeases) {
        SCOPED_TRACE(name);
        EXPECT_EQ(lock.lock(lease), Errc::invalidArgument);
        EXPECT_EQ(lock.tryLock(0ms, lease), Errc::invalidArgument);
        EXPECT_EQ(lock.tryLock(waitForever, lease), Errc::invalidArgument);
        EXPECT_EQ(lock.guard(lease).error, Errc::invalidArgument);
        EXPECT_EQ(lock.guard(1h, lease).error, Errc::invalidArgument);
    }
    EXPECT_EQ(traffic(), before);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(BadInput, BadLeaseIsRefusedInsideAHoldToo)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(30s), true);
    const auto before = traffic();
    for (const auto& [name, lease] : badLeases) {
        SCOPED_TRACE(name);
        EXPECT_EQ(lock.lock(lease), Errc::invalidArgument);
    }
    EXPECT_EQ(traffic(), before);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(BadInputBesideOthers, NegativeWaitIsOneAttempt)
{
    const auto lock = make();
    Worker other;
    for (const Wait wait : {Wait(-1ms), Wait(-1h), Wait(milliseconds::min()), Wait(-0.5ms)}) {
        EXPECT_EQ(lock.tryLock(wait), true);
        const Stopwatch watch;
        EXPECT_EQ(other.run([&] { return lock.tryLock(wait, 10s); }), false);
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
}

TEST_P(BadInputBesideOthers, LongestWaitsWaitUntilTheLockIsFree)
{
    const auto lock = make();
    Worker other;
    const std::array waits{waitForever, Wait(milliseconds::max()), Wait(std::chrono::hours::max()),
                           Wait(milliseconds::max() - 1ms), Wait(std::chrono::years(1000))};
    for (const Wait wait : waits) {
        EXPECT_EQ(lock.lock(), true);
        auto waiter = other.start([&] { return lock.tryLock(wait); });
        EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
        EXPECT_TRUE(isEnded(lock.unlock()));
        EXPECT_EQ(waiter.get(), true);
        EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    }
}

TEST_P(BadInput, NameOutsideItsRangeIsRefused)
{
    const auto before = traffic();
    EXPECT_EQ(GetParam().make(client, ""), Errc::invalidArgument);
    EXPECT_EQ(GetParam().make(client, std::string(1025, 'x')), Errc::invalidArgument);
    EXPECT_EQ(GetParam().make(client, std::string(100'000, '\0')), Errc::invalidArgument);
    EXPECT_EQ(traffic(), before);
}

TEST_P(BadInputBesideOthers, NamesOfAnyBytesAreLocksOfTheirOwn)
{
    const Client other(config());
    std::string every;
    for (int byte = 0; byte < 256; ++byte) {
        every.push_back(static_cast<char>(byte));
    }
    const auto base = uniqueName();
    const std::array names{
        base + std::string("\0a", 2),
        base + std::string("\0b", 2),
        base + "line\nbreak",
        base + "line\r\nbreak",
        base + "{tagged}",
        base + "{",
        base + "}",
        base + "}{",
        base + "{}",
        base + "\xff\xfe\xc3(",
        base + " two words ",
        base + "\"quoted\" '%s' $1",
        base + every,
        std::string(1, '\0'),
        std::string("\r\n$-1\r\n"),
        std::string(1024, 'n'),
        std::string(1023, 'n') + '\0',
    };
    for (const auto& name : names) {
        const auto lock = make(clean(name));
        ASSERT_EQ(lock.tryLock(), true) << ::testing::PrintToString(name);
    }
    for (const auto& name : names) {
        SCOPED_TRACE(::testing::PrintToString(name));
        const auto lock = make(name);
        EXPECT_EQ(lock.name(), name);
        EXPECT_EQ(lock.holdCount(), 1U);
        EXPECT_EQ(holdersOf(name).size(), 1U);
        const auto elsewhere = make(other, name);
        EXPECT_EQ(elsewhere.isLocked(), true);
        EXPECT_EQ(elsewhere.tryLock(), false);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_EQ(elsewhere.isLocked(), false);
    }
}

TEST_P(BadInputBesideOthers, WaitersOfStrangeNamesAreWokenToo)
{
    Config config = LockTest::config();
    config.watchdogTimeout = 30s;
    const Client far(config);
    Worker other;
    const auto base = uniqueName();
    for (const auto& name : {base + std::string("\0x", 2), base + "a{b", base + "\r\n", base + "\xff"}) {
        const auto lock = make(clean(name));
        const auto held = make(far, name);
        EXPECT_EQ(held.lock(), true);
        auto waiter = other.start([&] { return lock.lock(); });
        ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
        EXPECT_EQ(held.unlock(), Unlocked::released);
        EXPECT_EQ(waiter.get(), true);
        EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    }
}

TEST_P(BadInput, KeyOfAnotherTypeIsReportedAtOnceAndLeftAlone)
{
    const auto lock = make();
    const std::array<RawRedis::Arguments, 4> others{{{"SET", lock.name(), "theirs"},
                                                     {"RPUSH", lock.name(), "theirs"},
                                                     {"SADD", lock.name(), "theirs"},
                                                     {"ZADD", lock.name(), "1", "theirs"}}};
    for (const auto& command : others) {
        SCOPED_TRACE(command.front());
        raw.command(command);
        const auto before = raw.command({"DUMP", lock.name()});
        const Stopwatch watch;
        EXPECT_EQ(lock.lock(), Errc::wrongType);
        EXPECT_EQ(lock.lock(10s), Errc::wrongType);
        EXPECT_EQ(lock.tryLock(), Errc::wrongType);
        EXPECT_EQ(lock.tryLock(waitForever), Errc::wrongType);
        EXPECT_EQ(lock.guard().error, Errc::wrongType);
        EXPECT_EQ(lock.isLocked(), Errc::wrongType);
        EXPECT_EQ(lock.remainingTimeToLive(), Errc::wrongType);
        EXPECT_EQ(lock.forceUnlock(), Errc::wrongType);
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(raw.command({"DUMP", lock.name()}), before);
        EXPECT_EQ(raw.pttl(lock.name()), -1ms);
        EXPECT_EQ(lock.unlock(), Errc::notHeld);
        raw.command({"DEL", lock.name()});
    }
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(BadInput, UnlockBeyondTheLocksIsRefusedAndNothingIsSent)
{
    const auto lock = make();
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    const auto before = traffic();
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    Worker other;
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Errc::notHeld);
    EXPECT_EQ(traffic(), before);
}

TEST_P(BadInput, UnlockAfterTheLeaseSendsNothing)
{
    const auto lock = make();
    const int levels = supports(Feature::reentrance) ? 2 : 1;
    for (int level = 0; level < levels; ++level) {
        EXPECT_EQ(lock.lock(200ms), true);
    }
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    const auto before = traffic();
    for (int level = 0; level < levels; ++level) {
        EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    }
    EXPECT_EQ(lock.unlock(), Errc::notHeld);
    EXPECT_EQ(traffic(), before);
}

TEST_P(BadInput, CallsAfterShutdownAreRefusedAndNothingIsSent)
{
    Client ending(config());
    const auto lock = make(ending, uniqueName());
    EXPECT_TRUE(ending.shutdown());
    const auto before = traffic();
    EXPECT_EQ(lock.lock(), Errc::shutdown);
    EXPECT_EQ(lock.tryLock(), Errc::shutdown);
    EXPECT_EQ(lock.tryLock(10s, 10s), Errc::shutdown);
    EXPECT_EQ(lock.guard().error, Errc::shutdown);
    EXPECT_EQ(lock.isLocked(), Errc::shutdown);
    EXPECT_EQ(lock.remainingTimeToLive(), Errc::shutdown);
    EXPECT_EQ(lock.forceUnlock(), Errc::shutdown);
    EXPECT_EQ(traffic(), before);
}

} // namespace
} // namespace redislock::test
