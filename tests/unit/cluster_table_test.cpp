#include "link/cluster/cluster_table.hpp"
#include "support/replies.hpp"
#include "wire/slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace redislock::detail {
namespace {

using test::arrayReply;
using test::errorReply;
using test::numberReply;
using test::textReply;
using ::testing::ElementsAre;

TEST(SlotOfAName, IsThatOfItsTag)
{
    struct Case {
        const char* name;
        Slot slot;
    };
    const Case cases[] = {
        // as CLUSTER KEYSLOT says
        {"a", 15495},  {"b", 3300},    {"{a}x", 15495}, {"x{a}y{b}", 15495},
        {"a}b", 7866}, {"{}x", 10595}, {"a{b", 13340},  {"", 0},
    };
    for (const auto& [name, slot] : cases) {
        EXPECT_EQ(slotOf(name), slot) << name;
    }
}

Reply nodeReply(const std::string& host, int port, const std::string& id)
{
    return arrayReply({textReply(host), numberReply(port), textReply(id)});
}

TEST(TableOfACluster, NamesMastersAndReplicas)
{
    const auto table = clusterTableOf(
        arrayReply({arrayReply({numberReply(0), numberReply(99), nodeReply("10.0.0.1", 7000, "m1"),
                                nodeReply("10.0.0.2", 7001, "r1")}),
                    arrayReply({numberReply(100), numberReply(100), nodeReply("10.0.0.1", 7000, "m1")})}));
    ASSERT_TRUE(table);
    ASSERT_EQ(table->nodes.size(), 2U);
    EXPECT_EQ(table->nodes[0].announced.str(), "10.0.0.1:7000");
    EXPECT_EQ(table->nodes[1].id, "r1");
    ASSERT_EQ(table->ranges.size(), 2U);
    EXPECT_EQ(table->ranges[0].last, 99);
    EXPECT_EQ(table->ranges[1].node, 0U);
}

TEST(TableOfACluster, HasHostNamesAndNoHosts)
{
    const auto named = arrayReply({textReply("10.0.0.1"), numberReply(7000), textReply("m1"),
                                   arrayReply({textReply("hostname"), textReply("one.test")})});
    const auto unnamed = arrayReply({Reply{}, numberReply(7001), textReply("m2"), arrayReply({})});
    const auto table = clusterTableOf(arrayReply(
        {arrayReply({numberReply(0), numberReply(1), named}), arrayReply({numberReply(2), numberReply(3), unnamed})}));
    ASSERT_TRUE(table);
    EXPECT_THAT(table->nodes[0].aliases, ElementsAre("one.test"));
    EXPECT_EQ(table->nodes[1].announced.host, "");
}

TEST(TableOfACluster, IsNotMadeOfAnythingElse)
{
    const std::vector<Reply> others{
        textReply("x"),
        errorReply("ERR This instance has cluster support disabled"),
        arrayReply({numberReply(1)}),
        arrayReply({arrayReply({numberReply(0), numberReply(16384), nodeReply("h", 1, "m")})}),
        arrayReply({arrayReply({numberReply(-1), numberReply(0), nodeReply("h", 1, "m")})}),
        arrayReply({arrayReply({numberReply(0), numberReply(1)})}),
        arrayReply({arrayReply({numberReply(0), numberReply(1), nodeReply("h", 65536, "m")})}),
        arrayReply({arrayReply({numberReply(0), numberReply(1), arrayReply({numberReply(1), numberReply(1)})})}),
    };
    for (const auto& reply : others) {
        EXPECT_FALSE(clusterTableOf(reply));
    }
}

TEST(ARedirection, IsReadFromTheErrorOfANode)
{
    const auto moved = Redirection::from("MOVED 3300 127.0.0.1:7001");
    ASSERT_TRUE(moved);
    EXPECT_FALSE(moved->isOnce);
    EXPECT_EQ(moved->slot, 3300);
    EXPECT_EQ(moved->host, "127.0.0.1");
    EXPECT_EQ(moved->port, 7001);
    const auto ask = Redirection::from("ASK 15495 ::1:26091");
    ASSERT_TRUE(ask);
    EXPECT_TRUE(ask->isOnce);
    EXPECT_EQ(ask->host, "::1");
    EXPECT_EQ(ask->port, 26091);
    const auto empty = Redirection::from("MOVED 1 :7001");
    ASSERT_TRUE(empty);
    EXPECT_EQ(empty->host, "");
    for (const char* text :
         {"", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1 h",
          "MOVED 1 h:", "MOVED 1 h:0", "MOVED 1 h:65536", "MOVED 1 h:1x", "ERR MOVED 1 h:1"}) {
        EXPECT_FALSE(Redirection::from(text)) << text;
    }
}

} // namespace
} // namespace redislock::detail
