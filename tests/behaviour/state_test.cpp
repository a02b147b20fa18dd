// The holder of a lock as seen by threads, by clients and in Redis.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/worker.hpp"

#include <optional>
#include <regex>
#include <string>
#include <thread>

namespace redislock::test {
namespace {

class State : public BehaviourTest {
protected:
    Client other{config()};
};

INSTANTIATE_TEST_SUITE_P(, State, driversWith({Feature::leases}), driverName);

/// The state of holds that belong to threads.
class ThreadState : public State {};

INSTANTIATE_TEST_SUITE_P(, ThreadState, driversWith({Feature::threadHolds, Feature::leases}), driverName);

/// The state of locks whose waiters all listen to one channel.
class StateOnOneChannel : public State {};

INSTANTIATE_TEST_SUITE_P(, StateOnOneChannel, driversWith({Feature::oneChannel, Feature::leases}), driverName);

/// The state of exclusive locks.
class ExclusiveState : public State {};

INSTANTIATE_TEST_SUITE_P(, ExclusiveState, driversWith({Feature::exclusion, Feature::leases}), driverName);

TEST_P(ThreadState, OnlyTheHoldingThreadHolds)
{
    const auto lock = make();
    Worker thread;
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.lock(), true);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_GT(lock.validFor(), 0ms);
    EXPECT_FALSE(lock.stopToken().stop_requested());
    thread.run([&] {
        EXPECT_FALSE(lock.isHeldByCurrentThread());
        EXPECT_EQ(lock.holdCount(), 0U);
        EXPECT_EQ(lock.validFor(), 0ms);
        EXPECT_TRUE(lock.stopToken().stop_requested());
    });
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_TRUE(lock.stopToken().stop_requested());
}

TEST_P(State, EverybodySeesThatItIsLocked)
{
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    Worker thread;
    const auto expectLocked = [&](bool locked) {
        EXPECT_EQ(lock.isLocked(), locked);
        EXPECT_EQ(elsewhere.isLocked(), locked);
        EXPECT_EQ(thread.run([&] { return lock.isLocked(); }), locked);
    };
    for (int round = 0; round < 3; ++round) {
        expectLocked(false);
        EXPECT_EQ(lock.lock(), true);
        expectLocked(true);
        EXPECT_FALSE(elsewhere.isHeldByCurrentThread()) << "another client";
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    expectLocked(false);
}

TEST_P(State, InRedisItIsAHashOfHolderAndCountWithATimeToLive)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(10s), true);
    const auto hash = holdersOf(lock.name());
    ASSERT_EQ(hash.size(), 1U);
    static const std::regex form("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]*(:write)?");
    EXPECT_TRUE(std::regex_match(hash.begin()->first, form)) << hash.begin()->first;
    EXPECT_TRUE(hash.begin()->first.starts_with(client.id() + ":"));
    EXPECT_EQ(hash.begin()->second, "1");
    EXPECT_GT(raw.pttl(lock.name()), 5s);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_EQ(raw.command({"KEYS", "*" + client.id() + "*"}).elements.size(), 0U) << "no other keys";
}

TEST_P(StateOnOneChannel, UnlockPublishesRedissonsMessageOnItsChannel)
{
    for (const auto* suffix : {"", "{tagged}", "half{"}) {
        const auto lock = make(uniqueName(suffix));
        RawRedis listener(server());
        listener.send({"SUBSCRIBE", channelOf(lock.name())});
        ASSERT_TRUE(listener.receive(2s));
        EXPECT_EQ(lock.lock(), true);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        const auto message = listener.receive(2s);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->elements.at(1).text(), channelOf(lock.name()));
        EXPECT_EQ(message->elements.at(2).text(), GetParam().freed);
        EXPECT_FALSE(listener.receive(20ms)) << "one message is enough";
    }
}

TEST_P(ExclusiveState, TwoClientsOfOneProcessExcludeEachOther)
{
    EXPECT_NE(client.id(), other.id());
    const auto here = make();
    const auto there = make(other, here.name());
    EXPECT_EQ(here.lock(), true);
    EXPECT_EQ(there.tryLock(), false);
    EXPECT_EQ(there.unlock(), Errc::notHeld);
    EXPECT_EQ(here.unlock(), Unlocked::released);
    EXPECT_EQ(there.tryLock(), true);
    EXPECT_EQ(here.tryLock(), false);
    EXPECT_EQ(there.unlock(), Unlocked::released);
}

TEST_P(State, NamesThatDifferAreDifferentLocks)
{
    const auto base = uniqueName();
    const auto lock = make(base);
    EXPECT_EQ(lock.lock(), true);
    for (const auto& name : {base + " ", base + std::string(1, '\0'), "x" + base, base.substr(0, base.size() - 1)}) {
        const auto different = make(other, clean(name));
        EXPECT_EQ(different.tryLock(), true) << name;
        EXPECT_EQ(different.unlock(), Unlocked::released);
    }
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(State, LockKeepsItsName)
{
    const auto name = uniqueName();
    EXPECT_EQ(make(name).name(), name);
}

TEST_P(ThreadState, ThreadThatEndedTakesItsHoldWithItOnlyWhenTheLeaseIsOver)
{
    const auto lock = make();
    std::thread([&] { EXPECT_EQ(lock.lock(400ms), true); }).join();
    EXPECT_EQ(lock.isLocked(), true);
    EXPECT_TRUE(eventually([&] { return lock.isLocked() == false; }));
}

TEST_P(ThreadState, UnlockAfterTheClientsEndIsAlreadyLostThroughALockMadeAnewToo)
{
    const int levels = supports(Feature::reentrance) ? 2 : 1;
    for (const bool isKept : {true, false}) {
        Client ending(config());
        const auto name = uniqueName();
        std::optional lock{make(ending, name)};
        for (int level = 0; level < levels; ++level) {
            EXPECT_EQ(lock->lock(), true);
        }
        if (!isKept) {
            lock.reset();
        }
        EXPECT_TRUE(ending.shutdown());
        Worker stranger;
        EXPECT_EQ(stranger.run([&] { return make(ending, name).unlock(); }), Errc::notHeld);
        for (int level = 0; level < levels; ++level) {
            EXPECT_EQ(make(ending, name).unlock(), Unlocked::alreadyLost);
        }
        EXPECT_EQ(make(ending, name).unlock(), Errc::notHeld);
    }
}

TEST_P(ThreadState, UnlockAfterALossIsAlreadyLostThroughALockMadeAnewToo)
{
    const auto name = uniqueName();
    EXPECT_EQ(make(name).lock(100ms), true);
    EXPECT_TRUE(eventually([&] { return !make(name).isHeldByCurrentThread() && !raw.exists(name); }));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(make(uniqueName()).holdCount(), 0U);
    }
    EXPECT_EQ(make(name).unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(make(name).unlock(), Errc::notHeld);
}

TEST_P(ThreadState, StrangersUnlockIsRefusedAndDisturbsNobody)
{
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    Worker thread;
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(thread.run([&] { return lock.unlock(); }), Errc::notHeld);
    EXPECT_EQ(elsewhere.unlock(), Errc::notHeld);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(ExclusiveState, HoldOfAClientThatWasShutDownEndsWithItsLease)
{
    const auto name = uniqueName();
    const auto waiting = make(name);
    const Stopwatch watch;
    {
        Config config = LockTest::config();
        config.watchdogTimeout = 500ms;
        const Client ending(config);
        EXPECT_EQ(make(ending, name).lock(), true);
        EXPECT_TRUE(raw.exists(name));
    }
    EXPECT_TRUE(raw.exists(name));
    EXPECT_EQ(waiting.tryLock(500ms + soon), true);
    EXPECT_GE(watch.elapsed(), 500ms);
    EXPECT_EQ(waiting.unlock(), Unlocked::released);
}

class ForceUnlock : public State {};

INSTANTIATE_TEST_SUITE_P(, ForceUnlock, driversWith({Feature::forceUnlock, Feature::leases}), driverName);

TEST_P(ForceUnlock, FreesTheLockWhoeverHoldsIt)
{
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    Worker thread;
    EXPECT_EQ(lock.forceUnlock(), false);
    for (const auto& hammer : {lock, elsewhere}) {
        EXPECT_EQ(lock.lock(), true);
        EXPECT_EQ(thread.run([&] { return hammer.forceUnlock(); }), true);
        EXPECT_EQ(lock.isLocked(), false);
        EXPECT_EQ(make(other, lock.name()).isLocked(), false);
        EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    }
    EXPECT_EQ(elsewhere.forceUnlock(), false);
}

TEST_P(ForceUnlock, HolderLearnsOfItAtTheNextRenewal)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    const auto token = lock.stopToken();
    EXPECT_EQ(make(other, lock.name()).forceUnlock(), true);
    EXPECT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(raw.exists(lock.name())) << "a renewal must not take it again";
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
}

TEST_P(ForceUnlock, NextHolderIsNotTouchedByTheOneThatWasForcedOut)
{
    const auto lock = make();
    const auto elsewhere = make(other, lock.name());
    EXPECT_EQ(lock.lock(), true);
    EXPECT_EQ(elsewhere.forceUnlock(), true);
    EXPECT_EQ(elsewhere.lock(), true);
    const auto holder = holderOf(lock.name());
    ASSERT_TRUE(observer()->await("lost", lock.name()));
    EXPECT_EQ(lock.unlock(), Unlocked::alreadyLost);
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(elsewhere.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
