// A lock in segments.
#include "behaviour/group_test.hpp"

#include <mutex>
#include <set>
#include <string>

namespace redislock::test {
namespace {

using SegmentedLocks = GroupTest;

TEST_F(SegmentedLocks, KeysBelongToSegmentsByADocumentedHash)
{
    // the reference values of FNV-1a
    EXPECT_EQ(SegmentedLock::hash(""), 0xcbf29ce484222325U);
    EXPECT_EQ(SegmentedLock::hash("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(SegmentedLock::hash("foobar"), 0x85944171f73967e8U);
    const Client client(config());
    const auto lock = client.getSegmentedLock(name, 64);
    EXPECT_EQ(lock.segments(), 64U);
    EXPECT_EQ(lock.segmentOf("foobar"), 0x85944171f73967e8U % 64);
    EXPECT_EQ(lock.lockFor("foobar").name(), name + ":40");
    EXPECT_EQ(lock.segment(5).name(), name + ":5");
    EXPECT_EQ(lock.name(), name);
    EXPECT_THROW((void)lock.segment(64), std::out_of_range);
}

TEST_F(SegmentedLocks, KeysSpreadOverAllSegments)
{
    const Client client(config());
    const auto lock = client.getSegmentedLock(name, 16);
    std::vector<int> counts(16);
    for (int i = 0; i < 16'000; ++i) {
        ++counts[lock.segmentOf("order:" + std::to_string(i))];
    }
    for (const int count : counts) {
        EXPECT_GT(count, 800);
        EXPECT_LT(count, 1200);
    }
}

TEST_F(SegmentedLocks, KeysOfOneSegmentExcludeAndOthersDoNot)
{
    const Client client(config());
    const Client far(config());
    const auto lock = client.getSegmentedLock(name);
    const auto elsewhere = far.getSegmentedLock(name);
    EXPECT_EQ(lock.segments(), 16U);
    const LockGuard held(lock.lockFor("a"));
    std::size_t excluded = 0;
    for (int i = 0; i < 64; ++i) {
        const auto key = "k" + std::to_string(i);
        const LockGuard second(elsewhere.lockFor(key), 0ms, 10s);
        const bool same = lock.segmentOf(key) == lock.segmentOf("a");
        EXPECT_EQ(static_cast<bool>(second), !same) << key;
        excluded += same ? 1U : 0U;
    }
    EXPECT_GT(excluded, 0U);
    clean(lock.lockFor("a").name());
}

TEST_F(SegmentedLocks, AllOfThemAreOneLock)
{
    const Client client(config());
    const auto lock = client.getSegmentedLock(name, 4);
    GroupGuard all(lock.all());
    EXPECT_EQ(all.heldMembers(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(lock.segment(i).isLocked());
        EXPECT_FALSE(lock.segment(i).tryLock());
    }
    EXPECT_EQ(all.release(), Unlocked::released);
    const std::scoped_lock one(lock.segment(2));
    EXPECT_FALSE(lock.all().tryLock());
}

TEST_F(SegmentedLocks, HaveOneToAThousandAndTwentyFourSegments)
{
    const Client client(config());
    for (const std::size_t bad : {std::size_t{0}, std::size_t{1025}, SIZE_MAX}) {
        try {
            (void)client.getSegmentedLock(name, bad);
            ADD_FAILURE() << "not refused";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::invalidArgument);
        }
    }
    EXPECT_THROW((void)client.getSegmentedLock(""), LockError);
    EXPECT_THROW((void)client.getSegmentedLock(std::string(1024, 'n')), LockError) << "the segments' names are longer";
    EXPECT_EQ(client.getSegmentedLock(name, 1).segments(), 1U);
    const auto largest = client.getSegmentedLock(name, 1024);
    GroupGuard all(largest.all(), 10s, 10s);
    EXPECT_EQ(all.heldMembers(), 1024U);
    EXPECT_EQ(all.release(), Unlocked::released);
}

} // namespace
} // namespace redislock::test
