// Fair queues with waiters of both languages.
#include "interop/interop_test.hpp"
#include "interop/queue_watch.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class FairQueues : public SidesInterop {
protected:
    /// Starts a waiter. @return the waiter, when it stands in the queue
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

    /// A process that keeps its places for @p place.
    static PeerOptions withPlace(const std::string& redisson, milliseconds place)
    {
        auto options = peerOptions(redisson);
        options.place = place;
        return options;
    }
    /// The version of Redisson of the language that comes first, or second; empty for our language.
    static std::string language(bool first) { return first == GetParam().javaFirst ? GetParam().redisson : ""; }

    const std::string name_ = uniqueName();
};

INSTANTIATE_TEST_SUITE_P(Orders, FairQueues, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(FairQueues, TwelveWaitersInTurnAreServedInTheOrderOfAskingButForThoseWhoGaveUp)
{
    // Our default place; Java subtracts 5 min from all times whenever one of its own waiters is let in.
    Peer ours(withPlace("", 5s));
    const auto side = [&](std::size_t i) -> Peer& {
        const auto redisson = language(i % 2 == 0);
        return redisson.empty() ? ours : peer(redisson, i / 2 % 2);
    };
    PeerObject holder(ours, "fairLock", name_);
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    for (std::size_t i = 0; i < 4; ++i) {
        (void)PeerObject(side(i), "fairLock", name_).run("isLocked"); // the first call of a process is slow
    }
    std::deque<PeerObject> waiters;
    std::deque<PeerObject> impatients;
    for (std::size_t i = 0; i < 12; ++i) {
        if (i == 0 || i == 5 || i == 6) { // the first of all, and one after each language
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
        // If another waiter had come in before, there would be no answer: none unlocks before its answer was read.
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
    Peer last(withPlace("", place)); // a waiter of ours has to ask: Java's may sleep for another's lease
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
    constexpr auto forTheirClocks = 30s; // a place of ours lasts longer by this, and so does Redisson's behind it
    EXPECT_LT(sinceUnlock.elapsedMs(), 5 * place + forTheirClocks + soon)
        << "a place for each that stood there, at most";
}

TEST_P(FairQueues, DeadWaiterOfRedissonsBehindOursCostsWhatItWasToWaitAndFiveSeconds)
{
    constexpr auto wait = 3s;
    const auto& java = GetParam().redisson;
    Peer ours(withPlace("", 5s));
    Peer mortal(withPlace(java, 60s));
    PeerObject holder(ours, "fairLock", name_);
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    (void)PeerObject(mortal, "fairLock", name_).run("isLocked"); // the first call of a process is slow
    std::deque<PeerObject> waiters;
    waiters.push_back(queue(GetParam().javaFirst ? peer(java) : ours, "tryLock", 60s, longLease));
    waiters.push_back(queue(ours, "lock", longLease));
    const PeerObject dead = queue(mortal, "tryLock", wait, longLease);
    waiters.push_back(queue(ours, "lock", longLease));
    mortal.kill();
    ASSERT_EQ(holder.run("unlock"), "ok");
    std::optional<Stopwatch> sinceFree; // and the dead one is the first
    for (auto& waiter : waiters) {
        ASSERT_EQ(waiter.answer(), "ok") << queued();
        if (&waiter == &waiters.back()) {
            EXPECT_LT(sinceFree->elapsed(), wait + 5s);
        }
        ASSERT_EQ(waiter.run("unlock"), "ok");
        sinceFree.emplace();
    }
}

// --- Robust queues ------------------------------------------------------------------------------------------------

TEST_P(FairQueues, HoldThatLastsForLongerThanTheirPlacesCostsNobodyItsPlace)
{
    constexpr auto place = 1s; // of ours
    const auto& java = GetParam().redisson;
    Peer ours(withPlace("", place));
    PeerObject holder(GetParam().javaFirst ? peer(java, 1) : ours, "fairLock", name_);
    ASSERT_EQ(holder.run("lock"), "ok"); // for a second, and then renewed
    std::deque<PeerObject> waiters;
    for (int i = 0; i < 3; ++i) {
        waiters.push_back(queue(peer(java), "lock", longLease)); // its grant moves all times by 5 min
        waiters.push_back(queue(ours, "lock", longLease));
    }
    const auto isKeptUntil = [&] { // that of the first of ours, by the server's clock
        const auto first = raw.command({"LINDEX", "redisson_lock_queue:{" + name_ + "}", "1"}).text();
        return std::stol(raw.hash("redislock_places:{" + name_ + "}")[first]);
    };
    const auto atFirst = isKeptUntil();
    const auto lockTime = watchdogTimeout;
    EXPECT_TRUE(eventually([&] { return isKeptUntil() > atFirst + (2 * (lockTime + place)) / 1ms; }));
    EXPECT_EQ(queued(), 6);
    ASSERT_EQ(holder.run("unlock"), "ok");
    for (auto& waiter : waiters) {
        ASSERT_EQ(waiter.answer(), "ok") << "of " << queued() << " that are left";
        ASSERT_EQ(waiter.run("unlock"), "ok");
    }
}

TEST_P(FairQueues, ClocksOfJavaThatAreOffByTwentySecondsCostNobodyItsPlace)
{
    auto options = withPlace(GetParam().redisson, 60s);
    options.clockAhead = GetParam().javaFirst ? 20s : -20s;
    Peer ours(withPlace("", 2s));
    Peer java(options);
    PeerObject holder(java, "fairLock", name_);
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    std::deque<PeerObject> waiters;
    for (int i = 0; i < 3; ++i) {
        waiters.push_back(queue(ours, "lock", longLease));
        waiters.push_back(queue(java, "lock", longLease));
    }
    ASSERT_EQ(holder.run("unlock"), "ok"); // this removes places that are over by Java's clock
    for (auto& waiter : waiters) {
        ASSERT_EQ(waiter.answer(), "ok") << "of " << queued() << " that are left";
        ASSERT_EQ(waiter.run("unlock"), "ok");
    }
}

// --- Under load
// --------------------------------------------------------------------------------------------------------

/// Processes whose threads come and go in one fair lock.
class BusyFairQueues : public FairQueues {
protected:
    struct Seen {
        std::size_t turns = 0;
        milliseconds longestWait{0};
    };

    void start(const std::string& redisson, milliseconds place, int threads)
    {
        auto& one = processes_.emplace_back();
        one.peer = std::make_unique<Peer>(withPlace(redisson, place));
        for (int i = 0; i < threads; ++i) {
            one.peer->send(one.peer->newThread(), "fairLock load " + name_ + " keep 1 6");
        }
    }
    /// Reads the answers of the processes, and looks at the queue.
    void look()
    {
        for (auto& one : processes_) {
            for (const auto& [thread, line] : one.peer->told()) {
                if (line.how == "client") {
                    live_.insert(line.value);
                    one.id = line.value;
                } else if (line.how == "in") {
                    const auto waited = std::chrono::microseconds(std::stol(line.value));
                    auto& seen = one.seen;
                    ++seen.turns;
                    seen.longestWait = std::max(seen.longestWait, std::chrono::ceil<milliseconds>(waited));
                } else if (line.how != "out" && line.how != "ok") {
                    ADD_FAILURE() << thread << ' ' << line;
                }
            }
        }
        queue_.look(raw, name_, [this](const std::string& id) { return live_.contains(id); });
    }
    /// Looks until every live process has come in @p times more times. @return whether they all did
    [[nodiscard]] bool comeIn(std::size_t times, std::chrono::nanoseconds limit)
    {
        std::vector<std::size_t> before;
        for (const auto& one : processes_) {
            before.push_back(one.seen.turns);
        }
        return eventually(
            [&] {
                look();
                std::size_t i = 0;
                return std::ranges::all_of(processes_, [&](const Process& one) {
                    return one.seen.turns >= before[i++] + times || !live_.contains(one.id);
                });
            },
            limit);
    }
    void kill(std::size_t which)
    {
        look();
        live_.erase(processes_[which].id);
        processes_[which].peer->kill();
    }
    /// Ends the live processes.
    void end()
    {
        for (auto& one : processes_) {
            if (live_.contains(one.id)) {
                one.peer->send("end", "end load all at_once");
            }
        }
        EXPECT_TRUE(eventually([&] {
            look();
            return queued() == 0;
        })) << queued();
    }
    const Seen& seen(std::size_t which) const { return processes_[which].seen; }

    QueueWatch queue_;

private:
    struct Process {
        std::unique_ptr<Peer> peer;
        std::string id;
        Seen seen;
    };

    std::deque<Process> processes_;
    std::set<std::string> live_; // their clients
};

INSTANTIATE_TEST_SUITE_P(Orders, BusyFairQueues, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(BusyFairQueues, GoOnAfterProcessesAreKilledAndNoTimeRunsAway)
{
    constexpr auto place = 2s;
    constexpr int threads = 3;
    constexpr auto clocks = 30s;
    constexpr auto mostAhead = watchdogTimeout + place + clocks + place * (2 * threads + 1);
    start("", place, threads);
    start(GetParam().redisson, place, threads);
    start(language(true), place, threads);
    start(language(false), place, threads);
    ASSERT_TRUE(comeIn(100, 60s));
    kill(0);
    EXPECT_TRUE(comeIn(1, watchdogTimeout + place + soon)) << "doc/keys.md: a lease, and five polls for all that died";
    EXPECT_TRUE(comeIn(100, 60s));
    if (GetParam().javaFirst) { // takes half a minute
        kill(1);
        EXPECT_TRUE(comeIn(1, mostAhead + soon)) << "for as long as Redisson gave them";
        EXPECT_TRUE(comeIn(100, 60s));
    }
    end();
    constexpr auto unknown = 300s; // the allowance of Redisson's first waiter, unseen before
    EXPECT_LT(queue_.furthest(), mostAhead + unknown);
    EXPECT_TRUE(queue_.passed().empty()) << queue_.passed().front();
}

TEST_P(BusyFairQueues, OneOfOursAmongTwelveOfJavaWaitsForAFewTurns)
{
    if (GetParam().javaFirst) {
        start(GetParam().redisson, 300s, 12);
        start("", 5s, 1);
    } else {
        start("", 5s, 1);
        start(GetParam().redisson, 300s, 12);
    }
    ASSERT_TRUE(comeIn(60, 60s));
    end();
    EXPECT_LT(seen(GetParam().javaFirst ? 1 : 0).longestWait, 2 * soon);
    EXPECT_TRUE(queue_.passed().empty()) << queue_.passed().front();
}

} // namespace
} // namespace redislock::test
