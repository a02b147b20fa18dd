#include "core/share/gaps.hpp"

#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace redislock::test {
namespace {

using detail::Gaps;
using namespace std::chrono_literals;

/// A client that has a name all the time, but for its gaps.
class BusyClient {
public:
    explicit BusyClient(std::chrono::nanoseconds trip = 50us) : roundTrip(trip) {}

    /// One hold. @param pause between the release and the next request, if there is no gap
    void hold(std::chrono::nanoseconds span, std::chrono::nanoseconds pause = 0us)
    {
        gaps.begin(now, now + roundTrip, roundTrip);
        now += span;
        const bool isDue = gaps.isDue(now);
        gaps.end(now, roundTrip, false, random);
        const bool isGap = gaps.until() > now;
        EXPECT_EQ(isGap, isDue);
        const TimePoint next = isGap ? gaps.until() : now + pause;
        free += isGap || pause >= roundTrip ? next - now : 0ns;
        now = next;
        count += isGap ? 1 : 0;
    }
    [[nodiscard]] double share() const
    {
        return std::chrono::duration<double>(free) / std::chrono::duration<double>(now - at(1s));
    }

    Gaps gaps{0us};
    Random random{1};
    std::chrono::nanoseconds roundTrip;
    TimePoint now = at(1s);
    std::chrono::nanoseconds free{0};
    int count = 0;
};

TEST(Gaps, LeaveANameFreeForATwentiethOfTheTimeHoweverLongHoldsAre)
{
    const struct {
        const char* name;
        std::chrono::nanoseconds hold;
        std::chrono::nanoseconds roundTrip;
    } cases[] = {{"short", 300us, 50us},
                 {"long", 40ms, 50us},
                 {"as long as a gap", 500us, 100us},
                 {"very long", 900ms, 50us},
                 {"far away", 3ms, 5ms}};
    for (const auto& each : cases) {
        SCOPED_TRACE(each.name);
        BusyClient client(each.roundTrip);
        while (client.count < 400) {
            client.hold(each.hold);
        }
        EXPECT_NEAR(client.share() * 20, 1.0, 0.15);
    }
}

TEST(Gaps, AreNotLongerThan50MillisecondsAfterAVeryLongHold)
{
    BusyClient client;
    client.hold(1h);
    EXPECT_EQ(client.free, 50ms);
}

TEST(Gaps, AreAtLeastTwoRoundTripsLongButNotAsLongAsAServerThatStoodStill)
{
    for (const auto& [roundTrip, longEnough] : {std::pair(20ms, 40ms), std::pair(800ms, 50ms)}) {
        BusyClient client(roundTrip);
        while (client.count == 0) {
            client.hold(100ms);
        }
        EXPECT_GE(client.free, longEnough);
        EXPECT_LE(client.free, 50ms);
    }
}

TEST(Gaps, ComeAtRandomMoments)
{
    BusyClient client;
    int early = 0;
    int late = 0;
    for (int last = 0;
         client.count < 400;) { // how many holds come before a gap: 38 on average, since 250 us of each count
        int holds = 0;
        for (const int before = client.count; client.count == before; ++holds) {
            client.hold(300us);
        }
        early += holds < 19 ? 1 : 0;
        late += holds > 57 ? 1 : 0;
        EXPECT_LE(holds, 78) << last;
        last = holds;
    }
    EXPECT_NEAR(early, 100, 40);
    EXPECT_NEAR(late, 100, 40);
}

TEST(Gaps, DoNotComeWhereTheNameIsFreeOftenEnoughAnyway)
{
    BusyClient client;
    for (int i = 0; i < 10'000; ++i) {
        client.hold(300us, 50us);
    }
    EXPECT_EQ(client.count, 0);
    for (int i = 0; i < 1'000; ++i) {
        client.hold(300us, 10us); // the release may not have been answered: both requests may arrive together
    }
    EXPECT_GT(client.count, 20);
}

TEST(Gaps, ComeSoonAfterALongPause)
{
    BusyClient client;
    client.hold(300us, 1h);
    while (client.count == 0) {
        client.hold(300us);
    }
    EXPECT_LT(client.now - at(1h), 1s + 25ms);
}

TEST(Gaps, ComeWhereTheTimeBetweenTwoHoldsWasAnothers)
{
    BusyClient client;
    for (int i = 0; client.count == 0 && i < 200; ++i) {
        client.hold(300us, 5ms);
        client.gaps.nameTaken();
    }
    EXPECT_EQ(client.count, 1);
}

TEST(Gaps, AreReplacedByTheTimeThatIsLeftToListeners)
{
    BusyClient client;
    client.gaps.begin(at(0s), at(0s), 50us);
    EXPECT_TRUE(client.gaps.isDue(at(1s)));
    client.gaps.end(at(1s), 50us, true, client.random);
    EXPECT_EQ(client.gaps.until(), TimePoint{});
    client.gaps.nameTaken();
    client.gaps.begin(at(2s), at(2s), 50us);
    EXPECT_FALSE(client.gaps.isDue(at(2s)));
}

TEST(Gaps, CloseANameThatSeveralHaveForAWhileEachSecondUntilAllOfThemHaveLeft)
{
    Gaps gaps{0us};
    gaps.begin(at(0s), at(0s), 50us);
    const auto due = at(Gaps::own * Gaps::shortest);
    EXPECT_EQ(gaps.closedUntil(due - 1us), TimePoint{});
    EXPECT_EQ(gaps.closedUntil(due), due + 50ms);
    EXPECT_EQ(gaps.closedUntil(due + 49ms), due + 50ms);
    EXPECT_EQ(gaps.closedUntil(due + 50ms), TimePoint{}) << "one may wait for the other";
    EXPECT_EQ(gaps.closedUntil(due + 1s + 20ms), due + 1s + 50ms);
    Random random(1);
    gaps.end(due + 1s + 20ms, 50us, false, random);
    EXPECT_EQ(gaps.closedUntil(due + 1s + 21ms), TimePoint{});
    EXPECT_GT(gaps.until(), due + 1s + 20ms);
}

TEST(Gaps, CountAHoldThatFollowsInTheSamePacket)
{
    BusyClient client;
    client.gaps.begin(at(0s), at(0s), 50us);
    client.gaps.follow(at(5ms));
    client.gaps.begin(at(5ms), at(5ms), 50us);
    EXPECT_FALSE(client.gaps.isDue(at(9ms)));
    EXPECT_TRUE(client.gaps.isDue(at(9500us)));
}

} // namespace
} // namespace redislock::test
