#include "core/share/waiter_queue.hpp"
#include "redislock/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

namespace redislock::detail {
namespace {

struct Queued : WaiterLink<Queued> {};

std::vector<const Queued*> inOrder(const WaiterQueue<Queued>& queue)
{
    std::vector<const Queued*> all;
    queue.forEach([&all](const Queued& waiter) { all.push_back(&waiter); });
    return all;
}

TEST(WaiterQueue, FirstComeFirstServed)
{
    WaiterQueue<Queued> queue;
    Queued a;
    Queued b;
    Queued c;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.head(), nullptr);
    queue.join(a);
    queue.join(b);
    queue.join(c);
    EXPECT_EQ(inOrder(queue), (std::vector<const Queued*>{&a, &b, &c}));
    EXPECT_EQ(queue.leave(a), &b);
    EXPECT_EQ(queue.leave(b), &c);
    EXPECT_EQ(queue.leave(c), nullptr);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.size(), 0U);
}

TEST(WaiterQueue, OnlyAHeadThatLeavesHandsOn)
{
    WaiterQueue<Queued> queue;
    Queued a;
    Queued b;
    Queued c;
    queue.join(a);
    queue.join(b);
    queue.join(c);
    EXPECT_EQ(queue.leave(b), nullptr);
    EXPECT_EQ(queue.leave(c), nullptr);
    EXPECT_EQ(queue.head(), &a);
    EXPECT_EQ(inOrder(queue), (std::vector<const Queued*>{&a}));
    EXPECT_EQ(queue.leave(a), nullptr) << "nobody is left to hand on to";
}

TEST(WaiterQueue, LeavingTwiceOrWithoutHavingJoinedDoesNothing)
{
    WaiterQueue<Queued> queue;
    Queued a;
    Queued stranger;
    queue.join(a);
    EXPECT_EQ(queue.leave(stranger), nullptr);
    queue.leave(a);
    EXPECT_EQ(queue.leave(a), nullptr);
    EXPECT_FALSE(a.queued);
    EXPECT_EQ(queue.size(), 0U);
}

TEST(WaiterQueue, WhoeverComesBackJoinsAtTheEnd)
{
    WaiterQueue<Queued> queue;
    Queued a;
    Queued b;
    queue.join(a);
    queue.join(b);
    queue.leave(a);
    queue.join(a);
    EXPECT_EQ(inOrder(queue), (std::vector<const Queued*>{&b, &a}));
}

TEST(WaiterQueue, BehavesAsADequeInRandomSequences)
{
    Random random(7);
    WaiterQueue<Queued> queue;
    std::array<Queued, 20> waiters;
    std::deque<const Queued*> model;
    for (int step = 0; step < 10'000; ++step) {
        SCOPED_TRACE(step);
        Queued& waiter = waiters[random.next() % waiters.size()];
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
        ASSERT_EQ(inOrder(queue), std::vector<const Queued*>(model.begin(), model.end()));
    }
}

} // namespace
} // namespace redislock::detail
