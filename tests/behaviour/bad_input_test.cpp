// Arguments outside their range, names of every kind, keys of others: each has its own outcome, before any harm.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
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

template <class D>
class BadInput : public BehaviourTest<D> {
protected:
    /// Everything that clients may have sent so far.
    std::pair<std::uint64_t, std::string> traffic()
    {
        return {this->scriptCalls(), this->raw.info("total_connections_received")};
    }
};

using BadInputDrivers = DriversWith<Feature::leases, Feature::waiting, Feature::guards>;
TYPED_TEST_SUITE(BadInput, BadInputDrivers, DriverNames);

/// Where others want the same lock.
template <class D>
class BadInputBesideOthers : public BadInput<D> {
};

using BadInputBesideOthersDrivers = DriversWith<Feature::leases, Feature::waiting, Feature::guards, Feature::exclusion>;
TYPED_TEST_SUITE(BadInputBesideOthers, BadInputBesideOthersDrivers, DriverNames);

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

TYPED_TEST(BadInput, BadLeaseIsRefusedAndNothingIsSent)
{
    const auto lock = this->make();
    const auto before = this->traffic();
    for (const auto& [name, lease] : badLeases) {
        SCOPED_TRACE(name);
        EXPECT_EQ(TypeParam::lock(lock, lease), Errc::invalidArgument);
        EXPECT_EQ(TypeParam::tryLock(lock, 0ms, lease), Errc::invalidArgument);
        EXPECT_EQ(TypeParam::tryLock(lock, waitForever, lease), Errc::invalidArgument);
        EXPECT_EQ(TypeParam::guard(lock, lease).error, Errc::invalidArgument);
        EXPECT_EQ(TypeParam::guard(lock, 1h, lease).error, Errc::invalidArgument);
    }
    EXPECT_EQ(this->traffic(), before);
    EXPECT_EQ(lock.holdCount(), 0U);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(BadInput, BadLeaseIsRefusedInsideAHoldToo)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 30s), true);
    const auto before = this->traffic();
    for (const auto& [name, lease] : badLeases) {
        SCOPED_TRACE(name);
        EXPECT_EQ(TypeParam::lock(lock, lease), Errc::invalidArgument);
    }
    EXPECT_EQ(this->traffic(), before);
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(BadInputBesideOthers, NegativeWaitIsOneAttempt)
{
    const auto lock = this->make();
    Worker other;
    for (const Wait wait : {Wait(-1ms), Wait(-1h), Wait(milliseconds::min()), Wait(-0.5ms)}) {
        EXPECT_EQ(TypeParam::tryLock(lock, wait), true);
        const Stopwatch watch;
        EXPECT_EQ(other.run([&] { return TypeParam::tryLock(lock, wait, 10s); }), false);
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    }
}

TYPED_TEST(BadInputBesideOthers, LongestWaitsWaitUntilTheLockIsFree)
{
    const auto lock = this->make();
    Worker other;
    const std::array waits{waitForever, Wait(milliseconds::max()), Wait(std::chrono::hours::max()),
                           Wait(milliseconds::max() - 1ms), Wait(std::chrono::years(1000))};
    for (const Wait wait : waits) {
        EXPECT_EQ(TypeParam::lock(lock), true);
        auto waiter = other.start([&] { return TypeParam::tryLock(lock, wait); });
        EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
        EXPECT_EQ(waiter.get(), true);
        EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    }
}

TYPED_TEST(BadInput, NameOutsideItsRangeIsRefused)
{
    const auto before = this->traffic();
    EXPECT_EQ(TypeParam::make(this->client, ""), Errc::invalidArgument);
    EXPECT_EQ(TypeParam::make(this->client, std::string(1025, 'x')), Errc::invalidArgument);
    EXPECT_EQ(TypeParam::make(this->client, std::string(100'000, '\0')), Errc::invalidArgument);
    EXPECT_EQ(this->traffic(), before);
}

TYPED_TEST(BadInputBesideOthers, NamesOfAnyBytesAreLocksOfTheirOwn)
{
    const Client other(this->config());
    std::string every;
    for (int byte = 0; byte < 256; ++byte) {
        every.push_back(static_cast<char>(byte));
    }
    const auto base = this->uniqueName();
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
        const auto lock = this->make(this->clean(name));
        ASSERT_EQ(TypeParam::tryLock(lock), true) << ::testing::PrintToString(name);
    }
    for (const auto& name : names) {
        SCOPED_TRACE(::testing::PrintToString(name));
        const auto lock = this->make(name);
        EXPECT_EQ(lock.name(), name);
        EXPECT_EQ(lock.holdCount(), 1U);
        EXPECT_EQ(this->holdersOf(name).size(), 1U);
        const auto elsewhere = this->make(other, name);
        EXPECT_EQ(TypeParam::isLocked(elsewhere), true);
        EXPECT_EQ(TypeParam::tryLock(elsewhere), false);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
        EXPECT_EQ(TypeParam::isLocked(elsewhere), false);
    }
}

TYPED_TEST(BadInputBesideOthers, WaitersOfStrangeNamesAreWokenToo)
{
    Config config = this->config();
    config.watchdogTimeout = 30s;
    const Client far(config);
    Worker other;
    const auto base = this->uniqueName();
    for (const auto& name : {base + std::string("\0x", 2), base + "a{b", base + "\r\n", base + "\xff"}) {
        const auto lock = this->make(this->clean(name));
        const auto held = this->make(far, name);
        EXPECT_EQ(TypeParam::lock(held), true);
        auto waiter = other.start([&] { return TypeParam::lock(lock); });
        ASSERT_TRUE(eventually([&] { return this->listeners(name) == 1; }));
        EXPECT_EQ(TypeParam::unlock(held), Unlocked::released);
        EXPECT_EQ(waiter.get(), true);
        EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Unlocked::released);
    }
}

TYPED_TEST(BadInput, KeyOfAnotherTypeIsReportedAtOnceAndLeftAlone)
{
    const auto lock = this->make();
    const std::array<RawRedis::Arguments, 4> others{{{"SET", lock.name(), "theirs"},
                                                     {"RPUSH", lock.name(), "theirs"},
                                                     {"SADD", lock.name(), "theirs"},
                                                     {"ZADD", lock.name(), "1", "theirs"}}};
    for (const auto& command : others) {
        SCOPED_TRACE(command.front());
        this->raw.command(command);
        const auto before = this->raw.command({"DUMP", lock.name()});
        const Stopwatch watch;
        EXPECT_EQ(TypeParam::lock(lock), Errc::wrongType);
        EXPECT_EQ(TypeParam::lock(lock, 10s), Errc::wrongType);
        EXPECT_EQ(TypeParam::tryLock(lock), Errc::wrongType);
        EXPECT_EQ(TypeParam::tryLock(lock, waitForever), Errc::wrongType);
        EXPECT_EQ(TypeParam::guard(lock).error, Errc::wrongType);
        EXPECT_EQ(TypeParam::isLocked(lock), Errc::wrongType);
        EXPECT_EQ(TypeParam::remainingTimeToLive(lock), Errc::wrongType);
        EXPECT_EQ(TypeParam::forceUnlock(lock), Errc::wrongType);
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(this->raw.command({"DUMP", lock.name()}), before);
        EXPECT_EQ(this->raw.pttl(lock.name()), -1ms);
        EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
        this->raw.command({"DEL", lock.name()});
    }
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(BadInput, UnlockBeyondTheLocksIsRefusedAndNothingIsSent)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    const auto before = this->traffic();
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    Worker other;
    EXPECT_EQ(other.run([&] { return TypeParam::unlock(lock); }), Errc::notHeld);
    EXPECT_EQ(this->traffic(), before);
}

TYPED_TEST(BadInput, UnlockAfterTheLeaseSendsNothing)
{
    const auto lock = this->make();
    constexpr int levels = supports<TypeParam>(Feature::reentrance) ? 2 : 1;
    for (int level = 0; level < levels; ++level) {
        EXPECT_EQ(TypeParam::lock(lock, 200ms), true);
    }
    ASSERT_TRUE(eventually([&] { return lock.holdCount() == 0; }));
    const auto before = this->traffic();
    for (int level = 0; level < levels; ++level) {
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    }
    EXPECT_EQ(TypeParam::unlock(lock), Errc::notHeld);
    EXPECT_EQ(this->traffic(), before);
}

TYPED_TEST(BadInput, CallsAfterShutdownAreRefusedAndNothingIsSent)
{
    Client ending(this->config());
    const auto lock = this->make(ending, this->uniqueName());
    EXPECT_TRUE(ending.shutdown());
    const auto before = this->traffic();
    EXPECT_EQ(TypeParam::lock(lock), Errc::shutdown);
    EXPECT_EQ(TypeParam::tryLock(lock), Errc::shutdown);
    EXPECT_EQ(TypeParam::tryLock(lock, 10s, 10s), Errc::shutdown);
    EXPECT_EQ(TypeParam::guard(lock).error, Errc::shutdown);
    EXPECT_EQ(TypeParam::isLocked(lock), Errc::shutdown);
    EXPECT_EQ(TypeParam::remainingTimeToLive(lock), Errc::shutdown);
    EXPECT_EQ(TypeParam::forceUnlock(lock), Errc::shutdown);
    EXPECT_EQ(this->traffic(), before);
}

} // namespace
} // namespace redislock::test
