// Histories of groups, made by hand, and whole runs with an error at their end: S13.
#include "simulation/group_world.hpp"
#include "simulation/whole_runs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;

/// A RedLock on three servers.
class GroupCheckerTest : public ::testing::Test {
protected:
    /// From now on the server has the lock for that holder, for another second.
    void lock(std::size_t server, const std::string& holder)
    {
        auto& keyspace = keyspaces[server];
        keyspace.beginScript(millisecondOf(checkedAt));
        keyspace.execute({"HSET", "stock", holder, "1"});
        keyspace.execute({"PEXPIRE", "stock", "1000"});
    }
    static HeldMember member(std::size_t server, const std::string& holder) { return {server, "stock", holder}; }
    std::uint64_t believe(const std::vector<HeldMember>& members, VirtualTime until = checkedAt + 999ms)
    {
        return checker.believes(
            "red", 2, [until] { return until; }, [members] { return members; });
    }
    std::string ruleBroken(VirtualTime when = checkedAt)
    {
        return ruleBrokenBy([&] { checker.check(when); });
    }

    std::array<Keyspace, 3> keyspaces;
    std::set<std::string> excused;
    GroupChecker checker{[this](std::size_t server) -> const Keyspace& { return keyspaces[server]; },
                         [this](const HeldMember& member) { return excused.contains(member.holder); }};
};

TEST_F(GroupCheckerTest, WhoHasAMajorityMayBelieveSo)
{
    lock(0, "a:1");
    lock(2, "a:2");
    believe({member(0, "a:1"), member(1, "a:3"), member(2, "a:2")});
    EXPECT_EQ(ruleBroken(), "none");
}

TEST_F(GroupCheckerTest, ABeliefWithTooFewMembersBreaksS13)
{
    lock(0, "a:1");
    believe({member(0, "a:1"), member(1, "a:2")});
    EXPECT_EQ(ruleBroken(), "S13");
    EXPECT_EQ(ruleBroken(checkedAt + 999ms), "none") << "it is over";
}

TEST_F(GroupCheckerTest, OneServerTwiceIsNoMajority)
{
    lock(0, "a:1");
    believe({member(0, "a:1"), member(0, "a:1")});
    EXPECT_EQ(ruleBroken(), "S13");
}

TEST_F(GroupCheckerTest, ABeliefThatLastsLongerThanItsMembersBreaksS13)
{
    lock(0, "a:1");
    lock(1, "a:2");
    believe({member(0, "a:1"), member(1, "a:2")}, checkedAt + 999ms + 1ns);
    EXPECT_EQ(ruleBroken(), "S13");
}

TEST_F(GroupCheckerTest, AMemberThatSomebodyElseHasDoesNotCount)
{
    lock(0, "a:1");
    lock(1, "b:1");
    believe({member(0, "a:1"), member(1, "a:2")});
    EXPECT_EQ(ruleBroken(), "S13");
    excused.insert("a:2"); // it was taken away from the holder
    EXPECT_EQ(ruleBroken(), "none");
}

TEST_F(GroupCheckerTest, TwoBelieversBreakS13UnlessOneHasBeenRobbed)
{
    for (const auto* holder : {"a:1", "b:1"}) {
        lock(0, holder);
        lock(1, holder);
    }
    believe({member(0, "a:1"), member(1, "a:1")});
    const auto other = believe({member(0, "b:1"), member(1, "b:1")});
    EXPECT_EQ(ruleBroken(), "S13");
    excused.insert("a:1");
    EXPECT_EQ(ruleBroken(), "none");
    excused.clear();
    checker.ends(other);
    EXPECT_EQ(ruleBroken(), "none");
}

Rules groupsBrokenWith(const GroupSabotage& sabotage)
{
    return rulesBrokenWith<GroupWorld>(15, sabotage);
}

/// A stranger takes every lock on every server, for a day.
void takeEveryServer(const GroupSabotage::Hands& hands)
{
    for (auto* server : hands.servers) {
        auto& keyspace = server->keyspace();
        keyspace.beginScript(millisecondOf(hands.scheduler.now()));
        for (const char* name : {"stock:0", "stock:1"}) {
            keyspace.execute({"HSET", name, "stranger:1", "1"});
            keyspace.execute({"PEXPIRE", name, "86400000"});
        }
    }
}

TEST(GroupSabotageTest, RunsWithoutItAreGood)
{
    EXPECT_EQ(groupsBrokenWith({}), Rules{"none"});
}

TEST(GroupSabotageTest, AGroupThatCannotBeTakenBreaksT9)
{
    EXPECT_EQ(groupsBrokenWith({.beforeProbes = takeEveryServer}), Rules{"T9"});
}

TEST(GroupSabotageTest, AMemberThatStaysBreaksS13)
{
    EXPECT_EQ(groupsBrokenWith({.beforeResidue = takeEveryServer}), Rules{"S13"});
}

TEST(GroupSabotageTest, TheSameSeedGivesTheSameTrace)
{
    expectSameTraceOfSameSeed<GroupWorld>();
}

} // namespace
} // namespace redislock::simulation
