#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class Fair : public LockTest {
protected:
    void TearDown() override
    {
        LockTest::TearDown();
        EXPECT_EQ(waiting(), 0) << "a waiter was left in the queue";
        EXPECT_EQ(raw.command({"ZCARD", timesKey}).integer(), 0);
    }

    std::int64_t waiting() { return raw.command({"LLEN", queueKey}).integer(); }
    std::string now()
    {
        const auto time = raw.command({"TIME"});
        return time.elements.at(0).text() + "000";
    }
    /// Adds a waiter that asked and then died. @param place how long its place lasts
    void putDeadWaiter(const std::string& holder, milliseconds place)
    {
        raw.command({"ZADD", timesKey, std::to_string(std::stoll(now()) + 1000 + place.count()), holder});
        raw.command({"RPUSH", queueKey, holder});
    }
    /// How many waiters the server knows to have a client that listens to grants: their records have five parts.
    std::int64_t listening()
    {
        const auto records = raw.command({"HVALS", "redislock_places:{" + name + "}"}).elements;
        return std::ranges::count_if(records,
                                     [](const Value& record) { return std::ranges::count(record.text(), ' ') == 4; });
    }
    /// Starts a waiter and waits until the waiter stands in the queue and its client listens to grants.
    std::future<Unlocked> startWaiter(const Client& from, int number)
    {
        const auto before = waiting();
        const auto heard = listening();
        auto result = workers.emplace_back().start([this, lock = from.getFairLock(name), number] {
            lock.lock();
            const std::lock_guard guard(mutex);
            served.push_back(number);
            return lock.unlock();
        });
        EXPECT_TRUE(eventually([&] { return waiting() == before + 1; })) << number;
        EXPECT_TRUE(eventually([&] { return listening() == heard + 1; })) << number;
        return result;
    }

    const std::string name = uniqueName();
    const std::string queueKey = "redisson_lock_queue:{" + name + "}";
    const std::string timesKey = "redisson_lock_timeout:{" + name + "}";
    const Client client{config()};
    const Client far{config()};
    const FairLock lock = client.getFairLock(name);
    std::mutex mutex;
    std::vector<int> served;
    std::deque<Worker> workers;
};

TEST_F(Fair, WaitersAreServedInTheOrderOfAskingThoughTheyAreThreadsOfSeveralClients)
{
    const Client third(config());
    const Client* const from[] = {&client, &far, &far, &third, &client, &third, &client, &far};
    lock.lock();
    std::vector<std::future<Unlocked>> waiters;
    std::vector<int> order;
    for (const Client* each : from) {
        order.push_back(static_cast<int>(order.size()));
        waiters.push_back(startWaiter(*each, order.back()));
    }
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    for (auto& waiter : waiters) {
        ASSERT_EQ(waiter.wait_for(soon), std::future_status::ready) << "they poll once a minute";
        EXPECT_EQ(waiter.get(), Unlocked::released);
    }
    EXPECT_EQ(served, order);
}

TEST_F(Fair, WaiterNeedsThreeRequestsWithItsReleaseHoweverManyAreBeforeIt)
{
    lock.lock();
    lock.unlock(); // so that the server knows the scripts
    lock.lock(20s);
    const auto before = scriptCalls();
    std::vector<std::future<Unlocked>> waiters;
    for (int i = 0; i < 4; ++i) {
        waiters.push_back(startWaiter(i % 2 == 0 ? client : far, i));
    }
    EXPECT_EQ(scriptCalls(), before + 4U + 2U) << "to join, and of each client's first one when that listens";
    EXPECT_EQ(channels().size(), 2U) << "one for each client";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.get(), Unlocked::released);
    }
    const auto renewals = scriptCalls() - (before + 4U + 2U) - 5U;
    EXPECT_LE(renewals, 4U) << "besides the releases, none of a hold that was over before";
}

TEST_F(Fair, WaiterThatAReleaseGrantsTheLockHasItForItsWholeLeaseSoon)
{
    for (const bool isFixed : {true, false}) {
        lock.lock(20s);
        auto& waiter = workers.emplace_back();
        auto held = waiter.start([next = far.getFairLock(name), isFixed] {
            isFixed ? next.lock(10min) : next.lock();
            const auto whole = isFixed ? 9min : 400ms;
            EXPECT_TRUE(next.isHeldByCurrentThread());
            EXPECT_TRUE(eventually([&] { return next.validFor() > whole; })) << isFixed;
            return next.unlock();
        });
        EXPECT_TRUE(eventually([&] { return listening() == 1; }));
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_EQ(held.get(), Unlocked::released);
    }
}

TEST_F(Fair, WaiterIsToldByRedissonOnItsOwnChannel)
{
    const std::string java = "0d7c1be2-33aa-4f5e-8c1d-b0a3d6a2e9f4:84";
    raw.command({"HSET", name, java, "1"});
    raw.command({"PEXPIRE", name, "600000"});
    auto waiter = startWaiter(client, 1);
    const auto holder = raw.command({"LINDEX", queueKey, "0"}).text();
    const auto own = "redisson_lock__channel:{" + name + "}:" + holder;
    EXPECT_TRUE(eventually([&] { return raw.command({"PUBSUB", "NUMSUB", own}).elements.at(1).integer() == 1; }));
    EXPECT_TRUE(eventually([&] { return channels().size() == 2U; })) << "and on that of its client";
    raw.command({"DEL", name});
    raw.command({"PUBLISH", own, "0"});
    ASSERT_EQ(waiter.wait_for(soon), std::future_status::ready) << "it polls once a minute";
    EXPECT_EQ(waiter.get(), Unlocked::released);
}

TEST_F(Fair, WaiterOfAUserWhoMayNotListenToGrantsIsToldOnItsOwnChannel)
{
    const auto channelOf = "&redisson_lock__channel:{" + name + "}:*";
    raw.command({"ACL", "SETUSER", "narrow", "reset", "on", ">pw", "~*", "+@all", "resetchannels", channelOf});
    auto narrow = config();
    narrow.username = "narrow";
    narrow.password = "pw";
    const Client other(narrow);
    lock.lock(20s);
    auto& worker = workers.emplace_back();
    auto waiter = worker.start([next = other.getFairLock(name)] {
        next.lock();
        return next.unlock();
    });
    EXPECT_TRUE(eventually([&] { return channels().size() == 1U; }));
    EXPECT_TRUE(channels().front().text().starts_with("redisson_lock__channel:{"));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    ASSERT_EQ(waiter.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(waiter.get(), Unlocked::released);
    raw.command({"ACL", "DELUSER", "narrow"});
}

TEST_F(Fair, NobodyOvertakesTheQueueWithASingleAttempt)
{
    lock.lock();
    putDeadWaiter("somebody:1", 2s);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_FALSE(lock.tryLock()) << "it is another's turn";
    EXPECT_FALSE(lock.tryLock(300ms));
    EXPECT_TRUE(eventually([&] { return waiting() == 1; })) << "who gave up leaves";
    EXPECT_FALSE(lock.isLocked());
    EXPECT_TRUE(lock.tryLock(10s)) << "whose place ends after a while";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fair, DeadWaitersAheadCostTheTimeOfOnePlaceTogether)
{
    for (int i = 0; i < 50; ++i) {
        putDeadWaiter("dead:" + std::to_string(i), 1s);
    }
    const auto begin = BootClock::now();
    EXPECT_TRUE(lock.tryLock(30s));
    EXPECT_LT(BootClock::now() - begin, 10s);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fair, WhoAsksRemindsTheFirstInTheQueueThatTheLockIsFree)
{
    putDeadWaiter("sleeper:1", 1s);
    RawRedis sleeper(server());
    sleeper.command({"SUBSCRIBE", "redisson_lock__channel:{" + name + "}:sleeper:1"});
    EXPECT_FALSE(lock.tryLock()) << "it is another's turn";
    const auto told = sleeper.receive(soon);
    ASSERT_TRUE(told) << "Redisson's waiter that sleeps would lose its place";
    EXPECT_EQ(told->elements.at(2).text(), "0");
    EXPECT_TRUE(lock.tryLock(10s));
    EXPECT_FALSE(workers.emplace_back().run([&] { return lock.tryLock(); }));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fair, WaiterWithoutATimeIsNoObstacle)
{
    raw.command({"RPUSH", queueKey, "nobody:1"});
    EXPECT_TRUE(lock.tryLock());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fair, WaiterThatGivesUpOrIsCancelledLeavesTheQueueAtOnceAndTellsTheNext)
{
    lock.lock();
    const auto patient = far.getFairLock(name);
    boost::asio::cancellation_signal cancel;
    auto cancelled = patient.asyncLock(boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    EXPECT_TRUE(eventually([&] { return waiting() == 1 && listening() == 1; }));
    auto next = startWaiter(far, 1);
    EXPECT_EQ(waiting(), 2);
    EXPECT_FALSE(workers.emplace_back().run([&] { return lock.tryLock(300ms); }));
    EXPECT_TRUE(eventually([&] { return waiting() == 2; }));
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW((void)cancelled.get(), boost::system::system_error);
    EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(next.get(), Unlocked::released);
}

TEST_F(Fair, WaiterThatGoesOnAskingKeepsItsPlace)
{
    auto often = config();
    often.pollInterval = 40ms; // a place lasts 200 ms
    const Client asking(often);
    lock.lock();
    auto first = startWaiter(asking, 1);
    const auto holder = raw.command({"LINDEX", queueKey, "0"}).text();
    const auto begin = std::stod(raw.command({"ZSCORE", timesKey, holder}).text());
    EXPECT_TRUE(eventually([&] { return std::stod(raw.command({"ZSCORE", timesKey, holder}).text()) > begin + 1000; }));
    EXPECT_EQ(raw.command({"LINDEX", queueKey, "0"}).text(), holder);
    for (const auto& key : {queueKey, timesKey}) {
        EXPECT_GT(raw.pttl(key), 1min) << key;
    }
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(first.get(), Unlocked::released);
}

TEST_F(Fair, PlaceLastsForHalfASecondHoweverOftenItsWaiterAsks)
{
    auto settings = config();
    settings.pollInterval = 10ms;
    const Client asking(settings);
    lock.lock();
    auto first = startWaiter(asking, 1);
    const auto record = raw.command({"HVALS", "redislock_places:{" + name + "}"}).elements.at(0).text();
    EXPECT_EQ(std::stoi(record.substr(record.find(' '))), 500) << record;
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(first.get(), Unlocked::released);
}

TEST_F(Fair, PlaceBehindAWaiterOfRedissonOutlastsWhatThatTakesFromIt)
{
    lock.lock();
    putDeadWaiter("java:1", 300s);
    auto behind = startWaiter(client, 1);
    const auto holder = raw.command({"LINDEX", queueKey, "-1"}).text();
    EXPECT_GT(std::stod(raw.command({"ZSCORE", timesKey, holder}).text()),
              std::stod(raw.command({"ZSCORE", timesKey, "java:1"}).text()));
    raw.command({"LREM", queueKey, "0", "java:1"});
    raw.command({"ZREM", timesKey, "java:1"});
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(behind.get(), Unlocked::released);
}

TEST_F(Fair, HolderThatDiedIsFollowedByTheFirstInTheQueue)
{
    const auto dead = far.getFairLock(name);
    dead.lock(300ms);
    auto waiter = startWaiter(client, 1);
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(waiter.get(), Unlocked::released);
    EXPECT_EQ(dead.unlock(), Unlocked::alreadyLost);
}

TEST_F(Fair, ForcedUnlockTellsTheFirstInTheQueue)
{
    lock.lock();
    auto waiter = startWaiter(far, 1);
    EXPECT_TRUE(far.getFairLock(name).forceUnlock());
    EXPECT_EQ(waiter.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(waiter.get(), Unlocked::released);
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_F(Fair, HolderMayLockAgainAndExcludesOtherKinds)
{
    lock.lock();
    EXPECT_TRUE(lock.tryLock());
    EXPECT_EQ(lock.holdCount(), 2U);
    EXPECT_EQ(countOf(name), "2");
    const auto plain = far.getLock(name);
    EXPECT_FALSE(plain.tryLock());
    EXPECT_EQ(lock.unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    plain.lock();
    EXPECT_FALSE(lock.tryLock());
    EXPECT_EQ(plain.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
