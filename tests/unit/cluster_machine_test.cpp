#include "link/cluster/cluster_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using Server = ClusterMachine::Server;

Endpoint clusterNodeAt(std::uint16_t port, const std::string& host = "10.0.0.1")
{
    return {host, port, {}};
}

/// A table in which nodes share the slots evenly, in this order.
ClusterTable clusterTable(const std::vector<Endpoint>& masters, const std::vector<Endpoint>& replicas = {},
                          const std::string& cluster = "n")
{
    ClusterTable table;
    for (const auto* all : {&masters, &replicas}) {
        for (const auto& at : *all) {
            table.nodes.push_back({cluster + std::to_string(at.port), at, {}, at});
        }
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        table.ranges.push_back({static_cast<Slot>(i * slotCount / masters.size()),
                                static_cast<Slot>((i + 1) * slotCount / masters.size() - 1), i});
    }
    return table;
}

class MachineOfACluster : public ::testing::Test {
protected:
    MachineOfACluster()
    {
        machine.addSeed(clusterNodeAt(1));
        machine.addSeed(clusterNodeAt(2));
    }

    /// Asks for the table until it is told.
    void settle()
    {
        machine.search();
        const auto asked = ask();
        ASSERT_TRUE(asked);
        ASSERT_TRUE(machine.told(*asked, whole, now, now));
        (void)machine.takeMoved();
        pass(1s);
    }
    std::optional<Server> ask() { return machine.takeQuestion(now, true); }
    void pass(std::chrono::milliseconds span) { now += span; }
    [[nodiscard]] Endpoint owner(Slot slot) const { return machine.at(machine.serverOf(slot)); }
    static Redirection moved(Slot slot, std::uint16_t port, std::string_view host = "10.0.0.1", bool isOnce = false)
    {
        return {isOnce, slot, host, port};
    }

    TimePoint now = TimePoint(1h);
    const ClusterTable whole = clusterTable({clusterNodeAt(1), clusterNodeAt(2), clusterNodeAt(3)}, {clusterNodeAt(4)});
    ClusterMachine machine;
};

TEST_F(MachineOfACluster, AsksOneSeedAfterTheOther)
{
    EXPECT_FALSE(ask()) << "nobody needs it yet";
    machine.search();
    const auto first = ask();
    ASSERT_TRUE(first);
    EXPECT_EQ(machine.any(), ClusterMachine::entry);
    EXPECT_FALSE(ask());
    pass(ClusterMachine::silentAfter);
    const auto second = ask();
    ASSERT_TRUE(second);
    EXPECT_NE(*first, *second) << "the first one is silent";
    machine.failed(*second, now);
    EXPECT_FALSE(ask());
    EXPECT_TRUE(machine.isHopeless());
    machine.search();
    EXPECT_TRUE(ask()) << "another round";
}

TEST_F(MachineOfACluster, KnowsWhoHasWhichSlot)
{
    settle();
    EXPECT_EQ(machine.state(), ClusterMachine::State::settled);
    EXPECT_EQ(owner(0).port, 1);
    EXPECT_EQ(owner(slotCount / 2).port, 2);
    EXPECT_EQ(owner(slotCount - 1).port, 3);
    EXPECT_EQ(machine.slotsOf(machine.serverOf(0)).count(), slotCount / 3);
}

TEST_F(MachineOfACluster, LearnsAMovedSlotAtOnce)
{
    settle();
    machine.redirected(machine.serverOf(5), moved(5, 2), now);
    EXPECT_EQ(owner(5).port, 2);
    EXPECT_EQ(owner(6).port, 1);
    EXPECT_TRUE(machine.takeMoved().test(5));
    EXPECT_TRUE(machine.takeMoved().none());
    EXPECT_TRUE(ask()) << "and the table is asked for anew";
}

TEST_F(MachineOfACluster, DoesNotForgetItForATableFromBefore)
{
    settle();
    machine.doubt();
    const auto asked = ask();
    ASSERT_TRUE(asked);
    const auto before = now;
    pass(1ms);
    machine.redirected(machine.serverOf(5), moved(5, 2), now);
    ASSERT_TRUE(machine.told(*asked, whole, before, now));
    EXPECT_EQ(owner(5).port, 2);
    EXPECT_EQ(machine.state(), ClusterMachine::State::doubting);
    pass(1s);
    const auto again = ask();
    ASSERT_TRUE(again);
    ASSERT_TRUE(machine.told(*again, whole, now, now));
    EXPECT_EQ(owner(5).port, 1) << "as the later table says";
}

TEST_F(MachineOfACluster, AsksAtMostEveryTenthOfASecond)
{
    settle();
    machine.doubt();
    const auto asked = ask();
    ASSERT_TRUE(asked);
    machine.doubt();
    EXPECT_FALSE(ask()) << "one at a time";
    ASSERT_TRUE(machine.told(*asked, whole, now, now));
    machine.doubt();
    EXPECT_FALSE(ask());
    EXPECT_EQ(machine.dueAt(true), now + ClusterMachine::askAgainAfter);
    pass(ClusterMachine::askAgainAfter);
    EXPECT_TRUE(ask());
}

TEST_F(MachineOfACluster, FollowsNoRedirectionToAStranger)
{
    settle();
    machine.redirected(machine.serverOf(5), moved(5, 2, "10.9.9.9"), now);
    EXPECT_EQ(owner(5).port, 1);
    const auto asked = ask();
    ASSERT_TRUE(asked) << "the table is asked for at once";
    ASSERT_TRUE(machine.told(*asked, whole, now, now));
    machine.redirected(machine.serverOf(5), moved(5, 2, "10.9.9.9"), now);
    EXPECT_FALSE(ask()) << "it did not help: then not at once again";
    EXPECT_EQ(machine.targetOf(5), ClusterMachine::entry);
    machine.redirected(machine.serverOf(5), moved(5, 2, "10.9.9.9", true), now);
    EXPECT_EQ(machine.targetOf(5), ClusterMachine::entry);
}

TEST_F(MachineOfACluster, KnowsTheNodeThatAnsweredByAnEmptyHost)
{
    settle();
    machine.redirected(machine.serverOf(5), moved(5, 3, ""), now);
    EXPECT_EQ(owner(5).port, 3);
}

TEST_F(MachineOfACluster, KnowsNodesByTheirOtherNames)
{
    machine.search();
    const auto asked = ask();
    ASSERT_TRUE(asked);
    ClusterTable table = whole;
    table.nodes[1].aliases = {"two.test"};
    table.nodes[2].at = clusterNodeAt(33, "127.0.0.1"); // by the address map
    ASSERT_TRUE(machine.told(*asked, table, now, now));
    machine.redirected(machine.serverOf(5), moved(5, 2, "two.test"), now);
    EXPECT_EQ(owner(5).port, 2);
    EXPECT_EQ(machine.tlsName(machine.serverOf(5)), "two.test");
    machine.redirected(machine.serverOf(6), moved(6, 3), now);
    EXPECT_EQ(owner(6), clusterNodeAt(33, "127.0.0.1"));
    EXPECT_EQ(machine.tlsName(machine.serverOf(6)), "127.0.0.1");
}

TEST_F(MachineOfACluster, RemembersToWhomASlotIsBeingMoved)
{
    settle();
    machine.redirected(machine.serverOf(5), moved(5, 2, "10.0.0.1", true), now);
    EXPECT_EQ(owner(5).port, 1);
    EXPECT_EQ(machine.at(machine.targetOf(5)).port, 2);
    EXPECT_EQ(machine.targetOf(6), ClusterMachine::entry);
    machine.redirected(machine.serverOf(5), moved(5, 2), now);
    EXPECT_EQ(machine.targetOf(5), ClusterMachine::entry) << "it has moved";
}

TEST_F(MachineOfACluster, AsksOtherNodesWhileOneIsInTrouble)
{
    settle();
    const Server dead = machine.serverOf(0);
    machine.tried(dead, false, now);
    for (int i = 0; i < 20; ++i) {
        const auto asked = ask();
        ASSERT_TRUE(asked) << i;
        EXPECT_NE(*asked, dead);
        ASSERT_TRUE(machine.told(*asked, whole, now, now));
        pass(ClusterMachine::askAgainAfter);
    }
    const auto asked = ask();
    ASSERT_TRUE(asked);
    ASSERT_TRUE(machine.told(*asked, clusterTable({clusterNodeAt(4), clusterNodeAt(2), clusterNodeAt(3)}), now, now));
    EXPECT_EQ(owner(0).port, 4);
    EXPECT_TRUE(machine.takeLoss(dead));
    EXPECT_FALSE(machine.takeLoss(dead));
    pass(1s);
    EXPECT_FALSE(ask()) << "it has no slots any more";
}

/// A master that is cut off from the others goes on naming itself.
TEST_F(MachineOfACluster, DoesNotAskANodeThatSaysThatTheClusterIsDown)
{
    settle();
    const Server cutOff = machine.serverOf(0);
    machine.tried(cutOff, true, now);
    for (int i = 0; i < 20; ++i) {
        machine.troubled(cutOff, now);
        const auto asked = ask();
        ASSERT_TRUE(asked) << i;
        EXPECT_NE(*asked, cutOff);
        ASSERT_TRUE(machine.told(*asked, whole, now, now));
        pass(ClusterMachine::askAgainAfter);
    }
}

/// A node to which a slot was being moved goes on naming the master that died meanwhile.
TEST_F(MachineOfACluster, BelievesNoTableThatGivesASlotBackToANodeInTrouble)
{
    settle();
    const Server dead = machine.serverOf(0);
    machine.tried(dead, false, now);
    const auto tell = [&](const ClusterTable& table) {
        const auto asked = ask();
        ASSERT_TRUE(asked);
        ASSERT_TRUE(machine.told(*asked, table, now, now));
        pass(ClusterMachine::askAgainAfter);
    };
    tell(clusterTable({clusterNodeAt(4), clusterNodeAt(2), clusterNodeAt(3)}));
    machine.doubt();
    tell(whole);
    EXPECT_EQ(owner(0).port, 4);
    machine.redirected(machine.serverOf(0), moved(0, 1), now);
    EXPECT_EQ(owner(0).port, 1) << "who had it knows better";
    machine.tried(machine.serverOf(1), false, now);
    tell(whole);
    EXPECT_EQ(owner(1).port, 1) << "neither is better";
}

TEST_F(MachineOfACluster, AsksLessOftenWhereThatHasNotHelpedForLong)
{
    settle();
    const Server dead = machine.serverOf(0);
    int questions = 0;
    for (int i = 0; i < 400; ++i) {
        machine.tried(dead, false, now);
        if (const auto asked = ask()) {
            ++questions;
            ASSERT_TRUE(machine.told(*asked, whole, now, now));
        }
        pass(100ms);
    }
    EXPECT_GT(questions, 290);
    EXPECT_LT(questions, 320);
}

TEST_F(MachineOfACluster, AsksQuietlyNowAndThen)
{
    settle();
    pass(28s);
    EXPECT_FALSE(ask());
    pass(1s);
    EXPECT_FALSE(machine.takeQuestion(now, false)) << "without connections";
    EXPECT_TRUE(ask());
}

TEST_F(MachineOfACluster, AsksNoMoreAboutANodeWhoseSuccessorItWasTold)
{
    settle();
    const auto gone = machine.serverOf(0);
    machine.tried(gone, false, now);
    const auto first = ask();
    ASSERT_TRUE(first);
    EXPECT_FALSE(ask());
    ASSERT_TRUE(machine.told(*first, clusterTable({clusterNodeAt(4), clusterNodeAt(2), clusterNodeAt(3)}), now, now));
    pass(1s);
    EXPECT_FALSE(ask());
    machine.failed(gone, now);
    EXPECT_FALSE(ask()) << "others have answered since";
}

TEST_F(MachineOfACluster, UsesNoTableOfAnotherCluster)
{
    machine.search();
    const auto first = ask();
    ASSERT_TRUE(first);
    ASSERT_TRUE(machine.told(*first, clusterTable({clusterNodeAt(7), clusterNodeAt(8)}), now, now));
    const Server stranger = *first == 1 ? 2 : 1;
    EXPECT_FALSE(machine.told(stranger, clusterTable({clusterNodeAt(17), clusterNodeAt(18)}, {}, "other"), now, now));
    EXPECT_EQ(owner(0).port, 7);
    EXPECT_EQ(machine.count(), 5U);
}

TEST_F(MachineOfACluster, ForgetsNodesThatAreGoneButNotTheSeeds)
{
    settle();
    const Server third = machine.serverOf(slotCount - 1);
    const auto asked = (machine.doubt(), ask());
    ASSERT_TRUE(asked);
    ASSERT_TRUE(machine.told(*asked, clusterTable({clusterNodeAt(4), clusterNodeAt(2)}), now, now));
    machine.release(third);
    EXPECT_TRUE(machine.at(third).host.empty());
    machine.release(1);
    EXPECT_EQ(machine.at(1), clusterNodeAt(1));
    machine.doubt();
    pass(1s);
    const auto again = ask();
    ASSERT_TRUE(again);
    ASSERT_TRUE(machine.told(*again, clusterTable({clusterNodeAt(4), clusterNodeAt(5)}), now, now));
    EXPECT_EQ(machine.serverOf(slotCount - 1), third) << "whose number is used again";
}

TEST_F(MachineOfACluster, PrefersANodeThatAnswers)
{
    settle();
    machine.tried(2, true, now);
    EXPECT_EQ(machine.any(), 2);
    machine.troubled(2, now);
    EXPECT_NE(machine.any(), 2);
    EXPECT_NE(machine.any(), ClusterMachine::entry);
}

} // namespace
} // namespace redislock::detail
