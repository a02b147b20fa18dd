// Who holds a lock: seen by threads, by clients and in Redis.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

namespace redislock::test {
namespace {

template <class D>
class State : public BehaviourTest<D> {
protected:
    Client other{this->config()};
};

using StateDrivers = DriversWith<Feature::leases>;
TYPED_TEST_SUITE(State, StateDrivers, DriverNames);

/// Of holds that belong to threads.
template <class D>
class ThreadState : public State<D> {
};

using ThreadDrivers = DriversWith<Feature::threadHolds, Feature::leases>;
TYPED_TEST_SUITE(ThreadState, ThreadDrivers, DriverNames);

/// Of locks whose waiters all listen to one channel.
template <class D>
class StateOnOneChannel : public State<D> {
protected:
    /// One of the waiters may come in, or all.
    static constexpr std::string_view free = std::is_same_v<typename D::Lock, WriteLock> ? "1" : "0";
};

using ChannelDrivers = DriversWith<Feature::oneChannel, Feature::leases>;
TYPED_TEST_SUITE(StateOnOneChannel, ChannelDrivers, DriverNames);

/// Of locks that one holds at a time.
template <class D>
class ExclusiveState : public State<D> {
};

using ExclusiveDrivers = DriversWith<Feature::exclusion, Feature::leases>;
TYPED_TEST_SUITE(ExclusiveState, ExclusiveDrivers, DriverNames);

TYPED_TEST(ThreadState, OnlyTheHoldingThreadHolds)
{
    const auto lock = this->make();
    Worker thread;
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_GT(lock.validFor(), 0ms);
    EXPECT_FALSE(lock.stopToken().stop_requested());
    thread.run([&] {
        EXPECT_FALSE(lock.isHeldByCurrentThread());
        EXPECT_EQ(lock.holdCount(), 0U);
        EXPECT_EQ(lock.validFor(), 0ms);
        EXPECT_TRUE(lock.stopToken().stop_requested());
    });
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_TRUE(lock.stopToken().stop_requested());
}

TYPED_TEST(State, EverybodySeesThatItIsLocked)
{
    const auto lock = this->make();
    const auto elsewhere = this->make(this->other, lock.name());
    Worker thread;
    const auto expectLocked = [&](bool locked) {
        EXPECT_EQ(TypeParam::isLocked(lock), locked);
        EXPECT_EQ(TypeParam::isLocked(elsewhere), locked);
        EXPECT_EQ(thread.run([&] { return TypeParam::isLocked(lock); }), locked);
    };
    for (int round = 0; round < 3; ++round) {
        expectLocked(false);
        EXPECT_EQ(TypeParam::lock(lock), true);
        expectLocked(true);
        EXPECT_FALSE(elsewhere.isHeldByCurrentThread()) << "another client";
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    }
    expectLocked(false);
}

TYPED_TEST(State, InRedisItIsAHashOfHolderAndCountWithATimeToLive)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock, 10s), true);
    const auto hash = this->holdersOf(lock.name());
    ASSERT_EQ(hash.size(), 1U);
    static const std::regex form("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]*(:write)?");
    EXPECT_TRUE(std::regex_match(hash.begin()->first, form)) << hash.begin()->first;
    EXPECT_TRUE(hash.begin()->first.starts_with(this->client.id() + ":"));
    EXPECT_EQ(hash.begin()->second, "1");
    EXPECT_GT(this->raw.pttl(lock.name()), 5s);
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
    EXPECT_EQ(this->raw.command({"KEYS", "*" + this->client.id() + "*"}).elements.size(), 0U) << "no other keys";
}

TYPED_TEST(StateOnOneChannel, UnlockPublishesRedissonsMessageOnItsChannel)
{
    for (const auto* suffix : {"", "{tagged}", "half{"}) {
        const auto lock = this->make(this->uniqueName(suffix));
        RawRedis listener(this->server());
        listener.send({"SUBSCRIBE", this->channelOf(lock.name())});
        ASSERT_TRUE(listener.receive(2s));
        EXPECT_EQ(TypeParam::lock(lock), true);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
        const auto message = listener.receive(2s);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->elements.at(1).text(), this->channelOf(lock.name()));
        EXPECT_EQ(message->elements.at(2).text(), this->free);
        EXPECT_FALSE(listener.receive(20ms)) << "one message is enough";
    }
}

TYPED_TEST(ExclusiveState, TwoClientsOfOneProcessExcludeEachOther)
{
    EXPECT_NE(this->client.id(), this->other.id());
    const auto here = this->make();
    const auto there = this->make(this->other, here.name());
    EXPECT_EQ(TypeParam::lock(here), true);
    EXPECT_EQ(TypeParam::tryLock(there), false);
    EXPECT_EQ(TypeParam::unlock(there), Errc::notHeld);
    EXPECT_EQ(TypeParam::unlock(here), Unlocked::released);
    EXPECT_EQ(TypeParam::tryLock(there), true);
    EXPECT_EQ(TypeParam::tryLock(here), false);
    EXPECT_EQ(TypeParam::unlock(there), Unlocked::released);
}

TYPED_TEST(State, NamesThatDifferAreDifferentLocks)
{
    const auto base = this->uniqueName();
    const auto lock = this->make(base);
    EXPECT_EQ(TypeParam::lock(lock), true);
    for (const auto& name : {base + " ", base + std::string(1, '\0'), "x" + base, base.substr(0, base.size() - 1)}) {
        const auto different = this->make(this->other, this->clean(name));
        EXPECT_EQ(TypeParam::tryLock(different), true) << name;
        EXPECT_EQ(TypeParam::unlock(different), Unlocked::released);
    }
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(State, LockKeepsItsName)
{
    const auto name = this->uniqueName();
    EXPECT_EQ(this->make(name).name(), name);
}

TYPED_TEST(ThreadState, ThreadThatEndedTakesItsHoldWithItOnlyWhenTheLeaseIsOver)
{
    const auto lock = this->make();
    std::thread([&] { EXPECT_EQ(TypeParam::lock(lock, 400ms), true); }).join();
    EXPECT_EQ(TypeParam::isLocked(lock), true);
    EXPECT_TRUE(eventually([&] { return TypeParam::isLocked(lock) == false; }));
}

TYPED_TEST(ThreadState, StrangersUnlockIsRefusedAndDisturbsNobody)
{
    const auto lock = this->make();
    const auto elsewhere = this->make(this->other, lock.name());
    Worker thread;
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(thread.run([&] { return TypeParam::unlock(lock); }), Errc::notHeld);
    EXPECT_EQ(TypeParam::unlock(elsewhere), Errc::notHeld);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(this->countOf(lock.name()), "1");
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::released);
}

TYPED_TEST(ExclusiveState, HoldOfAClientThatWasShutDownEndsWithItsLease)
{
    const auto name = this->uniqueName();
    const auto waiting = this->make(name);
    const Stopwatch watch;
    {
        Config config = this->config();
        config.watchdogTimeout = 500ms;
        const Client ending(config);
        EXPECT_EQ(TypeParam::lock(this->make(ending, name)), true);
        EXPECT_TRUE(this->raw.exists(name));
    }
    EXPECT_TRUE(this->raw.exists(name));
    EXPECT_EQ(TypeParam::tryLock(waiting, 500ms + soon), true);
    EXPECT_GE(watch.elapsed(), 500ms);
    EXPECT_EQ(TypeParam::unlock(waiting), Unlocked::released);
}

template <class D>
class ForceUnlock : public State<D> {
};

using ForceDrivers = DriversWith<Feature::forceUnlock, Feature::leases>;
TYPED_TEST_SUITE(ForceUnlock, ForceDrivers, DriverNames);

TYPED_TEST(ForceUnlock, FreesTheLockWhoeverHoldsIt)
{
    const auto lock = this->make();
    const auto elsewhere = this->make(this->other, lock.name());
    Worker thread;
    EXPECT_EQ(TypeParam::forceUnlock(lock), false);
    for (const auto& hammer : {lock, elsewhere}) {
        EXPECT_EQ(TypeParam::lock(lock), true);
        EXPECT_EQ(thread.run([&] { return TypeParam::forceUnlock(hammer); }), true);
        EXPECT_EQ(TypeParam::isLocked(lock), false);
        EXPECT_EQ(TypeParam::isLocked(this->make(this->other, lock.name())), false);
        EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    }
    EXPECT_EQ(TypeParam::forceUnlock(elsewhere), false);
}

TYPED_TEST(ForceUnlock, HolderLearnsOfItAtTheNextRenewal)
{
    const auto lock = this->make();
    EXPECT_EQ(TypeParam::lock(lock), true);
    const auto token = lock.stopToken();
    EXPECT_EQ(TypeParam::forceUnlock(this->make(this->other, lock.name())), true);
    EXPECT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_FALSE(this->raw.exists(lock.name())) << "a renewal must not take it again";
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
}

TYPED_TEST(ForceUnlock, NextHolderIsNotTouchedByTheOneThatWasForcedOut)
{
    const auto lock = this->make();
    const auto elsewhere = this->make(this->other, lock.name());
    EXPECT_EQ(TypeParam::lock(lock), true);
    EXPECT_EQ(TypeParam::forceUnlock(elsewhere), true);
    EXPECT_EQ(TypeParam::lock(elsewhere), true);
    const auto holder = this->holderOf(lock.name());
    ASSERT_TRUE(this->observer()->await("lost", lock.name()));
    EXPECT_EQ(TypeParam::unlock(lock), Unlocked::alreadyLost);
    EXPECT_EQ(this->holderOf(lock.name()), holder);
    EXPECT_EQ(TypeParam::unlock(elsewhere), Unlocked::released);
}

} // namespace
} // namespace redislock::test
