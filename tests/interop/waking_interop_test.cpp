// A waiter for an object that a process of the other language holds is woken when it is free, long before the lease is
// over. For the kinds of lock that let in one thread at a time see lock_interop_test.cpp.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

/// An object that one thread has and another waits for. In the names of objects {} stands for the name of the test's
/// object.
struct Passage {
    std::string_view name; ///< in the names of the tests
    std::string_view hadAs;
    std::string_view had;
    std::string_view wantedAs;
    std::string_view wanted;
    bool isGroup = false; ///< our waiter listens at one of several members, perhaps on another server
};

constexpr Passage passages[] = {
    {.name = "ReaderAfterWriter", .hadAs = "writeLock", .had = "{}", .wantedAs = "readLock", .wanted = "{}"},
    {.name = "WriterAfterReader", .hadAs = "readLock", .had = "{}", .wantedAs = "writeLock", .wanted = "{}"},
    {.name = "MultiLock",
     .hadAs = "multiLock",
     .had = "{}:a,{}:b,{}:c",
     .wantedAs = "multiLock",
     .wanted = "{}:c,{}:b,{}:a",
     .isGroup = true},
    {.name = "MultiLockAfterItsMember",
     .hadAs = "lock",
     .had = "{}:b",
     .wantedAs = "multiLock",
     .wanted = "{}:a,{}:b,{}:c",
     .isGroup = true},
    {.name = "MemberAfterItsMultiLock",
     .hadAs = "multiLock",
     .had = "{}:a,{}:b,{}:c",
     .wantedAs = "lock",
     .wanted = "{}:b"},
    {.name = "RedLock",
     .hadAs = "redLock",
     .had = "{}@0,{}@1,{}@2",
     .wantedAs = "redLock",
     .wanted = "{}@0,{}@1,{}@2",
     .isGroup = true},
};

struct PassageCase {
    Passage passage;
    Sides sides;

    friend std::ostream& operator<<(std::ostream& out, const PassageCase& what)
    {
        return out << what.passage.name << ", " << what.sides;
    }
};

std::vector<PassageCase> passageCases()
{
    std::vector<PassageCase> cases;
    for (const auto& sides : allSides()) {
        for (const auto& passage : passages) {
            cases.push_back({passage, sides});
        }
    }
    return cases;
}

class Waking : public InteropTest, public ::testing::WithParamInterface<PassageCase> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Waking, ::testing::ValuesIn(passageCases()), [](const auto& which) {
    return std::string(which.param.passage.name) + "_" + sidesName({which.param.sides, which.index});
});

TEST_P(Waking, WhoeverWaitsForTheOtherLanguageComesInSoonAfterIt)
{
    const auto& [passage, sides] = GetParam();
    const auto name = uniqueName();
    PeerObject holder(peer(sides.javaFirst ? sides.redisson : ""), passage.hadAs, filledIn(passage.had, name));
    PeerObject waiter(peer(sides.javaFirst ? "" : sides.redisson), passage.wantedAs, filledIn(passage.wanted, name));
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    RawRedis monitor(server());
    monitor.command({"MONITOR"});
    waiter.start("lock", longLease);
    awaitQuestion(monitor, name, !(passage.isGroup && sides.javaFirst));
    const Stopwatch sinceUnlock;
    ASSERT_EQ(holder.run("unlock"), "ok");
    EXPECT_EQ(waiter.answer(), "ok");
    EXPECT_LT(sinceUnlock.elapsedMs(), soon);
    EXPECT_EQ(waiter.run("unlock"), "ok");
}

// --- Permits and latches
// -----------------------------------------------------------------------------------------------

class CounterWaking : public SidesInterop {};

INSTANTIATE_TEST_SUITE_P(Orders, CounterWaking, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(CounterWaking, WaitersOfBothLanguagesGetThePermitsThatAreReleased)
{
    const auto name = lastingName();
    auto holder = first("semaphore", name);
    ASSERT_EQ(holder.run("trySetPermits", 4), "ok");
    ASSERT_EQ(holder.run("acquire", 4), "ok");
    PeerObject waiters[] = {second("semaphore", name), first("semaphore", name, 1), second("semaphore", name, 1),
                            first("semaphore", name, 1)};
    for (auto& waiter : waiters) {
        waiter.start("acquire", 1);
    }
    awaitListeners("redisson_sc:{" + name + "}", 3);
    const Stopwatch sinceRelease;
    ASSERT_EQ(holder.run("release", 4), "ok");
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.answer(), "ok");
    }
    EXPECT_LT(sinceRelease.elapsedMs(), soon);
    EXPECT_EQ(holder.run("available"), "ok 0");
}

TEST_P(CounterWaking, AWaiterGetsTheLeasedPermitThatIsReleased)
{
    const auto name = lastingName();
    auto holder = first("permitExpirableSemaphore", name);
    auto waiter = second("permitExpirableSemaphore", name);
    ASSERT_EQ(holder.run("trySetPermits", 1), "ok");
    const auto permit = holder.run("acquire", longLease).value;
    waiter.start("acquire", longLease);
    awaitListeners("redisson_sc:{" + name + "}", 1);
    const Stopwatch sinceRelease;
    ASSERT_EQ(holder.run("release", permit), "ok");
    EXPECT_EQ(waiter.answer().how, "ok");
    EXPECT_LT(sinceRelease.elapsedMs(), soon);
}

TEST_P(CounterWaking, AWaiterGetsTheLeasedPermitWhoseLeaseIsOver)
{
    const auto name = lastingName();
    auto holder = first("permitExpirableSemaphore", name);
    auto waiter = second("permitExpirableSemaphore", name);
    ASSERT_EQ(holder.run("trySetPermits", 1), "ok");
    const Stopwatch sinceAcquire;
    const auto permit = holder.run("acquire", 500ms).value;
    EXPECT_EQ(waiter.run("tryAcquire", soon, longLease).how, "ok");
    EXPECT_GE(sinceAcquire.elapsedMs(), 490ms) << "each language has a clock of its own";
    EXPECT_EQ(holder.run("release", permit).how, "error");
    EXPECT_EQ(holder.run("available"), "ok 0");
}

TEST_P(CounterWaking, ALatchOpensForWaitersOfBothLanguagesWhoeverCountsItDown)
{
    const auto name = lastingName();
    auto counter = first("countDownLatch", name);
    auto other = second("countDownLatch", name);
    ASSERT_EQ(counter.run("trySetCount", 3), "ok");
    EXPECT_EQ(other.run("trySetCount", 5), "false");
    EXPECT_EQ(other.run("getCount"), "ok 3");
    PeerObject waiters[] = {second("countDownLatch", name), first("countDownLatch", name),
                            second("countDownLatch", name, 1), first("countDownLatch", name, 1),
                            second("countDownLatch", name)};
    for (auto& waiter : waiters) {
        waiter.start("await");
    }
    awaitListeners("redisson_countdownlatch__channel__{" + name + "}", 4);
    EXPECT_EQ(counter.run("countDown"), "ok");
    EXPECT_EQ(other.run("countDown"), "ok");
    EXPECT_EQ(other.run("await", 50ms), "false");
    const Stopwatch sinceLast;
    EXPECT_EQ(counter.run("countDown"), "ok");
    for (auto& waiter : waiters) {
        EXPECT_EQ(waiter.answer(), "ok");
    }
    EXPECT_LT(sinceLast.elapsedMs(), soon);
    EXPECT_EQ(other.run("getCount"), "ok 0");
    EXPECT_EQ(other.run("countDown"), "ok") << "below zero is nothing";
    EXPECT_EQ(other.run("trySetCount", 1), "ok") << "it may be set again";
    EXPECT_EQ(counter.run("await", 50ms), "false");
    EXPECT_EQ(counter.run("countDown"), "ok");
    EXPECT_EQ(other.run("await", 50ms), "ok");
}

} // namespace
} // namespace redislock::test
