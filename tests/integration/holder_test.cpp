// Holders in other processes: stopped, killed, ended with locks held.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "integration/holder_process.hpp"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Holder : public LockTest {
protected:
    /// Starts a holder and waits for its grant. @return when the holder asked for the lock.
    std::chrono::nanoseconds start(int leaseMs, int watchdogMs = 600)
    {
        process = std::make_unique<HolderProcess>(server().url(), name, leaseMs, watchdogMs);
        std::istringstream line(process->line());
        std::string word;
        std::int64_t time = 0;
        line >> word >> time;
        EXPECT_EQ(word, "held");
        return std::chrono::nanoseconds(time);
    }

    std::string name = uniqueName();
    std::unique_ptr<HolderProcess> process;
    Client client{config()};
    RedisLock lock = client.getLock(name);
};

TEST_F(Holder, AnotherProcessIsExcluded)
{
    start(0);
    EXPECT_EQ(D::tryLock(lock), false);
    EXPECT_EQ(D::unlock(lock), Errc::notHeld);
    EXPECT_EQ(process->ask("unlock"), "released");
    EXPECT_EQ(D::tryLock(lock), true);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Holder, HolderThatStoodStillForLongerThanItsLeaseKnowsAtOnceThatItLost)
{
    start(0);
    process->freeze();
    EXPECT_EQ(D::tryLock(lock, 600ms + soon), true);
    const auto mine = holderOf(name);
    process->thaw();
    const auto state = process->ask("state");
    EXPECT_EQ(state.substr(0, state.find(" token")), "count=0 valid=0 stopped=1");
    EXPECT_TRUE(eventually([&] { return process->ask("state") == "count=0 valid=0 stopped=1 token=1"; }));
    EXPECT_EQ(process->ask("unlock"), "alreadyLost");
    EXPECT_EQ(holderOf(name), mine);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Holder, HolderThatStoodStillForAMomentGoesOn)
{
    start(0, 5'000);
    for (int round = 0; round < 3; ++round) {
        process->freeze();
        process->thaw();
        const auto state = process->ask("state");
        EXPECT_TRUE(state.starts_with("count=1 ")) << state;
        EXPECT_TRUE(state.ends_with(" stopped=0 token=0")) << state;
    }
    EXPECT_EQ(process->ask("unlock"), "released");
}

TEST_F(Holder, LockOfAKilledHolderIsFreeWhenItsLeaseIsOverAndNotBefore)
{
    const auto asked = start(900);
    process->kill();
    EXPECT_TRUE(raw.exists(name));
    EXPECT_EQ(D::tryLock(lock), false);
    EXPECT_EQ(D::tryLock(lock, 900ms + soon), true);
    EXPECT_GE(bootTime() - asked, 900ms);
    EXPECT_LT(bootTime() - asked, 900ms + soon);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Holder, LockOfAKilledHolderIsRenewedNoMore)
{
    start(0);
    process->kill();
    EXPECT_EQ(D::tryLock(lock, 600ms + soon), true);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Holder, ProcessMayEndWithLocksHeld)
{
    for (const auto* how : {"exit", "exit-static", "return"}) {
        SCOPED_TRACE(how);
        start(0);
        process->tell(how);
        const Stopwatch watch;
        EXPECT_EQ(process->exitStatus(), 0);
        EXPECT_LT(watch.elapsed(), soon);
        EXPECT_EQ(D::tryLock(lock, 600ms + soon), true);
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }
}

TEST_F(Holder, ProcessesCountExactly)
{
    const auto counter = name + ":count";
    std::vector<std::unique_ptr<HolderProcess>> processes;
    for (int i = 0; i < 4; ++i) {
        start(0);
        EXPECT_EQ(process->ask("unlock"), "released");
        processes.push_back(std::move(process));
    }
    for (const auto& each : processes) {
        each->tell("hammer");
    }
    for (const auto& each : processes) {
        EXPECT_EQ(each->line(), "done");
    }
    EXPECT_EQ(raw.get(counter), "200");
    raw.command({"DEL", counter});
}

} // namespace
} // namespace redislock::test
