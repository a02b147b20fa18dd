#include "core/share/compact_list.hpp"
#include "redislock/random.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace redislock::detail {
namespace {

using Numbers = CompactList<std::shared_ptr<int>>;

std::vector<int> valuesOf(const Numbers& list)
{
    std::vector<int> values;
    for (const auto& element : list) {
        values.push_back(*element);
    }
    return values;
}

TEST(CompactList, KeepsTheOrderOfWhatWasAdded)
{
    Numbers list;
    EXPECT_TRUE(list.empty());
    for (const int value : {1, 2, 3}) {
        list.add(std::make_shared<int>(value));
    }
    EXPECT_EQ(valuesOf(list), (std::vector{1, 2, 3}));
    EXPECT_EQ(*list.take(1), 2);
    EXPECT_EQ(*list.take(0), 1);
    EXPECT_EQ(valuesOf(list), (std::vector{3}));
}

TEST(CompactList, LetsGoOfWhatWasTakenOutOrCleared)
{
    const auto first = std::make_shared<int>(1);
    const auto second = std::make_shared<int>(2);
    Numbers list;
    list.add(first);
    list.add(second);
    list.take(0);
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_EQ(second.use_count(), 2);
    list.add(first);
    list.clear();
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_EQ(second.use_count(), 1);
}

TEST(CompactList, BehavesAsAVectorInRandomSequences)
{
    Random random(11);
    Numbers list;
    std::vector<int> model;
    for (int step = 0; step < 10'000; ++step) {
        SCOPED_TRACE(step);
        if (model.empty() || (model.size() < 6 && random.next() % 2 == 0)) {
            list.add(std::make_shared<int>(step));
            model.push_back(step);
        } else if (random.next() % 16 == 0) {
            list.clear();
            model.clear();
        } else {
            const std::size_t i = random.next() % model.size();
            ASSERT_EQ(*list.take(i), model[i]);
            model.erase(model.begin() + static_cast<std::ptrdiff_t>(i));
        }
        ASSERT_EQ(list.size(), model.size());
        ASSERT_EQ(valuesOf(list), model);
    }
}

} // namespace
} // namespace redislock::detail
