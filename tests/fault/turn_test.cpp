// How a client shares a lock with others: which releases publish, and that nobody sleeps while the lock is free because
// a release was silent.
#include "fault/fault_test.hpp"

namespace redislock::test {
namespace {

class Turns : public FaultTest {
protected:
    Turns() { config.turn = 100ms; }

    void SetUp() override { listener.command({"SUBSCRIBE", detail::lockChannel(name)}); }

    /// For each release so far, in order, whether it named a channel.
    std::vector<bool> told() const
    {
        std::vector<bool> result;
        for (const auto& release : requestsFor(redisLockUnlock)) {
            result.push_back(!release.arguments.at(7).empty());
        }
        return result;
    }

    /// The requests of the client, in order.
    std::vector<std::string> asked() const
    {
        std::vector<std::string> result;
        for (const auto& request : proxy.requestLog()) {
            const auto& words = request.arguments;
            if (words.at(0) == "SUBSCRIBE") {
                result.emplace_back("subscribe");
            } else if (words.size() > 1 && words[1] == redisLockLock.sha1) {
                result.emplace_back("lock");
            } else if (words.size() > 1 && words[1] == redisLockUnlock.sha1) {
                result.emplace_back("unlock");
            }
        }
        return result;
    }

    /// The client has the lock for longer than a turn, and releases it; @p others other clients listen, and never ask.
    void endATurnBeside(std::size_t others)
    {
        while (silent_.size() + 1 < others) {
            silent_.emplace_back(server).command({"SUBSCRIBE", detail::lockChannel(name)});
        }
        const auto held = lock();
        ASSERT_TRUE(held.tryLock()); // so that the answer to its release says how many listen
        ASSERT_EQ(held.unlock(), Unlocked::released);
        ASSERT_TRUE(held.tryLock());
        std::this_thread::sleep_for(config.turn);
        ASSERT_EQ(held.unlock(), Unlocked::released);
        proxy.clearRequestLog();
        expectFault(true, "listeners that never ask");
    }

    /// Two threads wait behind a hold of the client. The first of them frees the lock as soon as it has it: within its
    /// turn, unless the machine is too busy just then. @param wait of the other. @param atEnd runs before that release
    std::future<Waited> letFollow(std::chrono::milliseconds wait, const std::function<void()>& atEnd = {})
    {
        config.connectTimeout = config.unreachableAfter = config.watchdogTimeout = 10s; // for a busy machine, too
        config.commandTimeout = 2s;
        forgetClient(); // and with it what it may still have to ask after another try
        proxy.clearRequestLog();
        lock().lock();
        std::atomic<pid_t> id{0};
        auto first = std::async(std::launch::async, [&, own = lock()] {
            id = ::gettid();
            own.lock(10s);
            if (atEnd) {
                atEnd();
            }
            return own.unlock();
        });
        EXPECT_TRUE(eventually([&] { return FrozenThread::sleeps(id); }));
        auto successor = waitInBackground(wait);
        EXPECT_TRUE(waiterSleeps());
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_EQ(first.get(), Unlocked::released);
        return successor;
    }
    /// Whether that release named no channel.
    [[nodiscard]] bool wasSilent() const { return !told().at(1); }

    /// So many tries to find the machine less busy.
    static constexpr int rounds = 50;

    RawRedis listener{server};

private:
    std::vector<RawRedis> silent_;
};

TEST_F(Turns, ReleaseThatHandsOnTellsNobodyAndTheLastTellsAll)
{
    for (int i = 0; i < rounds; ++i) {
        auto successor = letFollow(1min);
        const bool silent = wasSilent();
        expectGranted(successor.get());
        EXPECT_TRUE(told().back());
        if (silent) {
            return expectFault(true, "a silent release");
        }
    }
    expectFault(false, "a silent release");
}

TEST_F(Turns, SuccessorThatGetsNothingTellsThatTheLockIsFree)
{
    for (int i = 0; i < rounds; ++i) {
        listener.disconnect();
        listener.command({"SUBSCRIBE", detail::lockChannel(name)});
        RuleId lost{};
        auto successor = letFollow(1s, [&] { lost = proxy.add(request(redisLockLock, 0), Action::drop()); });
        const bool silent = wasSilent();
        for (const std::size_t release : {0U, 1U}) {
            EXPECT_TRUE(!told().at(release) || listener.receive(15s));
        }
        EXPECT_FALSE(successor.get().granted);
        EXPECT_TRUE(!silent || listener.receive(15s)) << "nobody was told";
        proxy.remove(lost);
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
        if (silent) {
            return expectFault(proxy.hits(lost) > 0, "the successor's requests were lost");
        }
    }
    expectFault(false, "a silent release");
}

TEST_F(Turns, SuccessorWhoseRequestIsCutOffAsksAgain)
{
    for (int i = 0; i < rounds; ++i) {
        RuleId cut{};
        auto successor = letFollow(1min, [&] { cut = proxy.add(request(redisLockLock), Action::cut(), 1); });
        const bool silent = wasSilent();
        expectGranted(successor.get());
        proxy.remove(cut);
        if (silent) {
            return expectFault(proxy.hits(cut) == 1, "the successor's request was cut off");
        }
    }
    expectFault(false, "a silent release");
}

TEST_F(Turns, ClientStandsAsideAfterATurnAndListensMeanwhile)
{
    const auto held = lock();
    endATurnBeside(10);
    held.lock();
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_THAT(asked(), ::testing::ElementsAre("subscribe", "lock", "unlock"));
}

TEST_F(Turns, HoldOfWhichARequestWasNotAnsweredIsNotPassedOn)
{
    for (int i = 0; i < 6; ++i) { // the first one goes to Redis anyway
        lock().lock();
        const auto cut = proxy.add(request(redisLockLock), Action::cutAfterForward(), 1);
        lock().lock();
        EXPECT_EQ(proxy.hits(cut), 1U);
        EXPECT_EQ(lock().unlock(), Unlocked::stillHeld);
        EXPECT_EQ(countInRedis(), "1");
        auto waiter = waitInBackground(10s, keepRenewing);
        std::this_thread::sleep_for(10ms);
        EXPECT_EQ(lock().unlock(), Unlocked::released) << "a copy of the request may still come";
        expectGranted(waiter.get());
        proxy.remove(cut);
    }
    expectFault(true, "the answer to a nested acquire was lost");
}

TEST_F(Turns, WaitThatWouldBeOverBeforeAsksAtOnce)
{
    const auto held = lock();
    endATurnBeside(32);
    EXPECT_TRUE(held.tryLock(50ms));
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_TRUE(held.tryLock());
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_THAT(asked(), ::testing::ElementsAre("lock", "unlock", "lock", "unlock"));
}

TEST_F(Turns, WaiterThatStandsAsideEndsWithItsClient)
{
    endATurnBeside(32);
    auto waiter = waitInBackground(60s);
    ASSERT_TRUE(proxy.awaitRequests(subscription));
    client().shutdown(1s);
    EXPECT_EQ(waiter.get().error, Errc::shutdown);
    EXPECT_THAT(asked(), ::testing::ElementsAre("subscribe"));
    forgetClient();
}

} // namespace
} // namespace redislock::test
