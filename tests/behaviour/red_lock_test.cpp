// One lock on a majority of servers.
#include "behaviour/group_test.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using RedLocks = GroupTest;

TEST_F(RedLocks, ThreadsCountExactlyUnderFixedLeases)
{
    const RedLock lock(locksOn(5));
    int count = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 10; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 5; ++k) {
                lock.lock(10s);
                ++count;
                EXPECT_EQ(lock.unlock(), Unlocked::released);
            }
        });
    }
    threads.clear();
    EXPECT_EQ(count, 50);
}

TEST_F(RedLocks, ThreadsThatTryForAWhileCountExactly)
{
    const RedLock lock(locksOn(3));
    int count = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 5; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 5; ++k) {
                while (!lock.tryLock(20s, 10s)) {
                }
                ++count;
                EXPECT_EQ(lock.unlock(), Unlocked::released);
            }
        });
    }
    threads.clear();
    EXPECT_EQ(count, 25);
}

TEST_F(RedLocks, IsNotToBeHadWhileAnotherHoldsAMajority)
{
    const auto locks = locksOn(3);
    const RedLock lock(locks);
    Client far0(configOf(0));
    Client far1(configOf(1));
    const LockGuard first(far0.getLock(name));
    const LockGuard second(far1.getLock(name));
    EXPECT_FALSE(lock.tryLock());
    EXPECT_FALSE(lock.tryLock(100ms, 10s));
    EXPECT_TRUE(eventually([&] { return lockedOn(3) == 2; })) << "the third is given back";
}

TEST_F(RedLocks, IsHadWhileAnotherHoldsAMinority)
{
    const RedLock lock(locksOn(3));
    for (std::size_t taken = 0; taken < 3; ++taken) {
        Client far(configOf(taken));
        const LockGuard one(far.getLock(name));
        EXPECT_TRUE(lock.tryLock());
        EXPECT_EQ(lock.unlock(), Unlocked::released);
        EXPECT_TRUE(eventually([&] { return lockedOn(3) == 1; }));
    }
}

TEST_F(RedLocks, HoldsAllServersWhenAllAreThere)
{
    const RedLock lock(locksOn(5));
    GroupGuard held(lock);
    EXPECT_TRUE(eventually([&] { return held.heldMembers() == 5; })) << "those that came after the majority too";
    EXPECT_EQ(lockedOn(5), 5U);
    EXPECT_EQ(held.release(), Unlocked::released);
    EXPECT_TRUE(eventually([&] { return lockedOn(5) == 0; }));
}

TEST_F(RedLocks, AnEvenNumberNeedsMoreThanHalf)
{
    const RedLock lock(locksOn(4));
    Client far0(configOf(0));
    Client far1(configOf(1));
    LockGuard first(far0.getLock(name));
    EXPECT_TRUE(lock.tryLock()) << "three of four";
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    const LockGuard second(far1.getLock(name));
    EXPECT_FALSE(lock.tryLock()) << "two of four";
    EXPECT_EQ(first.release(), Unlocked::released);
}

TEST_F(RedLocks, OutlivesTheLossOfAMinorityAndNotOfAMajority)
{
    const auto locks = locksOn(3);
    GroupGuard held(RedLock(locks), waitForever, keepRenewing);
    const auto stop = held.stopToken();
    ASSERT_TRUE(eventually([&] { return held.heldMembers() == 3; }));
    EXPECT_TRUE(locks[0].forceUnlock());
    EXPECT_TRUE(eventually([&] { return held.heldMembers() == 2; }));
    EXPECT_TRUE(held);
    EXPECT_FALSE(stop.stop_requested());
    EXPECT_TRUE(locks[1].forceUnlock());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held);
    EXPECT_TRUE(eventually([&] { return lockedOn(3) == 0; })) << "the third is given back";
    EXPECT_EQ(held.release(), Unlocked::alreadyLost);
}

TEST_F(RedLocks, TheSameAddressTwiceIsRefusedWhenItIsMade)
{
    clientsOf(2);
    const Client again(configOf(0));
    for (const auto& locks : {std::vector<Lock>{clients[0].getLock(name), again.getLock(name + "b")}, {}}) {
        try {
            const RedLock made(locks);
            ADD_FAILURE() << "not refused";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::invalidArgument);
        }
    }
}

TEST_F(RedLocks, OneServerUnderTwoAddressesIsRefusedAtTheFirstAcquire)
{
    clientsOf(2);
    Config bySocket = configOf(0);
    bySocket.endpoint.unixSocket = serverOf(0).unixSocket();
    bySocket.tls.reset();
    bySocket.sentinels.reset();
    const Client again(bySocket);
    const RedLock lock({clients[0].getLock(name), clients[1].getLock(name), again.getLock(name)});
    std::error_code ec;
    EXPECT_FALSE(lock.tryLock(ec));
    EXPECT_EQ(ec, Errc::badConfig);
    try {
        lock.lock();
        ADD_FAILURE() << "not refused";
    } catch (const LockError& error) {
        EXPECT_NE(std::string(error.what()).find("one server"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(eventually([&] { return lockedOn(2) == 0; }));
}

TEST_F(RedLocks, UserWhoMayNotAskForTheServersIdLocksAllTheSame)
{
    clientsOf(3);
    RawRedis(serverOf(2)).command({"ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-info"});
    Config narrow = configOf(2);
    narrow.username = "narrow";
    narrow.password = "secret";
    const Client asUser(narrow);
    const RedLock lock({clients[0].getLock(name), clients[1].getLock(name), asUser.getLock(name)});
    GroupGuard held(lock);
    EXPECT_TRUE(eventually([&] { return held.heldMembers() == 3; }));
    EXPECT_EQ(held.release(), Unlocked::released);
    RawRedis(serverOf(2)).command({"ACL", "DELUSER", "narrow"});
}

TEST_F(RedLocks, OneOfThreeClientsMayEnd)
{
    const auto locks = locksOn(2);
    std::optional<Client> third(std::in_place, configOf(2));
    const RedLock lock({locks[0], locks[1], third->getLock(name)});
    third.reset();
    EXPECT_TRUE(lock.tryLock());
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
