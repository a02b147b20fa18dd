// Multi locks and red locks of both languages, and locks of single members. Waits for groups are in
// waking_interop_test.cpp, counts in contention_interop_test.cpp.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <string>
#include <string_view>

namespace redislock::test {
namespace {

class Groups : public SidesInterop {
protected:
    /// Whether a lock is free in Redis.
    bool isFree(const std::string& name, std::size_t which = 0) { return !RawRedis(server(which)).exists(name); }
};

INSTANTIATE_TEST_SUITE_P(Orders, Groups, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(Groups, AMultiLockKeepsOutWhoWantsAnyOfItsMembers)
{
    const auto name = uniqueName();
    auto holder = first("multiLock", filledIn("{}:a,{}:b,{}:c", name));
    auto member = second("lock", name + ":b");
    auto same = second("multiLock", filledIn("{}:c,{}:a,{}:b", name));
    auto overlapping = second("multiLock", filledIn("{}:d,{}:c", name));
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    EXPECT_EQ(member.run("tryLock"), "false");
    EXPECT_EQ(same.run("tryLock"), "false");
    EXPECT_EQ(overlapping.run("tryLock"), "false");
    EXPECT_EQ(overlapping.run("tryLock", 100ms, longLease), "false");
    EXPECT_TRUE(eventually([&] { return isFree(name + ":d"); })) << "who did not get all keeps none";
    for (const auto* held : {":a", ":b", ":c"}) {
        EXPECT_FALSE(isFree(name + held)) << held;
    }
    ASSERT_EQ(holder.run("unlock"), "ok");
    for (const auto* freed : {":a", ":b", ":c"}) {
        EXPECT_TRUE(isFree(name + freed)) << freed;
    }
    EXPECT_EQ(same.run("tryLock"), "ok");
    EXPECT_EQ(same.run("unlock"), "ok");
}

TEST_P(Groups, AMemberThatIsHeldKeepsOutTheMultiLockWhichLeavesTheOthersAlone)
{
    const auto name = uniqueName();
    auto member = first("lock", name + ":b");
    auto group = second("multiLock", filledIn("{}:a,{}:b,{}:c", name));
    ASSERT_EQ(member.run("lock", longLease), "ok");
    EXPECT_EQ(group.run("tryLock"), "false");
    EXPECT_EQ(group.run("tryLock", 200ms, longLease), "false");
    EXPECT_TRUE(eventually([&] { return isFree(name + ":a") && isFree(name + ":c"); }));
    EXPECT_EQ(member.run("isHeld"), "ok");
    EXPECT_EQ(member.run("unlock"), "ok");
    EXPECT_EQ(group.run("tryLock"), "ok");
    EXPECT_EQ(member.run("tryLock"), "false");
    EXPECT_EQ(group.run("unlock"), "ok");
}

TEST_P(Groups, AMultiLockWhoseLeaseIsOverIsTheOthers)
{
    const auto name = uniqueName();
    auto holder = first("multiLock", filledIn("{}:a,{}:b", name));
    auto waiter = second("multiLock", filledIn("{}:b,{}:a", name));
    const Stopwatch sinceLock;
    ASSERT_EQ(holder.run("tryLock", soon, 500ms), "ok");
    ASSERT_EQ(waiter.run("tryLock", soon, longLease), "ok");
    EXPECT_GE(sinceLock.elapsedMs(), 499ms); // Redis rounds
    EXPECT_EQ(holder.run("unlock").how, "error");
    EXPECT_FALSE(isFree(name + ":a") || isFree(name + ":b"));
    EXPECT_EQ(waiter.run("unlock"), "ok");
}

TEST_P(Groups, AWatchdogKeepsAMultiLockAndTheLockOfAProcessThatDiedIsTheOthers)
{
    const auto name = uniqueName();
    Peer mortal(peerOptions(GetParam().javaFirst ? GetParam().redisson : ""));
    PeerObject holder(mortal, "multiLock", filledIn("{}:a,{}:b", name));
    auto waiter = second("multiLock", filledIn("{}:b,{}:a", name));
    ASSERT_EQ(holder.run("lock"), "ok");
    EXPECT_EQ(waiter.run("tryLock", watchdogTimeout * 5 / 2), "false");
    mortal.kill();
    EXPECT_EQ(waiter.run("tryLock", watchdogTimeout + soon), "ok");
    EXPECT_EQ(waiter.run("unlock"), "ok");
}

TEST_P(Groups, ARedLockIsHeldByAMajorityOfTheServers)
{
    const auto name = uniqueName();
    const auto group = filledIn("{}@0,{}@1,{}@2", name);
    auto here = first("redLock", group);
    auto there = second("redLock", group);
    auto middle = second("multiLock", name + "@1"); // a plain lock on that server
    auto last = second("multiLock", name + "@2");
    ASSERT_EQ(here.run("tryLock", 1s, longLease), "ok");
    EXPECT_EQ(there.run("tryLock"), "false");
    EXPECT_EQ(middle.run("tryLock"), "false");
    EXPECT_EQ(here.run("unlock"), "ok");
    EXPECT_TRUE(eventually([&] { return isFree(name, 0) && isFree(name, 1) && isFree(name, 2); }));

    ASSERT_EQ(middle.run("tryLock"), "ok");
    EXPECT_EQ(here.run("tryLock", 1s, longLease), "ok") << "two of three";
    EXPECT_EQ(there.run("tryLock"), "false") << "none of three";
    EXPECT_EQ(here.run("unlock"), "ok");
    EXPECT_FALSE(isFree(name, 1)) << "it is somebody else's";

    ASSERT_EQ(last.run("tryLock"), "ok");
    EXPECT_EQ(here.run("tryLock", 500ms, longLease), "false") << "one of three";
    EXPECT_TRUE(eventually([&] { return isFree(name, 0); })) << "who did not get enough keeps none";
    EXPECT_EQ(middle.run("unlock"), "ok");
    EXPECT_EQ(last.run("unlock"), "ok");
}

} // namespace
} // namespace redislock::test
