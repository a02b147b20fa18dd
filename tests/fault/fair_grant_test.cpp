// Waiters that are granted a fair lock by a release, and what may happen to the message of the grant.
#include "fault/fault_test.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

using detail::scripts::fairLockUnlock;

/// A holder that the test itself ends, and a waiter of a client.
class FairGrant : public FaultTest {
protected:
    FairGrant() { config.watchdogTimeout = 60s; }

    /// Starts a waiter that keeps the lock until the test ends its hold; waits until the server knows that its client
    /// listens.
    void startWaiter()
    {
        startDeafWaiter();
        ASSERT_TRUE(eventually([&] { return request() > 0; }));
    }
    /// The same, but does not wait.
    void startDeafWaiter()
    {
        redis.command({"HSET", name, holder, "1"});
        redis.command({"PEXPIRE", name, "600000"});
        waiter_ = std::async(std::launch::async, [this, lock = client().getFairLock(name)] {
            lock.lock();
            has_ = true;
            (void)eventually([&] { return letGo_ || !lock.isHeldByCurrentThread(); });
            return lock.unlock();
        });
    }
    /// The number of the request that keeps the waiter's place; 0: the client does not listen, or there is no place.
    int request()
    {
        const auto records = redis.command({"HVALS", "redislock_places:{" + name + "}"}).elements;
        const auto text = records.size() == 1 ? records[0].text() : std::string();
        return std::ranges::count(text, ' ') == 4 ? std::stoi(text.substr(text.rfind(' ') + 1)) : 0;
    }
    /// Releases the holder's lock, without the message: the holder's user may not publish.
    void endWithoutMessage()
    {
        waiting = redis.command({"LINDEX", "redisson_lock_queue:{" + name + "}", "0"}).text();
        redis.command({"ACL", "SETUSER", "mute", "reset", "on", ">pw", "~*", "+@all", "resetchannels"});
        RawRedis mute(server);
        ASSERT_EQ(mute.command({"AUTH", "mute", "pw"}).text(), "OK");
        const auto braced = ":{" + name + "}";
        const auto freed = mute.command({"EVAL", fairLockUnlock.text(), "4", name, "redisson_lock_queue" + braced,
                                         "redisson_lock_timeout" + braced, "redislock_places" + braced, holder, "0",
                                         "1", "redisson_lock__channel" + braced + ":"});
        ASSERT_EQ(freed.integer(), 1) << "nobody was told";
        expectFault(redis.command({"HEXISTS", name, waiting}).integer() == 1, "granted without a message");
    }
    /// Publishes that message. @param times 0: the message is lost
    void tell(int request, std::chrono::milliseconds lasts, int times = 1)
    {
        const auto colon = waiting.rfind(':');
        const auto message = waiting.substr(colon + 1) + ' ' + std::to_string(request) + ' ' +
                             std::to_string(lasts.count()) + ' ' + name;
        for (; times > 0; --times) {
            redis.command({"PUBLISH", "redisson_lock__channel:" + waiting.substr(0, colon), message});
        }
    }
    std::size_t requests()
    {
        const auto text = redis.command({"INFO", "commandstats"}).text();
        const auto at = text.find("cmdstat_evalsha:calls=");
        return at == std::string::npos ? 0 : std::stoul(text.substr(at + 22));
    }
    bool has() const { return has_; }
    Unlocked letGo()
    {
        letGo_ = true;
        return waiter_.get();
    }

    const std::string holder = "6f1c0f9e-8f1f-8f7e-9d5d-2f1f3b8a7c11:17"; ///< a holder of a client of ours
    std::string waiting;

private:
    std::atomic<bool> has_{false};
    std::atomic<bool> letGo_{false};
    std::future<Unlocked> waiter_;
};

TEST_F(FairGrant, IsMadeToNoWaiterWhoseClientDoesNotListenYet)
{
    config.pollInterval = 300ms;
    const auto lost = inject(subscription, Action::drop());
    startDeafWaiter();
    ASSERT_TRUE(proxy.awaitHits(lost));
    EXPECT_TRUE(eventually([&] { return redis.command({"HLEN", "redislock_places:{" + name + "}"}).integer() == 1; }));
    EXPECT_EQ(request(), 0) << "its first request says that it would hear of a grant";
    EXPECT_TRUE(eventually([&] { return request() > 0; })) << "it asks again when its client listens";
    redis.command({"DEL", name});
    EXPECT_EQ(letGo(), Unlocked::released);
}

TEST_F(FairGrant, WhoseMessageIsLostIsFoundByThePollToBeTheHolders)
{
    config.pollInterval = 300ms;
    startWaiter();
    endWithoutMessage();
    EXPECT_TRUE(eventually([&] { return has(); }));
    EXPECT_EQ(redis.command({"HGET", name, waiting}).text(), "1");
    EXPECT_GT(redis.pttl(name), 30s) << "for its whole lease";
    EXPECT_EQ(letGo(), Unlocked::released);
}

TEST_F(FairGrant, WhoseMessageComesTwiceOrOnceMoreAfterTheEndIsBelievedOnce)
{
    startWaiter();
    const auto last = request();
    endWithoutMessage();
    const auto before = requests();
    tell(last, 50s, 3);
    EXPECT_TRUE(eventually([&] { return has() && requests() == before + 1U; })) << "it does not ask, but renews";
    EXPECT_EQ(letGo(), Unlocked::released);
    tell(last, 50s);
    expectFreshLockWorks();
}

TEST_F(FairGrant, WhoseMessageIsOfAnEarlierRequestOrLeavesTooLittleIsAskedFor)
{
    startWaiter();
    waiting = redis.command({"LINDEX", "redisson_lock_queue:{" + name + "}", "0"}).text();
    for (const bool isEarlier : {true, false}) { // nothing was granted: neither message may be believed
        const auto last = request();
        tell(isEarlier ? last - 1 : last, isEarlier ? 50s : 1ms);
        EXPECT_TRUE(eventually([&] { return request() == last + 1; })) << "it asks, and keeps its place";
        EXPECT_FALSE(has());
    }
    endWithoutMessage();
    tell(1, 0ms); // a message that it may ask
    EXPECT_TRUE(eventually([&] { return has(); }));
    EXPECT_EQ(letGo(), Unlocked::released);
}

TEST_F(FairGrant, ToAWaiterThatIsCancelledMeanwhileIsGivenBackAtOnce)
{
    redis.command({"HSET", name, holder, "1"});
    redis.command({"PEXPIRE", name, "600000"});
    boost::asio::cancellation_signal cancel;
    const auto lock = client().getFairLock(name);
    auto cancelled = lock.asyncLock(boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
    ASSERT_TRUE(eventually([&] { return request() > 0; }));
    endWithoutMessage();
    cancel.emit(boost::asio::cancellation_type::terminal);
    EXPECT_THROW((void)cancelled.get(), boost::system::system_error);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
}

TEST_F(FairGrant, ToAWaiterThatIsCalledOffMeanwhileIsGivenBackAtOnce)
{
    redis.command({"HSET", name, holder, "1"});
    redis.command({"PEXPIRE", name, "600000"});
    std::stop_source stop;
    auto calledOff = std::async(
        std::launch::async, [lock = client().getFairLock(name), token = stop.get_token()] { return lock.lock(token); });
    ASSERT_TRUE(eventually([&] { return request() > 0; }));
    endWithoutMessage();
    stop.request_stop();
    EXPECT_FALSE(calledOff.get());
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
}

TEST_F(FairGrant, ToAClientThatEndsMeanwhileIsGivenBackAtOnce)
{
    startWaiter();
    endWithoutMessage();
    client().shutdown(5s);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
    EXPECT_THROW((void)letGo(), LockError);
    forgetClient();
}

TEST_F(FairGrant, WhoseMessageWasLostWithTheConnectionIsFoundWhenThatIsBack)
{
    startWaiter();
    proxy.refuse();
    proxy.closeAll();
    endWithoutMessage();
    EXPECT_FALSE(has());
    proxy.accept();
    EXPECT_TRUE(eventually([&] { return has(); })) << "it polls every 20 s";
    EXPECT_EQ(letGo(), Unlocked::released);
}

TEST_F(FairGrant, ThatTheServerForgotBeforeTheMessageIsLostAtOnce)
{
    startWaiter();
    const auto last = request();
    endWithoutMessage();
    redis.command({"DEL", name}); // as on a replica that takes over without the key
    tell(last, 50s);
    EXPECT_TRUE(eventually([&] { return has(); }));
    EXPECT_EQ(letGo(), Unlocked::alreadyLost) << "its renewal finds out";
}

} // namespace
} // namespace redislock::test
