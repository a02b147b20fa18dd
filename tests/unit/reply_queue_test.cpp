#include "link/reply_queue.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using test::at;

struct Request {
    TimePoint sentAt{};
};

std::shared_ptr<Request> request()
{
    return std::make_shared<Request>();
}

TEST(ReplyQueue, AnEmptyOneHasNothingToAnswer)
{
    ReplyQueue<Request> queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.answered(), nullptr);
    EXPECT_EQ(queue.abandon(), nullptr);
    EXPECT_EQ(queue.oldestSent(), TimePoint::max());
    queue.written(at(0s));
    queue.erase(Request{});
    EXPECT_EQ(queue.size(), 0U);
}

TEST(ReplyQueue, RepliesBelongToRequestsInTheirOrder)
{
    ReplyQueue<Request> queue;
    const auto a = request();
    const auto b = request();
    queue.push(a);
    queue.push(b);
    queue.written(at(1s));
    EXPECT_EQ(queue.answered(), a);
    EXPECT_EQ(queue.answered(), b);
    EXPECT_EQ(queue.answered(), nullptr);
}

TEST(ReplyQueue, AReplyBeforeItsRequestWasWrittenIsUnsolicited)
{
    ReplyQueue<Request> queue;
    const auto a = request();
    const auto b = request();
    queue.push(a);
    queue.written(at(1s));
    queue.push(b);
    EXPECT_EQ(queue.answered(), a);
    EXPECT_EQ(queue.answered(), nullptr);
    EXPECT_EQ(queue.unwritten(), 1U);
    EXPECT_EQ(queue[0], b);
}

TEST(ReplyQueue, WritingNotesTheTimeOfWhatWasNotWrittenYet)
{
    ReplyQueue<Request> queue;
    const auto a = request();
    const auto b = request();
    queue.push(a);
    queue.written(at(1s));
    queue.push(b);
    EXPECT_EQ(queue.oldestSent(), at(1s));
    queue.written(at(2s));
    EXPECT_EQ(a->sentAt, at(1s));
    EXPECT_EQ(b->sentAt, at(2s));
    EXPECT_EQ(queue.unanswered(), 2U);
    queue.answered();
    EXPECT_EQ(queue.oldestSent(), at(2s));
    queue.answered();
    EXPECT_EQ(queue.oldestSent(), TimePoint::max());
}

TEST(ReplyQueue, ARequestThatWasNotWrittenHasNoSentTime)
{
    ReplyQueue<Request> queue;
    queue.push(request());
    EXPECT_EQ(queue.oldestSent(), TimePoint::max());
    EXPECT_EQ(queue.unwritten(), 1U);
}

TEST(ReplyQueue, ASlotOutlivesItsCaller)
{
    ReplyQueue<Request> queue;
    std::weak_ptr<Request> left;
    {
        const auto a = request();
        left = a;
        queue.push(a);
        queue.written(at(1s));
    }
    EXPECT_FALSE(left.expired());
    const auto b = request();
    queue.push(b);
    queue.written(at(2s));
    EXPECT_NE(queue.answered(), b);
    EXPECT_TRUE(left.expired()) << "an answered request is let go of";
    EXPECT_EQ(queue.answered(), b);
}

TEST(ReplyQueue, ErasesOnlyWhatWasNotWritten)
{
    ReplyQueue<Request> queue;
    const auto written = request();
    const auto a = request();
    const auto b = request();
    const auto c = request();
    queue.push(written);
    queue.written(at(1s));
    for (const auto& each : {a, b, c}) {
        queue.push(each);
    }
    queue.erase(*written);
    EXPECT_EQ(queue.size(), 4U);
    queue.erase(*b);
    queue.erase(*b);
    EXPECT_EQ(queue.size(), 3U);
    EXPECT_EQ(queue.unwritten(), 2U);
    EXPECT_EQ(b.use_count(), 1);
    EXPECT_EQ(queue[0], written);
    EXPECT_EQ(queue[1], a);
    EXPECT_EQ(queue[2], c);
    queue.erase(*c);
    EXPECT_EQ(c.use_count(), 1);
}

TEST(ReplyQueue, AnEndedConnectionTakesAllFirstWrittenThenUnwritten)
{
    ReplyQueue<Request> queue;
    const auto a = request();
    const auto b = request();
    queue.push(a);
    queue.written(at(1s));
    queue.push(b);
    EXPECT_EQ(queue.abandon(), a);
    EXPECT_EQ(queue.unanswered(), 0U);
    EXPECT_EQ(queue.abandon(), b);
    EXPECT_EQ(queue.abandon(), nullptr);
    EXPECT_EQ(queue.unwritten(), 0U);
}

TEST(ReplyQueue, BehavesAsADequeInRandomSequences)
{
    Random random(99);
    ReplyQueue<Request> queue;
    std::deque<std::shared_ptr<Request>> model;
    std::size_t written = 0;
    for (int step = 0; step < 10'000; ++step) {
        SCOPED_TRACE(step);
        const TimePoint now = at(std::chrono::milliseconds(step));
        const bool filling = step / 500 % 2 == 0; // so that the queue grows, and wraps around
        switch (random.next() % (filling ? 8 : 12)) {
        case 0:
            queue.written(now);
            for (; written < model.size(); ++written) {
                ASSERT_EQ(model[written]->sentAt, now);
            }
            break;
        case 1:
            if (!model.empty()) {
                const std::size_t index = random.next() % model.size();
                queue.erase(*model[index]);
                if (index >= written) {
                    model.erase(model.begin() + static_cast<std::ptrdiff_t>(index));
                }
            }
            break;
        case 2:
            if (random.next() % 4 == 0) {
                ASSERT_EQ(queue.abandon(), model.empty() ? nullptr : model.front());
                if (!model.empty()) {
                    model.pop_front();
                    written -= written > 0 ? 1 : 0;
                }
            }
            break;
        case 3:
        case 8:
        case 9:
        case 10:
        case 11:
            ASSERT_EQ(queue.answered(), written == 0 ? nullptr : model.front());
            if (written > 0) {
                model.pop_front();
                --written;
            }
            break;
        default:
            model.push_back(request());
            queue.push(model.back());
            break;
        }
        ASSERT_EQ(queue.size(), model.size());
        ASSERT_EQ(queue.empty(), model.empty());
        ASSERT_EQ(queue.unanswered(), written);
        ASSERT_EQ(queue.unwritten(), model.size() - written);
        ASSERT_EQ(queue.oldestSent(), written == 0 ? TimePoint::max() : model.front()->sentAt);
        for (std::size_t i = 0; i < model.size(); i += step % 50 == 0 ? 1 : 1 + model.size() / 4) {
            ASSERT_EQ(queue[i], model[i]);
            ASSERT_EQ(model[i].use_count(), 2);
        }
    }
}

} // namespace
} // namespace redislock::detail
