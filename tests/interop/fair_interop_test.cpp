// Fair queues in which waiters of both languages stand.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class FairQueues : public SidesInterop {
protected:
    /// Starts to wait, and returns when it stands in the queue. @return it
    template <class... Arguments>
    PeerObject queue(Peer& peer, std::string_view operation, const Arguments&... arguments)
    {
        const auto before = queued();
        PeerObject waiter(peer, "fairLock", name_);
        waiter.start(operation, arguments...);
        EXPECT_TRUE(eventually([&] { return queued() == before + 1; })) << queued();
        return waiter;
    }
    std::int64_t queued() { return raw.command({"LLEN", "redisson_lock_queue:{" + name_ + "}"}).integer(); }

    /// A process that keeps its places for so long.
    static PeerOptions withPlace(const std::string& redisson, milliseconds place)
    {
        auto options = peerOptions(redisson);
        options.place = place;
        return options;
    }
    /// The version of Redisson of the language that comes first, or second: nothing for ours.
    static std::string language(bool first) { return first == GetParam().javaFirst ? GetParam().redisson : ""; }

    const std::string name_ = uniqueName();
};

INSTANTIATE_TEST_SUITE_P(Orders, FairQueues, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(FairQueues, TwelveWaitersInTurnAreServedInTheOrderOfAskingButForThoseWhoGaveUp)
{
    // As by default; while Java takes 5 min from all places whenever one of its own is let in.
    Peer ours(withPlace("", 5s));
    const auto side = [&](std::size_t i) -> Peer& {
        const auto redisson = language(i % 2 == 0);
        return redisson.empty() ? ours : peer(redisson, i / 2 % 2);
    };
    PeerObject holder(ours, "fairLock", name_);
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    for (std::size_t i = 0; i < 4; ++i) {
        (void)PeerObject(side(i), "fairLock", name_).run("isLocked"); // what comes first in a process is slow
    }
    std::deque<PeerObject> waiters;
    std::deque<PeerObject> impatients;
    for (std::size_t i = 0; i < 12; ++i) {
        if (i == 0 || i == 5 || i == 6) { // the first of all, and one behind each language
            impatients.push_back(queue(side(i + 1), "tryLock", 1500ms, longLease));
        }
        waiters.push_back(queue(side(i), "lock", longLease));
    }
    for (auto& impatient : impatients) {
        EXPECT_EQ(impatient.answer(), "false");
    }
    EXPECT_TRUE(eventually([&] { return queued() == 12; })) << queued();
    ASSERT_EQ(holder.run("unlock"), "ok");
    std::int64_t left = 12;
    for (auto& waiter : waiters) {
        // It would not be answered if another had come before: none unlocks before it was heard.
        ASSERT_EQ(waiter.answer(), "ok") << left;
        EXPECT_EQ(queued(), --left);
        ASSERT_EQ(waiter.run("unlock"), "ok");
    }
}

TEST_P(FairQueues, WaitersThatWereKilledCostSecondsAndNobodyItsPlace)
{
    constexpr auto place = 2s;
    const auto start = [&](bool isFirst) { return withPlace(language(isFirst), place); };
    Peer mortals[] = {Peer(start(true)), Peer(start(false))};
    Peer living[] = {Peer(start(true)), Peer(start(false))};
    Peer last(withPlace("", place)); // somebody of ours has to ask: who waits in Java may sleep for a lease of others
    PeerObject holder(last, "fairLock", name_);
    ASSERT_EQ(holder.run("lock"), "ok");
    std::deque<PeerObject> dead;
    std::deque<PeerObject> waiters;
    for (const std::size_t i : {0U, 1U}) {
        dead.push_back(queue(mortals[i], "lock", longLease));
        waiters.push_back(queue(living[1 - i], "lock", longLease));
    }
    waiters.push_back(queue(last, "lock", longLease));
    for (auto& mortal : mortals) {
        mortal.kill();
    }
    ASSERT_EQ(holder.run("unlock"), "ok");
    const Stopwatch sinceUnlock;
    for (auto& waiter : waiters) {
        ASSERT_EQ(waiter.answer(), "ok") << queued();
        ASSERT_EQ(waiter.run("unlock"), "ok");
    }
    constexpr auto forTheirClocks = 30s; // that a place of ours lasts longer, and so Redisson's behind it
    EXPECT_LT(sinceUnlock.elapsedMs(), 5 * place + forTheirClocks + soon)
        << "a place for each that stood there, at most";
}

} // namespace
} // namespace redislock::test
