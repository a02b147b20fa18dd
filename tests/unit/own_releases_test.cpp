#include "core/share/own_releases.hpp"

#include <gtest/gtest.h>

namespace redislock::detail {
namespace {

TEST(OwnReleases, AreUnderWayFromTheFirstToTheLast)
{
    OwnReleases releases;
    EXPECT_FALSE(releases.underWay());
    releases.begin();
    releases.begin();
    releases.end();
    EXPECT_TRUE(releases.underWay());
    releases.end();
    EXPECT_FALSE(releases.underWay());
}

/// What may happen beside an acquire: before it was queued, and between its queueing and its refusal.
struct Beside {
    const char* name;
    int begunBefore;
    int endedBefore;
    int begunSince;
    int endedSince;
    bool passesOver;
};

TEST(Refusals, CountWhereNoReleaseWasUnderWaySinceTheRequestWasQueued)
{
    const Beside cases[] = {
        {"none at all", 0, 0, 0, 0, false},
        {"all were over", 2, 2, 0, 0, false},
        {"one is under way", 2, 1, 0, 0, true},
        {"one was under way and is over", 2, 1, 0, 1, true},
        {"one began and is under way", 1, 1, 1, 0, true},
        {"one began and is over", 1, 1, 1, 1, true},
    };
    for (const auto& each : cases) {
        OwnReleases releases;
        Refusals refusals;
        const auto happen = [&releases](int begun, int ended) {
            for (; begun > 0; --begun) {
                releases.begin();
            }
            for (; ended > 0; --ended) {
                releases.end();
            }
        };
        happen(each.begunBefore, each.endedBefore);
        refusals.start();
        refusals.queued(releases);
        happen(each.begunSince, each.endedSince);
        EXPECT_EQ(refusals.passesOver(releases), each.passesOver) << each.name;
        EXPECT_EQ(refusals.isOpen(), each.passesOver) << each.name;
        refusals.queued(releases);
        EXPECT_FALSE(refusals.isOpen()) << each.name << ": another request is under way";
    }
}

TEST(Refusals, CountAfterSomeThoughReleasesGoOnAndStayOpen)
{
    OwnReleases releases;
    Refusals refusals;
    for (int round = 0; round < 3; ++round) {
        refusals.start(); // starts anew for each answer
        releases.begin();
        for (std::uint32_t i = 0; i < Refusals::most; ++i) {
            refusals.queued(releases);
            EXPECT_TRUE(refusals.passesOver(releases));
        }
        refusals.queued(releases);
        EXPECT_FALSE(refusals.passesOver(releases));
        EXPECT_TRUE(refusals.isOpen()) << "who sleeps asks again when they are over";
        releases.end();
    }
}

TEST(Refusals, KnowOfARequestThatSomebodyElseQueuedBefore)
{
    OwnReleases releases;
    Refusals refusals;
    releases.begin();
    refusals.queued(releases);
    refusals.start();
    releases.end();
    EXPECT_TRUE(refusals.passesOver(releases));
}

} // namespace
} // namespace redislock::detail
