// Waiters of a fair lock whose connection, or script, is lost while they wait.
#include "fault/fault_test.hpp"

#include <algorithm>
#include <deque>

namespace redislock::test {
namespace {

using detail::scripts::fairLockLock;

class FairFault : public FaultTest {
protected:
    FairFault() : direct_(Config::fromUrl(server.url())) { redis.command({"SCRIPT", "LOAD", fairLockLock.text()}); }

    std::vector<std::string> queue()
    {
        std::vector<std::string> holders;
        for (const auto& each : redis.command({"LRANGE", "redisson_lock_queue:{" + name + "}", "0", "-1"}).elements) {
            holders.push_back(each.text());
        }
        return holders;
    }
    /// How many clients listen.
    std::size_t listening() { return redis.command({"PUBSUB", "CHANNELS"}).elements.size(); }
    /// How many waiters the server knows to have a client that listens to grants: their records have four parts.
    std::size_t heard()
    {
        const auto records = redis.command({"HVALS", "redislock_places:{" + name + "}"}).elements;
        return static_cast<std::size_t>(std::ranges::count_if(
            records, [](const Value& record) { return std::ranges::count(record.text(), ' ') == 4; }));
    }

    /// Starts the holder, three waiters behind the proxy, and waiters without the proxy: one before each of the three,
    /// and one after all.
    void startWaiters()
    {
        holder.lock(10min);
        for (int i = 0; i < 7; ++i) {
            const auto lock = (i % 2 == 0 ? direct_ : client()).getFairLock(name);
            waiters_.push_back(std::async(std::launch::async, [this, lock, i] {
                const LockGuard held(lock);
                const std::lock_guard guard(mutex_);
                served_.push_back(i);
            }));
            const auto count = static_cast<std::size_t>(i) + 1;
            ASSERT_TRUE(eventually([&] { return queue().size() == count && heard() == count; }));
        }
    }
    void expectServedInOrder()
    {
        EXPECT_EQ(holder.unlock(), Unlocked::released);
        for (auto& waiter : waiters_) {
            waiter.get();
        }
        EXPECT_THAT(served_, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
    }

private:
    const Client direct_;
    std::mutex mutex_;
    std::vector<int> served_;
    std::deque<std::future<void>> waiters_;

protected:
    const FairLock holder = direct_.getFairLock(name);
};

TEST_F(FairFault, WaiterWhoseConnectionsAreCutHasItsOldPlaceAfterwards)
{
    startWaiters();
    const auto before = queue();
    const auto connected = proxy.accepted();
    for (const auto how : {FaultProxy::Close::reset, FaultProxy::Close::orderly}) {
        proxy.refuse();
        proxy.closeAll(how);
        EXPECT_TRUE(eventually([&] { return listening() == 1U; })) << "those behind the proxy are cut off";
        proxy.accept();
        EXPECT_TRUE(eventually([&] { return listening() == 2U; })) << "they come back, and ask again";
        EXPECT_EQ(queue(), before);
    }
    expectFault(proxy.accepted() > connected, "connections cut");
    expectServedInOrder();
}

TEST_F(FairFault, WaiterWhoseRequestOrReplyIsLostHasItsOldPlaceAfterwards)
{
    config.pollInterval = 200ms; // all of them ask again
    startWaiters();
    const auto before = queue();
    for (const auto& action :
         {Action::cut(), Action::cutAfterForward(), Action::drop(), Action::swallow(), Action::duplicate()}) {
        const auto lost = inject(request(fairLockLock), action);
        EXPECT_TRUE(proxy.awaitHits(lost));
        EXPECT_TRUE(eventually([&] { return listening() == 2U; }));
        EXPECT_EQ(queue(), before);
    }
    expectServedInOrder();
}

TEST_F(FairFault, QueueOutlivesTheScripts)
{
    startWaiters();
    const auto before = queue();
    const auto errors = errorsSent("NOSCRIPT");
    redis.command({"SCRIPT", "FLUSH"});
    proxy.closeAll(); // the waiters ask again when they are connected again
    EXPECT_TRUE(eventually([&] { return errorsSent("NOSCRIPT") > errors && listening() == 2U; }));
    EXPECT_EQ(queue(), before);
    redis.command({"SCRIPT", "FLUSH"});
    expectServedInOrder();
    expectFault(errorsSent("NOSCRIPT") > errors + 1, "scripts forgotten");
}

} // namespace
} // namespace redislock::test
