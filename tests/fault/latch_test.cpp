// Latches: a request that is lost, late or doubled does not count twice, and no waiter is left behind.
#include "fault/counter_fault.hpp"

#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

using detail::scripts::countDownLatchCountDown;

using LatchFault = CounterFault;

TEST_F(LatchFault, CountDownCountsOnceWhateverIsLost)
{
    const auto latch = client().getCountDownLatch(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(3);
        inject(request(countDownLatchCountDown), loss);
        EXPECT_EQ(latch.countDown(), 2);
        EXPECT_EQ(value(), "2");
        inject(request(countDownLatchCountDown), loss);
        EXPECT_EQ(latch.asyncCountDown(boost::asio::use_future).get(), 1);
        EXPECT_EQ(value(), "1");
    }
}

TEST_F(LatchFault, CountDownWithoutAnAnswerGoesOnInTheBackgroundAndCountsOnce)
{
    config.unreachableAfter = 800ms;
    set(3);
    const auto lost = inject(reply(countDownLatchCountDown, 0), Action::swallow());
    std::error_code ec;
    client().getCountDownLatch(counter).countDown(ec);
    EXPECT_EQ(ec, Errc::unreachable);
    proxy.remove(lost);
    EXPECT_EQ(client().getCountDownLatch(counter).countDown(), 1);
    EXPECT_EQ(value(), "1");
}

TEST_F(LatchFault, WaitersGoThroughThoughTheirMessageIsLostOrTheirSubscriberGone)
{
    config.pollInterval = 300ms;
    const auto latch = client().getCountDownLatch(counter);
    for (const bool killed : {false, true}) {
        EXPECT_TRUE(nobodyListens(latchChannel)) << "to the latch before";
        set(1);
        auto waiter = std::async(std::launch::async, [&] { return latch.wait(15s); });
        auto asynchronous = latch.asyncWait(15s, boost::asio::use_future);
        EXPECT_TRUE(somebodyListens(latchChannel));
        if (killed) {
            expectFault(redis.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer() == 1, "subscriber killed");
        } else {
            inject({.command = "message", .direction = Direction::push, .nth = 0}, Action::drop());
        }
        EXPECT_EQ(latch.countDown(), 0);
        EXPECT_TRUE(waiter.get());
        EXPECT_TRUE(asynchronous.get());
    }
}

} // namespace
} // namespace redislock::test
