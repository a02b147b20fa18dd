#include "redislock/detail/logic/waiter_queue.hpp"
#include "redislock/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

namespace redislock::detail {
namespace {

struct Waiter : WaiterLink<Waiter> {};

std::vector<const Waiter*> inOrder(const WaiterQueue<Waiter>& queue)
{
    std::vector<const Waiter*> all;
    queue.forEach([&all](const Waiter& waiter) { all.push_back(&waiter); });
    return all;
}

TEST(WaiterQueue, FirstComeFirstServed)
{
    WaiterQueue<Waiter> queue;
    Waiter a;
    Waiter b;
    Waiter c;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.head(), nullptr);
    queue.join(a);
    queue.join(b);
    queue.join(c);
    EXPECT_EQ(inOrder(queue), (std::vector<const Waiter*>{&a, &b, &c}));
    EXPECT_EQ(queue.leave(a), &b);
    EXPECT_EQ(queue.leave(b), &c);
    EXPECT_EQ(queue.leave(c), nullptr);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.size(), 0U);
}

TEST(WaiterQueue, OnlyAHeadThatLeavesHandsOn)
{
    WaiterQueue<Waiter> queue;
    Waiter a;
    Waiter b;
    Waiter c;
    queue.join(a);
    queue.join(b);
    queue.join(c);
    EXPECT_EQ(queue.leave(b), nullptr);
    EXPECT_EQ(queue.leave(c), nullptr);
    EXPECT_EQ(queue.head(), &a);
    EXPECT_EQ(inOrder(queue), (std::vector<const Waiter*>{&a}));
    EXPECT_EQ(queue.leave(a), nullptr) << "nobody is left to hand on to";
}

TEST(WaiterQueue, LeavingTwiceOrWithoutHavingJoinedDoesNothing)
{
    WaiterQueue<Waiter> queue;
    Waiter a;
    Waiter stranger;
    queue.join(a);
    EXPECT_EQ(queue.leave(stranger), nullptr);
    queue.leave(a);
    EXPECT_EQ(queue.leave(a), nullptr);
    EXPECT_FALSE(a.queued);
    EXPECT_EQ(queue.size(), 0U);
}

TEST(WaiterQueue, WhoeverComesBackJoinsAtTheEnd)
{
    WaiterQueue<Waiter> queue;
    Waiter a;
    Waiter b;
    queue.join(a);
    queue.join(b);
    queue.leave(a);
    queue.join(a);
    EXPECT_EQ(inOrder(queue), (std::vector<const Waiter*>{&b, &a}));
}

TEST(WaiterQueue, BehavesAsADequeInRandomSequences)
{
    Random random(7);
    WaiterQueue<Waiter> queue;
    std::array<Waiter, 20> waiters;
    std::deque<const Waiter*> model;
    for (int step = 0; step < 10'000; ++step) {
        SCOPED_TRACE(step);
        Waiter& waiter = waiters[random.next() % waiters.size()];
        const auto found = std::find(model.begin(), model.end(), &waiter);
        if (found == model.end()) {
            queue.join(waiter);
            model.push_back(&waiter);
        } else {
            const bool wasHead = found == model.begin();
            model.erase(found);
            ASSERT_EQ(queue.leave(waiter), wasHead && !model.empty() ? model.front() : nullptr);
        }
        ASSERT_EQ(queue.size(), model.size());
        ASSERT_EQ(queue.head(), model.empty() ? nullptr : model.front());
        ASSERT_EQ(inOrder(queue), std::vector<const Waiter*>(model.begin(), model.end()));
    }
}

} // namespace
} // namespace redislock::detail
