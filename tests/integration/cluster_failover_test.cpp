// Fail-overs of one node of a cluster, while locks are held and wanted at it and at others.
#include "behaviour/recording_observer.hpp"
#include "integration/cluster_test.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace redislock::test {
namespace {

using ::testing::IsEmpty;

TEST_F(InCluster, AHeldLockIsKeptAndWaitersServedWhenAReplicaTakesOver)
{
    const auto tag = tagAt(masterOf("some"));
    const auto former = masterOf(tag);
    const auto observer = std::make_shared<RecordingObserver>();
    Config own = config();
    own.observer = observer;
    const Client client(own);
    const Client other(config());
    const auto held = client.getLock("{" + tag + "}held");
    held.lock();
    const auto wanted = other.getLock("{" + tag + "}held");
    std::promise<void> got;
    std::jthread waiter([&](std::stop_token end) {
        if (wanted.lock(std::move(end))) {
            got.set_value();
            wanted.unlock();
        }
    });
    const Turns turns(config(), tag);
    std::this_thread::sleep_for(300ms);
    RawRedis(cluster().node(cluster().replicaOf(former))).command({"CLUSTER", "FAILOVER"});
    EXPECT_TRUE(eventually([&] { return masterOf(tag) != former; }));
    std::this_thread::sleep_for(500ms);
    EXPECT_TRUE(held.isHeldByCurrentThread());
    const auto soFar = turns.count();
    EXPECT_TRUE(eventually([&] { return turns.count() > soFar + 10; }));
    EXPECT_THAT(turns.errors(), IsEmpty());
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(got.get_future().wait_for(aMoment), std::future_status::ready);
}

class ADeadMaster : public InCluster, public ::testing::WithParamInterface<const char*> {};

TEST_P(ADeadMaster, IsReplacedWithoutAnErrorAndDisturbsNoOtherNode)
{
    for (std::size_t i = 0; i < cluster().size(); ++i) {
        RawRedis(cluster().node(i)).command({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
    }
    const auto tag = tagAt(masterOf("some"));
    const auto dead = masterOf(tag);
    const auto others = tagAt(otherThan(tag));
    const Client client(patient());
    const auto held = client.getLock("{" + tag + "}held");
    held.lock();
    const Turns here(config(), tag);
    const Turns there(config(), others);
    std::this_thread::sleep_for(1500ms); // the replica has the held lock
    GetParam() == std::string_view("killed") ? cluster().node(dead).kill() : cluster().node(dead).freeze();
    ASSERT_TRUE(eventually([&] { return masterOf(tag) != dead; }));
    const auto before = here.count();
    EXPECT_TRUE(eventually([&] { return here.count() > before + 10; }, aMoment));
    EXPECT_THAT(here.errors(), IsEmpty());
    EXPECT_THAT(there.errors(), IsEmpty());
    EXPECT_LT(there.gap(), 1000ms) << "of the healthy nodes";
    EXPECT_TRUE(held.isHeldByCurrentThread());
    std::this_thread::sleep_for(1s); // a renewal, at the new master
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

INSTANTIATE_TEST_SUITE_P(Ways, ADeadMaster, ::testing::Values("killed", "stopped"),
                         [](const auto& way) { return std::string(way.param); });

TEST_F(InCluster, WhereFullCoverageIsRequiredTheOutageIsSatOut)
{
    for (std::size_t i = 0; i < cluster().size(); ++i) {
        RawRedis(cluster().node(i)).command({"CONFIG", "SET", "cluster-require-full-coverage", "yes"});
    }
    const auto tag = tagAt(masterOf("some"));
    const auto others = tagAt(otherThan(tag));
    const Client client(patient());
    const auto held = client.getLock("{" + others + "}held");
    held.lock();
    const Turns there(config(), others);
    std::this_thread::sleep_for(1s);
    const auto dead = masterOf(tag);
    cluster().node(dead).kill();
    ASSERT_TRUE(eventually([&] { return masterOf(tag) != dead; }));
    const auto before = there.count();
    EXPECT_TRUE(eventually([&] { return there.count() > before + 10; }));
    EXPECT_THAT(there.errors(), IsEmpty());
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
