// Tokens and permits; our objects are in the test's own process.
#include "behaviour/lock_driver.hpp"
#include "behaviour/worker.hpp"
#include "interop/interop_test.hpp"
#include "redislock/redislock.hpp"
#include "support/eventually.hpp"

#include <future>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class ObjectsInterop : public RedissonInterop {
protected:
    const Client client{config()};
};

INSTANTIATE_TEST_SUITE_P(Versions, ObjectsInterop, ::testing::ValuesIn(redissonVersions()),
                         [](const auto& redisson) { return testName(redisson.param); });

TEST_P(ObjectsInterop, TokensOfBothLanguagesGrowTogether)
{
    if (std::stoi(GetParam()) < 4) {
        return; // this version has no such lock
    }
    const auto name = uniqueName();
    const auto here = client.getFencedLock(name);
    auto there = javaObject("fencedLock", name);
    std::uint64_t last = std::stoull(there.run("lockAndGetToken").value);
    EXPECT_EQ(there.run("unlock"), "ok");
    for (int round = 0; round < 3; ++round) {
        const auto ours = static_cast<std::uint64_t>(here.lockAndGetToken());
        EXPECT_GT(ours, last);
        EXPECT_EQ(here.unlock(), Unlocked::released);
        last = std::stoull(there.run("lockAndGetToken").value);
        EXPECT_GT(last, ours);
        EXPECT_EQ(there.run("unlock"), "ok");
    }
}

TEST_P(ObjectsInterop, PermitsOfOneSemaphoreAreSharedAndWaitersToldOfThem)
{
    const auto name = uniqueName();
    const auto here = client.getSemaphore(name);
    auto there = javaObject("semaphore", name);
    Worker worker;
    ASSERT_TRUE(here.trySetPermits(2));
    EXPECT_EQ(there.run("trySetPermits", 5), "false");
    here.acquire(2);
    there.start("acquire", 1);
    awaitListener(name);
    here.release();
    EXPECT_EQ(there.answer(), "ok");
    auto waiting = worker.start([&] { return here.tryAcquire(2, 20s); });
    EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
    here.release();
    EXPECT_EQ(there.run("release", 1), "ok");
    ASSERT_EQ(waiting.wait_for(soon), std::future_status::ready);
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(there.run("available"), "ok 0");
    removeAllOf(name);
}

TEST_P(ObjectsInterop, LeasedPermitsOfBothLanguagesAreReleasedByTheirIdsInEither)
{
    const auto name = uniqueName();
    const auto here = client.getPermitExpirableSemaphore(name);
    auto there = javaObject("permitExpirableSemaphore", name);
    ASSERT_EQ(there.run("trySetPermits", 2), "ok");
    const auto theirs = there.run("acquire", longLease).value;
    auto ours = here.acquire(longLease);
    EXPECT_EQ(here.availablePermits(), 0);
    EXPECT_EQ(there.run("available"), "ok 0");
    const bool sameIds = std::stoi(GetParam()) >= 4; // before version 4 ids had another form in Redis
    EXPECT_EQ(there.run("tryRelease", sameIds ? ours.id() : theirs), "ok");
    EXPECT_EQ(here.release(sameIds ? theirs : ours.id()), Unlocked::released);
    EXPECT_EQ(there.run("available"), "ok 2");
    EXPECT_EQ(ours.release(), Unlocked::alreadyLost);
    removeAllOf(name);
}

} // namespace
} // namespace redislock::test
