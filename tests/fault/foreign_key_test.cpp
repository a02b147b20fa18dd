// Other programs that touch the key of a lock: they delete it, change its time to live, or use its name for something
// else.
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

#include <map>

namespace redislock::test {
namespace {

using ForeignDelete = FaultTest;
using ForeignExpiry = FaultTest;
using ForeignType = FaultTest;

TEST_F(ForeignDelete, LosesTheHoldWithTheNextRenewalAndNothingIsMadeAgain)
{
    config.watchdogTimeout = 900ms;
    const std::vector<RawRedis::Arguments> deletions{{"FLUSHALL"},         {"FLUSHDB"},
                                                     {"DEL", name},        {"RENAME", name, "elsewhere"},
                                                     {"SWAPDB", "0", "1"}, {"MOVE", name, "1"}};
    std::size_t lost = 0;
    for (const auto& deletion : deletions) {
        SCOPED_TRACE(deletion.front());
        const RedisLock held = lock();
        held.lock();
        const auto stop = held.stopToken();
        const auto grantedAt = bootTime();
        expectFault(!redis.command(deletion).isError() && !redis.exists(name), "a deletion");
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        EXPECT_LT(bootTime() - grantedAt, 850ms) << "not by the renewal, but when its time was over";
        EXPECT_TRUE(seen->await(Event::lost, ++lost));
        EXPECT_FALSE(held.isHeldByCurrentThread());
        EXPECT_FALSE(redis.exists(name));
        EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
        EXPECT_FALSE(redis.exists(name)) << "a lost hold was made again";
        redis.command({"FLUSHALL"});
    }
}

TEST_F(ForeignExpiry, TakenAwayIsSetAgainByANestedLockToTheLongerLease)
{
    const RedisLock held = lock();
    held.lock(20s);
    expectFault(redis.command({"PERSIST", name}).integer() == 1, "a key without time to live");
    held.lock(1s);
    EXPECT_GT(redis.command({"PTTL", name}).integer(), 15'000) << "the outer level was promised 20 s";
    EXPECT_EQ(held.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(ForeignDelete, ByForceUnlockOfTheOwnClientIsKnownAtOnce)
{
    const RedisLock held = lock();
    held.lock(20s); // a fixed lease: no renewal will find the change
    const auto stop = held.stopToken();
    expectFault(held.forceUnlock(), "a forced unlock");
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);

    LockGuard guard(held, Lease(20s));
    EXPECT_TRUE(held.asyncForceUnlock(boost::asio::use_future).get());
    EXPECT_FALSE(guard);
}

TEST_F(ForeignDelete, IsFoundByUnlockAndByANestedLock)
{
    const RedisLock held = lock();
    held.lock(20s);
    expectFault(redis.command({"DEL", name}).integer() == 1, "a deletion");
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_FALSE(redis.exists(name));

    held.lock(20s);
    const auto stop = held.stopToken();
    redis.command({"DEL", name});
    std::error_code ec;
    held.lock(20s, ec);
    EXPECT_EQ(ec, Errc::lost);
    EXPECT_FALSE(redis.exists(name)) << "a second grant";
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held.holdCount(), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    held.unlock(ec);
    EXPECT_EQ(ec, Errc::notHeld);
}

TEST_F(ForeignDelete, ThatLetsAnotherInIsNeverUndoneByTheLoser)
{
    config.watchdogTimeout = 1200ms;
    const RedisLock held = lock();
    held.lock();
    held.lock();
    const auto stop = held.stopToken();
    expectFault(redis.command({"DEL", name}).integer() == 1, "a deletion");
    foreignLock(60s);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{foreigner, "1"}}));
    EXPECT_GT(redis.pttl(name), 40s);
    foreignUnlock();
}

TEST_F(ForeignExpiry, IsSetRightByTheNextRenewal)
{
    config.watchdogTimeout = 1500ms;
    const RedisLock held = lock();
    held.lock();

    expectFault(redis.command({"PERSIST", name}).integer() == 1, "PERSIST");
    EXPECT_TRUE(eventually([&] { return redis.pttl(name) > 0ms; })) << "no time to live";
    EXPECT_LE(redis.pttl(name), config.watchdogTimeout);

    const auto renewed = seen->count(Event::renewed);
    EXPECT_TRUE(seen->await(Event::renewed, renewed + 1));
    EXPECT_EQ(redis.command({"PEXPIRE", name, "1100"}).integer(), 1);
    EXPECT_TRUE(eventually([&] { return redis.pttl(name) > 1200ms; })) << "a shorter time was left";

    EXPECT_EQ(redis.command({"PEXPIRE", name, "90000"}).integer(), 1);
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 1));
    EXPECT_GT(redis.pttl(name), 60s) << "a longer time was cut";
    EXPECT_LE(held.validFor(), config.watchdogTimeout) << "a foreign time was believed";
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForeignType, IsAnErrorAtOnceAndTheKeyIsLeftAlone)
{
    for (const auto& [type, make] : std::map<std::string, RawRedis::Arguments>{{"string", {"SET", name, "theirs"}},
                                                                               {"list", {"RPUSH", name, "theirs"}},
                                                                               {"set", {"SADD", name, "theirs"}}}) {
        SCOPED_TRACE(type);
        redis.command(make);
        const Stopwatch watch;
        std::error_code ec;
        lock().lock(ec);
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_FALSE(lock().tryLock(5s, ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_FALSE(lock().isLocked(ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_FALSE(lock().forceUnlock(ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_LT(watch.elapsed(), slack) << "it waited";
        expectFault(redis.command({"TYPE", name}).text() == type, "a key of another type, left alone");
        EXPECT_EQ(redis.pttl(name), -1ms);
        redis.command({"DEL", name});
    }
}

TEST_F(ForeignType, OfAHashThatIsNoLockIsNotForcedOut)
{
    const auto isLeftAlone = [this](const auto& lock, const char* kind) {
        SCOPED_TRACE(kind);
        std::error_code ec;
        EXPECT_FALSE(lock.forceUnlock(ec));
        EXPECT_EQ(ec, Errc::wrongType);
        EXPECT_THROW((void)lock.asyncForceUnlock(boost::asio::use_future).get(), boost::system::system_error);
        expectFault(redis.command({"HLEN", name}).integer() == 2, "a hash of others, left alone");
    };
    redis.command({"HSET", name, "colour", "red", "size", "1"});
    isLeftAlone(client().getLock(name), "plain");
    isLeftAlone(client().getFairLock(name), "fair");
    isLeftAlone(client().getFencedLock(name), "fenced");
    isLeftAlone(client().getSpinLock(name), "spin");
    isLeftAlone(client().getReadWriteLock(name).readLock(), "read");
    isLeftAlone(client().getReadWriteLock(name).writeLock(), "write");
    redis.command({"DEL", name});
}

TEST_F(ForeignType, ThatTakesTheNameOfAHeldLockLosesItAndIsLeftAlone)
{
    const RedisLock held = lock();
    held.lock();
    const auto stop = held.stopToken();
    redis.command({"SET", name, "theirs"});
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    expectFault(redis.get(name) == "theirs", "a key of another type, left alone");
    redis.command({"DEL", name});

    held.lock(20s);
    redis.command({"SET", name, "theirs"});
    EXPECT_EQ(held.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(redis.get(name), "theirs");
    redis.command({"DEL", name});
}

} // namespace
} // namespace redislock::test
