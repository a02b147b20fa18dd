// The count-down latch, on a real server.
#include "behaviour/counter_test.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gtest/gtest.h>

namespace redislock::test {
namespace {

class CountDownLatchTest : public CounterTest {
protected:
    std::string channel() { return "redisson_countdownlatch__channel__{" + name + "}"; }
    bool somebodyWaits()
    {
        return eventually([&] { return listenersTo(channel()) > 0; });
    }

    const std::string name = counterName();
    const CountDownLatch latch = client.getCountDownLatch(name);
    const CountDownLatch other = far.getCountDownLatch(name);
};

TEST_F(CountDownLatchTest, IsSetOnceUntilItIsOpen)
{
    EXPECT_EQ(latch.name(), name);
    EXPECT_EQ(latch.getCount(), 0);
    EXPECT_TRUE(latch.trySetCount(2));
    EXPECT_FALSE(other.trySetCount(5));
    EXPECT_EQ(other.getCount(), 2);
    EXPECT_EQ(other.countDown(), 1);
    EXPECT_EQ(latch.countDown(), 0);
    EXPECT_FALSE(raw.exists(name));
    EXPECT_TRUE(other.trySetCount(5));
}

TEST_F(CountDownLatchTest, CountedBelowZeroStaysOpen)
{
    EXPECT_EQ(latch.countDown(), 0);
    latch.wait();
    latch.trySetCount(1);
    latch.countDown();
    EXPECT_EQ(latch.countDown(), 0);
    EXPECT_EQ(latch.getCount(), 0);
    EXPECT_FALSE(raw.exists(name));
}

TEST_F(CountDownLatchTest, WithoutACountIsOpen)
{
    latch.wait();
    EXPECT_TRUE(latch.wait(0ms));
    EXPECT_TRUE(latch.wait(20s));
}

TEST_F(CountDownLatchTest, LetsAllWaitersOfAllClientsThroughAtZeroAndNotBefore)
{
    latch.trySetCount(3);
    std::vector<std::future<bool>> waiters;
    for (int i = 0; i < 6; ++i) {
        const CountDownLatch& own = i % 2 == 0 ? latch : other;
        waiters.push_back(inBackground([&own] { return own.wait(20s); }));
        waiters.push_back(own.asyncWait(20s, boost::asio::use_future));
    }
    EXPECT_TRUE(eventually([&] { return listenersTo(channel()) == 2; }));
    latch.countDown();
    other.countDown();
    for (auto& waiter : waiters) {
        EXPECT_FALSE(isDone(waiter, 5ms));
    }
    latch.countDown();
    for (auto& waiter : waiters) {
        EXPECT_TRUE(isDone(waiter)) << "it polls once a minute";
        EXPECT_TRUE(waiter.get());
    }
}

TEST_F(CountDownLatchTest, WaitEndsInTime)
{
    latch.trySetCount(1);
    EXPECT_FALSE(latch.wait(0ms));
    const Stopwatch watch;
    EXPECT_FALSE(latch.wait(200ms));
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 200ms + soon);
    EXPECT_FALSE(latch.asyncWait(400ms, boost::asio::use_future).get());
}

TEST_F(CountDownLatchTest, ThatIsDeletedLetsItsWaitersThrough)
{
    EXPECT_FALSE(latch.forceDelete());
    latch.trySetCount(1);
    auto waiter = inBackground([&] { return latch.wait(20s); });
    EXPECT_TRUE(somebodyWaits());
    EXPECT_TRUE(other.forceDelete());
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_F(CountDownLatchTest, OpenedByRedissonLetsItsWaitersThrough)
{
    raw.command({"SET", name, "1"}); // the effect of RCountDownLatch.trySetCount(1)
    auto waiter = inBackground([&] { return latch.wait(20s); });
    EXPECT_TRUE(somebodyWaits());
    raw.command({"DEL", name});
    raw.command({"PUBLISH", channel(), "0"});
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_F(CountDownLatchTest, WhoseMessageIsLostOpensAtTheNextPoll)
{
    auto settings = config();
    settings.pollInterval = 100ms;
    const Client polling(settings);
    latch.trySetCount(1);
    auto waiter = inBackground([&] { return polling.getCountDownLatch(name).wait(20s); });
    EXPECT_TRUE(somebodyWaits());
    raw.command({"DEL", name}); // and no message is published
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_F(CountDownLatchTest, NameWithBracesHasRedissonsChannel)
{
    const auto tagged = clean("{" + counterName() + "}:x");
    const auto braced = client.getCountDownLatch(tagged);
    braced.trySetCount(1);
    auto waiter = inBackground([&] { return braced.wait(20s); });
    EXPECT_TRUE(eventually([&] { return listenersTo("redisson_countdownlatch__channel__{" + tagged + "}") == 1; }));
    far.getCountDownLatch(tagged).countDown();
    EXPECT_TRUE(isDone(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_F(CountDownLatchTest, AsynchronousFunctionsDoTheSame)
{
    using boost::asio::use_future;
    EXPECT_TRUE(latch.asyncTrySetCount(2, use_future).get());
    auto waiter = latch.asyncWait(use_future);
    EXPECT_TRUE(somebodyWaits());
    EXPECT_EQ(other.asyncCountDown(use_future).get(), 1);
    EXPECT_EQ(latch.asyncGetCount(use_future).get(), 1);
    EXPECT_EQ(other.asyncCountDown(use_future).get(), 0);
    EXPECT_TRUE(isDone(waiter));
    waiter.get();
    EXPECT_FALSE(latch.asyncForceDelete(use_future).get());
}

TEST_F(CountDownLatchTest, WaitCanBeCancelledAndEndsWithItsClient)
{
    latch.trySetCount(1);
    boost::asio::cancellation_signal cancel;
    auto cancelled = latch.asyncWait(boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    auto ended = inBackground([&] {
        std::error_code ec;
        latch.wait(ec);
        return ec;
    });
    EXPECT_TRUE(somebodyWaits());
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW(cancelled.get(), boost::system::system_error);
    EXPECT_FALSE(isDone(ended, 20ms));
    client.shutdown();
    EXPECT_EQ(ended.get(), Errc::shutdown);
}

TEST_F(CountDownLatchTest, CountsThatCannotBeAreRefused)
{
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{2147483648}}) {
        std::error_code ec;
        EXPECT_FALSE(latch.trySetCount(bad, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
    }
    raw.command({"HSET", name, "field", "1"});
    std::error_code ec;
    latch.wait(ec);
    EXPECT_EQ(ec, Errc::wrongType);
    latch.countDown(ec);
    EXPECT_EQ(ec, Errc::wrongType);
}

} // namespace
} // namespace redislock::test
