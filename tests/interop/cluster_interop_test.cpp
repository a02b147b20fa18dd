// Both languages in one cluster: whoever waits is woken by the other's release, and they exclude each other.
#include "interop/interop_test.hpp"
#include "support/deployments.hpp"
#include "support/eventually.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::test {
namespace {

/// An object that one side has and the other waits for.
struct ClusterPassage {
    std::string_view name; ///< in the names of the tests
    std::string_view had;
    std::string_view wanted;
};

constexpr ClusterPassage clusterPassages[] = {
    {"Lock", "lock", "lock"},
    {"FairLock", "fairLock", "fairLock"},
    {"ReaderAfterWriter", "writeLock", "readLock"},
    {"WriterAfterReader", "readLock", "writeLock"},
};

class ClusterInterop : public ::testing::TestWithParam<Sides> {
protected:
    static const Cluster& cluster()
    {
        static const Cluster instance(3);
        return instance;
    }
    /// A process of a version, or of ours if that is empty, which listens as @p other does.
    static Peer& peer(const std::string& version, const std::string& other)
    {
        static std::map<std::string, std::unique_ptr<Peer>> peers;
        auto& one = peers[version + "/" + (version.empty() ? other : "")];
        if (one == nullptr) {
            // Redisson before 3.22 has no sharded channels
            const bool isOld = version.empty() && other.starts_with("3.");
            one = std::make_unique<Peer>(PeerOptions{.redisson = version,
                                                     .urls = {cluster().url() + (isOld ? "?notifications=both" : "")},
                                                     .watchdog = watchdogTimeout});
        }
        return *one;
    }
    static Peer& first() { return peer(GetParam().javaFirst ? GetParam().redisson : "", GetParam().redisson); }
    static Peer& second() { return peer(GetParam().javaFirst ? "" : GetParam().redisson, GetParam().redisson); }

    static std::string nameFor(std::string_view what)
    {
        return "cluster:" + std::string(what) + (GetParam().javaFirst ? ":java:" : ":cpp:") + GetParam().redisson;
    }
    /// Returns when somebody listens to a channel of that name.
    static void awaitWaiter(const std::string& name)
    {
        EXPECT_TRUE(eventually([&] {
            for (std::size_t i = 0; i < cluster().size(); ++i) {
                RawRedis node(cluster().node(i));
                for (const auto* which : {"CHANNELS", "SHARDCHANNELS"}) {
                    if (!node.command({"PUBSUB", which, "*" + name + "*"}).elements.empty()) {
                        return true;
                    }
                }
            }
            return false;
        })) << name;
        std::this_thread::sleep_for(300ms); // and it has asked once more
    }
};

INSTANTIATE_TEST_SUITE_P(Orders, ClusterInterop, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(ClusterInterop, WhoeverWaitsForTheOtherLanguageComesInSoonAfterIt)
{
    for (const auto& passage : clusterPassages) {
        SCOPED_TRACE(passage.name);
        const auto name = nameFor(passage.name);
        PeerObject holder(first(), passage.had, name);
        PeerObject waiter(second(), passage.wanted, name);
        ASSERT_EQ(holder.run("lock", longLease), "ok");
        waiter.start("lock", longLease);
        awaitWaiter(name);
        const Stopwatch sinceUnlock;
        ASSERT_EQ(holder.run("unlock"), "ok");
        EXPECT_EQ(waiter.answer(), "ok");
        EXPECT_LT(sinceUnlock.elapsedMs(), milliseconds(1000)) << "not by a poll, nor by the end of the lease";
        EXPECT_EQ(waiter.run("unlock"), "ok");
    }
}

TEST_P(ClusterInterop, PermitsAndLatchesWakeTheOtherLanguage)
{
    const auto name = nameFor("permits");
    PeerObject holder(first(), "semaphore", name);
    PeerObject waiter(second(), "semaphore", name);
    ASSERT_EQ(holder.run("trySetPermits", 1), "ok");
    ASSERT_EQ(holder.run("acquire", 1), "ok");
    waiter.start("acquire", 1);
    awaitWaiter(name);
    const Stopwatch sinceRelease;
    ASSERT_EQ(holder.run("release", 1), "ok");
    EXPECT_EQ(waiter.answer(), "ok");
    EXPECT_LT(sinceRelease.elapsedMs(), milliseconds(1000));

    const auto latch = nameFor("latch");
    PeerObject counter(first(), "countDownLatch", latch);
    PeerObject awaiting(second(), "countDownLatch", latch);
    ASSERT_EQ(counter.run("trySetCount", 1), "ok");
    awaiting.start("await");
    awaitWaiter(latch);
    const Stopwatch sinceCount;
    ASSERT_EQ(counter.run("countDown"), "ok");
    EXPECT_EQ(awaiting.answer(), "ok");
    EXPECT_LT(sinceCount.elapsedMs(), milliseconds(1000));
}

} // namespace
} // namespace redislock::test
