// Red locks and multi locks of both languages while some of their servers are killed or frozen, and when they are back.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

/// Which servers go down: a minority. The first server, which has the counts, stays up.
struct Outage {
    static constexpr std::size_t none = 0;

    std::string_view name; ///< in the names of the tests
    std::size_t servers;
    std::size_t killed = none;
    std::size_t frozen = none;

    [[nodiscard]] std::size_t down() const { return (killed != none ? 1U : 0U) + (frozen != none ? 1U : 0U); }
};

constexpr Outage outages[] = {
    {.name = "OneOfThreeKilled", .servers = 3, .killed = 1},
    {.name = "OneOfThreeFrozen", .servers = 3, .frozen = 2},
    {.name = "OneOfFiveKilledAndOneFrozen", .servers = 5, .killed = 1, .frozen = 4},
};

struct OutageCase {
    Outage outage;
    Sides sides;

    friend std::ostream& operator<<(std::ostream& out, const OutageCase& what)
    {
        return out << what.outage.name << ", " << what.sides;
    }
};

std::vector<OutageCase> outageCases(std::size_t maxServers = 5)
{
    std::vector<OutageCase> cases;
    for (const auto& sides : allSides()) {
        for (const auto& outage : outages) {
            if (outage.servers <= maxServers) {
                cases.push_back({outage, sides});
            }
        }
    }
    return cases;
}

std::string outageCaseName(const ::testing::TestParamInfo<OutageCase>& info)
{
    return std::string(info.param.outage.name) + '_' + sidesName({info.param.sides, info.index});
}

/// Five servers and processes of their own, which give up a server that does not answer soon.
///
/// After each test all servers are back: each language must take the red lock on all of them and free it, and no key
/// may be left.
class ServerDown : public InteropTest, public ::testing::WithParamInterface<OutageCase> {
protected:
    void SetUp() override
    {
        for (const bool java : {false, true}) {
            for (const std::size_t which : {0U, 1U}) {
                process(java, which); // connects while all servers are up
            }
        }
    }

    void TearDown() override
    {
        EXPECT_TRUE(down_) << "no server was down";
        bringBack();
        for (const bool java : {false, true}) {
            auto lock = lockOf(java);
            EXPECT_TRUE(eventually([&] { return isTakenEverywhereAndFreed(lock); }, 30s)) << (java ? "Java" : "C++");
        }
        for (const auto& each : own()) {
            RawRedis redis(each);
            redis.command({"DEL", key, key + ":copy", key + ":language", key + ":turns", key + ":end"});
            const auto keys = [&] { return redis.command({"KEYS", "*"}); };
            EXPECT_TRUE(eventually([&] { return keys().elements.empty(); })) << keys();
        }
        InteropTest::TearDown();
    }

    static std::deque<testing::RedisServer>& own()
    {
        static std::deque<testing::RedisServer> servers(5);
        return servers;
    }
    /// A process of a language. @param which 0 or 1
    static Peer& process(bool java, std::size_t which = 0)
    {
        (void)own(); // outlives them
        static std::map<std::string, std::array<std::unique_ptr<Peer>, 2>> processes;
        const auto redisson = java ? GetParam().sides.redisson : "";
        auto& one = processes[redisson].at(which);
        if (!one) {
            PeerOptions options{
                .redisson = redisson, .urls = {}, .watchdog = renewedLease, .patience = renewedLease / 4};
            for (const auto& server : own()) {
                options.urls.push_back(server.url());
            }
            one = std::make_unique<Peer>(options);
        }
        return *one;
    }
    [[nodiscard]] PeerObject lockOf(bool java, std::size_t which = 0) const
    {
        return {process(java, which), "redLock", group()};
    }

    static const Outage& outage() { return GetParam().outage; }
    /// The lock of one name on each server.
    [[nodiscard]] std::string group() const
    {
        std::string members = name + "@0";
        for (std::size_t i = 1; i < outage().servers; ++i) {
            members += ',' + name + '@' + std::to_string(i);
        }
        return members;
    }

    void takeDown()
    {
        if (outage().killed != Outage::none) {
            own()[outage().killed].kill();
        }
        if (outage().frozen != Outage::none) {
            own()[outage().frozen].freeze(); // throws if it cannot
        }
        down_ = outage().killed == Outage::none || !own()[outage().killed].isRunning();
    }
    static void bringBack()
    {
        for (auto& server : own()) {
            server.thaw();
            if (!server.isRunning()) {
                server.restart();
            }
        }
    }
    /// On how many of the answering servers the lock is held.
    [[nodiscard]] std::size_t heldOn() const
    {
        std::size_t held = 0;
        for (std::size_t i = 0; i < outage().servers; ++i) {
            const bool silent = down_ && (i == outage().killed || i == outage().frozen) && i != Outage::none;
            held += !silent && RawRedis(own()[i]).exists(name) ? 1U : 0U;
        }
        return held;
    }
    bool isTakenEverywhereAndFreed(PeerObject& lock)
    {
        down_ = false;
        if (!(lock.run("tryLock", soon) == "ok")) {
            return false;
        }
        const bool everywhere = eventually([&] { return heldOn() == outage().servers; }, 500ms);
        return lock.run("unlock") == "ok" && everywhere;
    }
    /// Expects a lock that the other language holds to be refused. Ours gives each server a twentieth of its lease to
    /// answer.
    void expectKeptOut(PeerObject& other, bool otherIsJava, milliseconds wait) const
    {
        EXPECT_EQ(otherIsJava ? other.run("tryLock") : other.run("tryLock", 0ms, longLease), "false");
        EXPECT_EQ(other.run("tryLock", wait, longLease), "false");
        EXPECT_EQ(heldOn(), outage().servers - outage().down());
    }
    /// Starts a waiter, and expects it to come in when the holder ends its hold.
    void expectHandedOver(PeerObject& holder, PeerObject& waiter, bool waiterIsJava) const
    {
        RawRedis monitor(own().front());
        monitor.command({"MONITOR"});
        waiter.start("lock");
        awaitQuestion(monitor, name, waiterIsJava);
        const Stopwatch sinceUnlock;
        EXPECT_EQ(holder.run("unlock"), "ok");
        EXPECT_EQ(waiter.answer(), "ok");
        EXPECT_LT(sinceUnlock.elapsedMs(), soon);
    }

    /// Longer than elsewhere, since a renewal has to work without the servers that are down. And if Redisson gave up
    /// the answer to a lock, it renews that lock all the same, for ever: a quarter of this time must be enough on a
    /// busy machine.
    static constexpr milliseconds renewedLease{4000};
    const std::string name = "stock:42";
    const std::string key = "count";
    bool down_ = false;
};

INSTANTIATE_TEST_SUITE_P(Outages, ServerDown, ::testing::ValuesIn(outageCases()), outageCaseName);

TEST_P(ServerDown, ARedLockIsHeldByAMajorityKeepsOutTheOtherLanguageAndIsHandedOver)
{
    auto first = lockOf(GetParam().sides.javaFirst);
    auto second = lockOf(!GetParam().sides.javaFirst);
    ASSERT_EQ(first.run("lock"), "ok");
    ASSERT_TRUE(eventually([&] { return heldOn() == outage().servers; }));
    takeDown();
    const bool javaFirst = GetParam().sides.javaFirst;
    expectKeptOut(second, !javaFirst, renewedLease * 3 / 2);
    expectHandedOver(first, second, !javaFirst); // whose hold has never been on all servers
    expectKeptOut(first, javaFirst, 1s);
    expectHandedOver(second, first, javaFirst);
    EXPECT_EQ(first.run("unlock"), "ok");
}

TEST_P(ServerDown, ProcessesOfBothLanguagesCountExactly)
{
    takeDown();
    RawRedis redis(own().front());
    std::vector<PeerObject> at;
    for (const bool java : {GetParam().sides.javaFirst, !GetParam().sides.javaFirst}) {
        // Redisson asks one server after the other and waits for a frozen one: two processes would only hand the lock
        // to each other.
        const std::size_t processes = java && outage().frozen != Outage::none ? 1 : 2;
        for (std::size_t which = 0; which < processes; ++which) {
            at.push_back(lockOf(java, which));
            at.back().start("count", key);
        }
        ASSERT_TRUE(eventually([&] { return redis.exists(key); }));
    }
    const auto number = [&](const std::string& of) { return std::stol(redis.get(of).value_or("0")); };
    const auto turns = [&] { return number(key + ":turns"); };
    EXPECT_TRUE(eventually([&] { return turns() >= 3 && number(key) >= 100; }, 40s)) << turns() << " times";
    redis.command({"SET", key + ":end", "1"});
    long sum = 0;
    for (auto& one : at) {
        const auto answer = one.answer();
        EXPECT_EQ(answer.how, "ok") << answer;
        sum += answer.how == "ok" ? std::stol(answer.value) : 0;
    }
    EXPECT_EQ(redis.get(key), std::to_string(sum));
}

using MultiLockServerDown = ServerDown;

INSTANTIATE_TEST_SUITE_P(Outages, MultiLockServerDown, ::testing::ValuesIn(outageCases(3)), outageCaseName);

TEST_P(MultiLockServerDown, IsRefusedInTimeAndTakesNothing)
{
    takeDown();
    PeerObject lock(process(GetParam().sides.javaFirst), "multiLock", group());
    const Stopwatch watch;
    EXPECT_NE(lock.run("tryLock", 500ms, longLease).how, "ok");
    EXPECT_LT(watch.elapsedMs(), soon);
    EXPECT_TRUE(eventually([&] { return heldOn() == 0; })) << "far sooner than its lease";
}

} // namespace
} // namespace redislock::test
