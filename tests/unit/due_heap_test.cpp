#include "core/due_heap.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using test::at;

struct Item {
    DueSlot first;
    DueSlot second;
    std::optional<TimePoint> due; ///< of the model
};

using Heap = DueHeap<Item, &Item::first>;

TEST(DueHeap, AnEmptyOneHasNothingDue)
{
    Heap heap;
    Item item;
    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.earliest(), TimePoint::max());
    EXPECT_EQ(heap.popDue(TimePoint::max()), nullptr);
    heap.remove(item);
    EXPECT_FALSE(item.first.scheduled());
}

TEST(DueHeap, GivesTheMostOverdueFirstAndNothingBeforeItsTime)
{
    Heap heap;
    std::array<Item, 5> items;
    for (const std::size_t i : {3U, 0U, 4U, 1U, 2U}) {
        heap.set(items[i], at(i * 1s));
    }
    EXPECT_EQ(heap.earliest(), at(0s));
    EXPECT_EQ(heap.popDue(at(-1ns)), nullptr);
    EXPECT_EQ(heap.popDue(at(2s)), &items[0]);
    EXPECT_EQ(heap.popDue(at(2s)), &items[1]);
    EXPECT_EQ(heap.popDue(at(2s)), &items[2]);
    EXPECT_EQ(heap.popDue(at(2s)), nullptr);
    EXPECT_FALSE(items[2].first.scheduled());
    EXPECT_TRUE(items[3].first.scheduled());
    EXPECT_EQ(heap.earliest(), at(3s));
    EXPECT_EQ(heap.size(), 2U);
}

TEST(DueHeap, AnItemIsInOnceHoweverOftenItIsSet)
{
    Heap heap;
    Item item;
    Item other;
    heap.set(other, at(5s));
    for (const auto due : {9s, 1s, 7s}) {
        heap.set(item, at(due));
        EXPECT_EQ(heap.dueOf(item), at(due));
        EXPECT_EQ(heap.size(), 2U);
    }
    EXPECT_EQ(heap.popDue(at(9s)), &other);
    EXPECT_EQ(heap.popDue(at(9s)), &item);
    EXPECT_TRUE(heap.empty());
}

TEST(DueHeap, TakesOutFromAnywhereAndOnlyOnce)
{
    Heap heap;
    std::array<Item, 3> items;
    for (std::size_t i = 0; i < items.size(); ++i) {
        heap.set(items[i], at(i * 1s));
    }
    heap.remove(items[0]);
    heap.remove(items[0]);
    EXPECT_EQ(heap.size(), 2U);
    EXPECT_EQ(heap.earliest(), at(1s));
    heap.set(items[0], at(3s));
    heap.remove(items[1]);
    EXPECT_EQ(heap.popDue(at(3s)), &items[2]);
    EXPECT_EQ(heap.popDue(at(3s)), &items[0]);
}

TEST(DueHeap, OneItemCanBeInTwoHeaps)
{
    Heap renewals;
    DueHeap<Item, &Item::second> deadlines;
    Item item;
    renewals.set(item, at(1s));
    deadlines.set(item, at(2s));
    EXPECT_EQ(renewals.popDue(at(1s)), &item);
    EXPECT_EQ(deadlines.dueOf(item), at(2s));
    EXPECT_TRUE(item.second.scheduled());
}

TEST(DueHeap, TheLatestTimeIsNever)
{
    Heap heap;
    Item item;
    heap.set(item, TimePoint::max());
    EXPECT_EQ(heap.popDue(TimePoint::max() - 1ns), nullptr);
    EXPECT_EQ(heap.popDue(TimePoint::max()), &item);
}

TEST(DueHeap, BehavesAsASortedListInRandomSequences)
{
    Random random(42);
    Heap heap;
    std::array<Item, 200> items;
    std::multimap<TimePoint, Item*> model;
    const auto forget = [&](Item& item) {
        for (auto [it, end] = model.equal_range(item.due.value_or(TimePoint{})); it != end; ++it) {
            if (it->second == &item) {
                model.erase(it);
                break;
            }
        }
        item.due.reset();
    };
    for (int step = 0; step < 10'000; ++step) {
        SCOPED_TRACE(step);
        Item& item = items[random.next() % items.size()];
        // few different times, so that many are equal; at first more entries are added, later more are removed
        const TimePoint when = at(std::chrono::seconds(random.next() % 100));
        const auto what = random.next() % 10;
        const bool filling = step / 1000 % 2 == 0;
        if (what < (filling ? 7U : 4U)) {
            forget(item);
            item.due = when;
            model.emplace(when, &item);
            heap.set(item, when);
        } else if (what < 8) {
            forget(item);
            heap.remove(item);
        } else {
            Item* popped = heap.popDue(when);
            if (popped == nullptr) {
                ASSERT_TRUE(model.empty() || model.begin()->first > when);
            } else {
                ASSERT_EQ(popped->due, model.begin()->first);
                ASSERT_LE(*popped->due, when);
                forget(*popped);
            }
        }
        ASSERT_EQ(heap.size(), model.size());
        ASSERT_EQ(heap.empty(), model.empty());
        ASSERT_EQ(heap.earliest(), model.empty() ? TimePoint::max() : model.begin()->first);
        ASSERT_EQ(item.first.scheduled(), item.due.has_value());
        if (item.due) {
            ASSERT_EQ(heap.dueOf(item), *item.due);
        }
    }
    TimePoint last{};
    while (Item* item = heap.popDue(TimePoint::max())) {
        ASSERT_GE(*item->due, last);
        last = *item->due;
        forget(*item);
    }
    EXPECT_TRUE(model.empty());
}

} // namespace
} // namespace redislock::detail
