// What LockMonitor and explain() say of locks of both languages, against what is in Redis and what is known here.
#include "interop/interop_test.hpp"
#include "redislock/lock_monitor.hpp"
#include "support/eventually.hpp"
#include "support/this_host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class Looking : public SidesInterop {
protected:
    /// The version of Redisson of the language that comes first, or second: nothing for ours.
    static std::string language(bool first) { return first == GetParam().javaFirst ? GetParam().redisson : ""; }

    /// Whether that is said of somebody of that process, which runs: Redisson's connections have no names.
    static void expectThere(const LockHolder& holder, const Peer& peer, const std::string& redisson)
    {
        EXPECT_EQ(holder.clientId, peer.id());
        EXPECT_EQ(holder.process, redisson.empty() ? static_cast<std::uint64_t>(peer.pid()) : 0U);
        EXPECT_EQ(holder.host, redisson.empty() ? thisHost() : "");
    }
    /// Whether it agrees with the hash in Redis.
    void expectAsInRedis(const LockReport& report)
    {
        auto fields = raw.hash(report.name);
        fields.erase("mode");
        EXPECT_EQ(report.holders.size(), fields.size());
        for (const auto& holder : report.holders) {
            EXPECT_EQ(std::to_string(holder.count), fields[holder.name + (holder.writes ? ":write" : "")]);
        }
        ASSERT_TRUE(report.timeLeft);
        const auto later = raw.pttl(report.name);
        EXPECT_GE(*report.timeLeft, later);
        EXPECT_LE(*report.timeLeft, later + soon);
    }
    /// The names in the queue, from Redis.
    std::vector<std::string> queue()
    {
        std::vector<std::string> names;
        for (const auto& element : raw.command({"LRANGE", "redisson_lock_queue:{" + name_ + "}", "0", "-1"}).elements) {
            names.push_back(element.text());
        }
        return names;
    }
    static std::vector<std::string> namesOf(const std::vector<LockHolder>& holders)
    {
        std::vector<std::string> names;
        for (const auto& holder : holders) {
            names.push_back(holder.name);
        }
        return names;
    }

    Client client{config()};
    LockMonitor monitor{config()};
    std::string name_;
};

INSTANTIATE_TEST_SUITE_P(Orders, Looking, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(Looking, TellsTheHolderOfEachKindAsRedisHasIt)
{
    for (const auto& kind : lockKinds) {
        if (!has(GetParam().redisson, kind)) {
            continue;
        }
        const auto name = uniqueName();
        auto held = first(kind.java, name);
        ASSERT_EQ(held.run("lock", longLease), "ok") << kind.name;
        if (kind.reentrant) {
            ASSERT_EQ(held.run("lock", longLease), "ok") << kind.name;
        }
        const auto times = kind.reentrant ? 2U : 1U;
        const auto found = monitor.find(name);
        ASSERT_TRUE(found) << kind.name;
        expectAsInRedis(*found);
        ASSERT_EQ(found->holders.size(), 1U);
        expectThere(found->holders.front(), peer(language(true)), language(true));
        EXPECT_EQ(found->holders.front().count, times) << kind.name;
        const auto explained = kind.make(client, name).explain();
        ASSERT_TRUE(explained) << kind.name;
        expectAsInRedis(*explained);
        EXPECT_EQ(explained->kind, found->kind);
        EXPECT_EQ(namesOf(explained->holders), namesOf(found->holders));
        EXPECT_EQ(explained->waiters, 0U);
        for (auto i = times; i > 0; --i) {
            ASSERT_EQ(held.run("unlock"), "ok") << kind.name;
        }
        EXPECT_FALSE(monitor.find(name)) << kind.name;
    }
}

TEST_P(Looking, TellsReadersOfBothLanguagesAndAWriterThatReads)
{
    const auto name = uniqueName();
    auto one = first("readLock", name);
    auto other = second("readLock", name);
    ASSERT_EQ(one.run("lock", longLease), "ok");
    ASSERT_EQ(other.run("lock", longLease), "ok");
    const auto read = monitor.find(name);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, ObjectKind::readLock);
    expectAsInRedis(*read);
    for (const auto& holder : read->holders) {
        const bool isFirst = holder.clientId == peer(language(true)).id();
        expectThere(holder, peer(language(isFirst)), language(isFirst));
    }
    ASSERT_EQ(one.run("unlock"), "ok");
    ASSERT_EQ(other.run("unlock"), "ok");
    auto writer = first("writeLock", name);
    ASSERT_EQ(writer.run("lock", longLease), "ok");
    auto reader = writer.sibling("readLock");
    ASSERT_EQ(reader.run("lock", longLease), "ok");
    const auto written = monitor.find(name);
    ASSERT_TRUE(written);
    EXPECT_EQ(written->kind, ObjectKind::writeLock);
    expectAsInRedis(*written);
    ASSERT_EQ(written->holders.size(), 2U);
    EXPECT_NE(written->holders[0].writes, written->holders[1].writes);
    EXPECT_EQ(written->holders[0].clientId, written->holders[1].clientId);
    ASSERT_EQ(reader.run("unlock"), "ok");
    ASSERT_EQ(writer.run("unlock"), "ok");
}

TEST_P(Looking, TellsTheQueueAndOfWhomItsProcessIsThereFrozenOrDead)
{
    name_ = lastingName();
    Peer holding(peerOptions(language(true)));
    PeerObject held(holding, "fairLock", name_);
    ASSERT_EQ(held.run("lock", longLease), "ok");
    Peer waiting(peerOptions(language(false)));
    Peer alive(peerOptions(language(true)));
    PeerObject(waiting, "fairLock", name_).start("lock", longLease);
    ASSERT_TRUE(eventually([&] { return queue().size() == 1; }));
    PeerObject(alive, "fairLock", name_).start("lock", longLease);
    ASSERT_TRUE(eventually([&] { return queue().size() == 2; }));
    const auto expectAll = [&] {
        const auto report = monitor.find(name_);
        ASSERT_TRUE(report);
        EXPECT_EQ(report->kind, ObjectKind::fairLock);
        expectAsInRedis(*report);
        EXPECT_EQ(report->waiters, 2U);
        EXPECT_EQ(namesOf(report->queue), queue());
        expectThere(report->holders.front(), holding, language(true));
        expectThere(report->queue.at(0), waiting, language(false));
        expectThere(report->queue.at(1), alive, language(true));
    };
    expectAll();
    EXPECT_EQ(client.getFairLock(name_).explain()->waiters, 2U);
    holding.freeze();
    waiting.freeze();
    expectAll();
    holding.kill();
    waiting.kill();
    // The server learns of their ends one by one.
    EXPECT_TRUE(eventually([&] {
        const auto report = monitor.find(name_);
        return report && report->holders.front().process == 0 && report->queue.front().process == 0;
    }));
    const auto report = monitor.find(name_);
    ASSERT_TRUE(report);
    expectAsInRedis(*report);
    EXPECT_EQ(report->holders.front().clientId, holding.id());
    EXPECT_EQ(report->holders.front().host, "");
    EXPECT_EQ(namesOf(report->queue), queue());
    EXPECT_EQ(report->queue.front().clientId, waiting.id());
    expectThere(report->queue.at(1), alive, language(true));
}

} // namespace
} // namespace redislock::test
