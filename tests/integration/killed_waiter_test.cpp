// Waiters in other processes that are killed or stand still: they leave nothing behind, and keep nobody from the lock.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "integration/holder_process.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class KilledWaiter : public LockTest {
protected:
    std::string name = uniqueName();
    Client client{config()};
    RedisLock lock = client.getLock(name);
};

TEST_F(KilledWaiter, LeavesNeitherALockNorASubscription)
{
    for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(D::lock(lock, 60s), true);
        HolderProcess waiter(server().url(), name, 0, 600);
        ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
        waiter.kill();
        EXPECT_TRUE(eventually([&] { return listeners(name) == 0; }));
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
        EXPECT_FALSE(raw.exists(name)) << "granted to nobody";
        EXPECT_EQ(D::tryLock(lock), true);
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }
}

TEST_F(KilledWaiter, KeepsNoOtherWaiterFromTheLock)
{
    ASSERT_EQ(D::lock(lock, 60s), true);
    HolderProcess first(server().url(), name, 0, 600);
    ASSERT_TRUE(eventually([&] { return listeners(name) == 1; }));
    HolderProcess second(server().url(), name, 0, 600);
    ASSERT_TRUE(eventually([&] { return listeners(name) == 2; }));
    first.freeze(); // the waiter gets the message but does not ask
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
    EXPECT_TRUE(second.line().starts_with("held "));
    first.kill();
    EXPECT_EQ(second.ask("unlock"), "released");
}

TEST_F(KilledWaiter, ThatOnlyStoodStillGetsItsShareAgainBesideTwoOthers)
{
    constexpr int mine = 2; // times 50 turns, for the one that stands still
    constexpr int theirs = 100;
    std::vector<std::unique_ptr<HolderProcess>> processes;
    std::string id; // of the last one's client
    for (int i = 0; i < 3; ++i) {
        processes.push_back(std::make_unique<HolderProcess>(server().url(), name, 0, 2000));
        const auto line = processes.back()->line();
        id = line.substr(line.rfind(' ') + 1);
        EXPECT_EQ(processes.back()->ask("unlock"), "released");
    }
    HolderProcess& still = *processes.back();
    const auto turns = [&] { return std::stoi(raw.get(name + ":count").value_or("0")); };
    for (auto& process : processes) {
        for (int i = 0; i < (process == processes.back() ? mine : theirs); ++i) {
            process->tell("hammer");
        }
    }
    ASSERT_TRUE(eventually([&] { return turns() > 20; }));
    const auto hasLock = [&] {
        std::this_thread::sleep_for(20ms); // its last request has been executed
        const auto holders = raw.command({"HKEYS", name}).elements;
        return std::ranges::any_of(holders, [&](const auto& holder) { return holder.text().starts_with(id); });
    };
    for (still.freeze(); hasLock(); still.freeze()) {
        still.thaw();
    }
    const int before = turns();
    EXPECT_TRUE(eventually([&] { return turns() > before + 500; })) << "the others go on";
    still.thaw();
    for (int i = 0; i < mine; ++i) {
        EXPECT_EQ(still.line(), "done");
    }
    EXPECT_LT(turns(), theirs * 50) << "though the others went on";
}

TEST_F(KilledWaiter, ThatWasJustGrantedAFairLockCostsNoMoreThanItsPlace)
{
    const auto fair = client.getFairLock(name);
    fair.lock(60s);
    HolderProcess waiter(server().url() + "?poll_interval=400", name, 0, 2000, "fair");
    ASSERT_TRUE(eventually([&] { // its client listens: the waiter's record has a lease and a request
        const auto places = raw.command({"HVALS", "redislock_places:{" + name + "}"}).elements;
        return places.size() == 1 && std::ranges::count(places[0].text(), ' ') == 4;
    }));
    waiter.freeze();
    EXPECT_EQ(fair.unlock(), Unlocked::released);
    EXPECT_EQ(raw.command({"HLEN", name}).integer(), 1) << "it was granted, and does not know";
    EXPECT_LE(raw.pttl(name), 2000ms) << "five of its polls";
    waiter.kill();
    EXPECT_TRUE(fair.tryLock(8s));
    EXPECT_EQ(fair.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
