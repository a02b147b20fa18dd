#include "core/counter/counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(SettledRecords, GoAlongWithTheNextRequestsOfTheirName)
{
    SettledRecords records;
    for (const auto* record : {"a1", "a2", "a3"}) {
        records.add("a", record);
    }
    records.add("b", "b1");
    std::vector<std::string> keys{"a", "mine"};
    records.take("a", 2, keys);
    EXPECT_THAT(keys, ElementsAre("a", "mine", "a3", "a2"));
    keys.clear();
    records.take("a", 2, keys);
    records.take("a", 2, keys);
    records.take("c", 2, keys);
    EXPECT_THAT(keys, ElementsAre("a1"));
    EXPECT_EQ(records.size(), 1U);
}

TEST(SettledRecords, AreTakenAllTogetherByName)
{
    SettledRecords records;
    records.add("a", "a1");
    records.add("b", "b1");
    records.add("a", "a2");
    EXPECT_FALSE(records.isFull());
    EXPECT_THAT(records.takeAll(), UnorderedElementsAre(ElementsAre("a1", "a2"), ElementsAre("b1")));
    EXPECT_THAT(records.takeAll(), IsEmpty());
    EXPECT_EQ(records.size(), 0U);
    for (std::size_t i = 0; i < SettledRecords::most; ++i) {
        EXPECT_FALSE(records.isFull());
        records.add("c", std::to_string(i));
    }
    EXPECT_TRUE(records.isFull());
}

} // namespace
} // namespace redislock::detail
