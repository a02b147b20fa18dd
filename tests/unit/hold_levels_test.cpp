#include "core/hold_levels.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::at;

TEST(HoldLevels, WithoutLevelsNothingIsHeld)
{
    HoldLevels levels;
    EXPECT_EQ(levels.count(), 0U);
    EXPECT_EQ(levels.countOfThread(), 0U);
    EXPECT_EQ(levels.innermostOfThread(), 0U);
    EXPECT_FALSE(levels.isRenewed());
    EXPECT_EQ(levels.validUntil(), TimePoint{});
    EXPECT_FALSE(levels.remove(1));
}

TEST(HoldLevels, ALevelCountsFromItsAdditionButIsValidOnlyOnceGranted)
{
    HoldLevels levels;
    const auto level = levels.add(10s, EndedBy::thread);
    EXPECT_NE(level, 0U);
    EXPECT_EQ(levels.count(), 1U);
    EXPECT_EQ(levels.validUntil(), TimePoint{});
    levels.granted(level, at(9s));
    EXPECT_EQ(levels.validUntil(), at(9s));
    EXPECT_TRUE(levels.remove(level));
    EXPECT_FALSE(levels.remove(level));
    EXPECT_EQ(levels.validUntil(), TimePoint{});
}

TEST(HoldLevels, EveryLevelHasItsOwnId)
{
    HoldLevels levels;
    const auto first = levels.add(keepRenewing, EndedBy::thread);
    levels.remove(first);
    const auto second = levels.add(keepRenewing, EndedBy::thread);
    EXPECT_NE(second, first);
    levels.clear();
    EXPECT_NE(levels.add(keepRenewing, EndedBy::guard), second);
}

TEST(HoldLevels, PassedOnTheHoldHasTheLevelOfTheNextCallerAndItsOwnDeadline)
{
    HoldLevels levels;
    HoldLevels next;
    const auto ended = levels.add(keepRenewing, EndedBy::thread);
    levels.granted(ended, at(9s));
    EXPECT_TRUE(levels.isOnly(ended));
    next.add(keepRenewing, EndedBy::guard);
    const auto level = levels.replaceWith(next);
    EXPECT_NE(level, ended);
    EXPECT_TRUE(levels.isOnly(level));
    EXPECT_EQ(levels.validUntil(), at(9s));
    EXPECT_EQ(levels.countOfThread(), 0U) << "a guard ends it";
    EXPECT_TRUE(levels.remove(level));
    EXPECT_FALSE(levels.isOnly(level));
}

TEST(HoldLevels, TheHoldIsValidAsLongAsItsLongestLevel)
{
    HoldLevels levels;
    const auto outer = levels.add(10s, EndedBy::thread);
    levels.granted(outer, at(9s));
    const auto inner = levels.add(60s, EndedBy::thread);
    EXPECT_EQ(levels.validUntil(), at(9s)) << "not granted yet";
    levels.granted(inner, at(59s));
    EXPECT_EQ(levels.validUntil(), at(59s));
    const auto innermost = levels.add(5s, EndedBy::thread);
    levels.granted(innermost, at(4s));
    EXPECT_EQ(levels.validUntil(), at(59s)) << "a shorter lease shortens nothing";
    levels.remove(inner);
    EXPECT_EQ(levels.validUntil(), at(9s)) << "the maximum of the rest";
    levels.remove(outer);
    EXPECT_EQ(levels.validUntil(), at(4s));
}

TEST(HoldLevels, NothingShortensWhatWasGranted)
{
    HoldLevels levels;
    const auto fixed = levels.add(10s, EndedBy::thread);
    levels.granted(fixed, at(9s));
    levels.granted(fixed, at(8s));
    EXPECT_EQ(levels.validUntil(), at(9s));
    const auto renewed = levels.add(keepRenewing, EndedBy::thread);
    levels.granted(renewed, at(30s));
    levels.renewed(at(20s));
    levels.granted(renewed, at(25s));
    EXPECT_EQ(levels.validUntil(), at(30s));
}

TEST(HoldLevels, ARenewalIsForAllRenewedLevelsAndForNoOthers)
{
    HoldLevels levels;
    const auto fixed = levels.add(10s, EndedBy::thread);
    levels.granted(fixed, at(9s));
    const auto one = levels.add(keepRenewing, EndedBy::thread);
    levels.granted(one, at(29s));
    const auto other = levels.add(keepRenewing, EndedBy::guard);
    levels.granted(other, at(31s));
    levels.renewed(at(39s));
    EXPECT_EQ(levels.validUntil(), at(39s));
    levels.remove(one);
    EXPECT_TRUE(levels.isRenewed());
    EXPECT_EQ(levels.validUntil(), at(39s));
    levels.remove(other);
    EXPECT_FALSE(levels.isRenewed());
    EXPECT_EQ(levels.validUntil(), at(9s)) << "the fixed lease was not renewed";
}

TEST(HoldLevels, ALateRenewalWithoutARenewedLevelChangesNothing)
{
    HoldLevels levels;
    const auto fixed = levels.add(10s, EndedBy::thread);
    levels.granted(fixed, at(9s));
    levels.renewed(at(39s));
    EXPECT_EQ(levels.validUntil(), at(9s));
}

// When the last renewed level ended, only the lease of the other levels was left in Redis: the renewed level's grant is
// gone.
TEST(HoldLevels, ARenewedLevelThatIsNotGrantedYetInheritsNothingFromOnesThatEnded)
{
    HoldLevels levels;
    const auto fixed = levels.add(10s, EndedBy::guard);
    levels.granted(fixed, at(9s));
    const auto ended = levels.add(keepRenewing, EndedBy::thread);
    levels.granted(ended, at(29s));
    levels.remove(ended);
    levels.add(keepRenewing, EndedBy::thread);
    EXPECT_EQ(levels.validUntil(), at(9s));
}

TEST(HoldLevels, UnlockEndsTheInnermostLevelOfTheThreadAndNoneOfAGuard)
{
    HoldLevels levels;
    const auto first = levels.add(keepRenewing, EndedBy::thread);
    levels.add(keepRenewing, EndedBy::guard);
    const auto second = levels.add(keepRenewing, EndedBy::thread);
    EXPECT_EQ(levels.innermostOfThread(), second);
    const auto guard = levels.add(keepRenewing, EndedBy::guard);
    EXPECT_EQ(levels.innermostOfThread(), second);
    EXPECT_EQ(levels.countOfThread(), 2U);
    EXPECT_EQ(levels.count(), 4U);
    levels.remove(second);
    EXPECT_EQ(levels.innermostOfThread(), first);
    levels.remove(first);
    EXPECT_EQ(levels.innermostOfThread(), 0U);
    EXPECT_EQ(levels.countOfThread(), 0U);
    EXPECT_EQ(levels.count(), 2U);
    EXPECT_TRUE(levels.remove(guard));
}

TEST(HoldLevels, AnInnerUnlockLeavesWhatTheRemainingLevelsWereGranted)
{
    HoldLevels levels;
    const auto level = levels.add(10s, EndedBy::thread); // sent at 0: Redis has it until 10 s, we until 9.898 s
    levels.granted(level, deadlineOf(at(0s), 10s));
    EXPECT_EQ(levels.leaseToLeave(at(0s), 30s), 10s);
    EXPECT_EQ(levels.leaseToLeave(at(4s), 30s), 6s);
    EXPECT_EQ(levels.leaseToLeave(at(4s) - 1ns, 30s), 6001ms) << "rounded up";
    EXPECT_EQ(levels.leaseToLeave(at(10s), 30s), 1ms) << "never less than Redis takes";
    EXPECT_EQ(levels.leaseToLeave(at(1h), 30s), 1ms);
    const auto longer = levels.add(20s, EndedBy::thread);
    EXPECT_EQ(levels.leaseToLeave(at(4s), 30s), 6s) << "not granted yet";
    levels.granted(longer, deadlineOf(at(4s), 20s));
    EXPECT_EQ(levels.leaseToLeave(at(5s), 30s), 19s);
}

TEST(HoldLevels, ARenewedLevelIsLeftAWholeLeaseUnlessAFixedOneIsLonger)
{
    HoldLevels levels;
    levels.add(keepRenewing, EndedBy::thread);
    EXPECT_EQ(levels.leaseToLeave(at(4s), 30s), 30s);
    const auto fixed = levels.add(60s, EndedBy::thread);
    levels.granted(fixed, deadlineOf(at(0s), 60s));
    EXPECT_EQ(levels.leaseToLeave(at(4s), 30s), 56s);
    EXPECT_EQ(levels.leaseToLeave(at(40s), 30s), 30s);
}

TEST(HoldLevels, TheLongestLeaseIsLeftWhole)
{
    HoldLevels levels;
    const auto level = levels.add(maxLease, EndedBy::thread);
    levels.granted(level, deadlineOf(at(0s), maxLease));
    EXPECT_EQ(levels.leaseToLeave(at(0s), 30s), maxLease);
}

TEST(HoldLevels, ARenewedLeaseIsRenewedWholeUntilItsLevelEnds)
{
    HoldLevels levels;
    const auto fixed = levels.add(60s, EndedBy::thread);
    levels.granted(fixed, deadlineOf(at(0s), 60s));
    EXPECT_FALSE(levels.mustRenew(at(0s), 30s, false));
    const auto renewed = levels.add(keepRenewing, EndedBy::thread);
    EXPECT_TRUE(levels.mustRenew(at(0s), 30s, false));
    EXPECT_EQ(levels.leaseToRenew(at(1s), 30s, false), 30s) << "Redis has the longer one already";
    levels.remove(renewed);
    EXPECT_FALSE(levels.mustRenew(at(50s), 30s, false));
    EXPECT_EQ(levels.leaseToRenew(at(50s), 30s, false), 10s) << "a renewal that is repeated does not prolong it";
    EXPECT_EQ(levels.leaseToRenew(at(60s), 30s, false), 10ms) << "never less than Redis takes";
}

TEST(HoldLevels, WhereOthersSetTheTimeTheRestOfAFixedLeaseIsSentAsLongAsItIsLongerThanTheirs)
{
    HoldLevels levels;
    const auto fixed = levels.add(60s, EndedBy::thread);
    levels.granted(fixed, deadlineOf(at(0s), 60s));
    EXPECT_TRUE(levels.mustRenew(at(29s), 30s, true));
    EXPECT_EQ(levels.leaseToRenew(at(29s), 30s, true), 31s);
    EXPECT_FALSE(levels.mustRenew(at(30s), 30s, true));
    levels.add(keepRenewing, EndedBy::thread);
    EXPECT_TRUE(levels.mustRenew(at(59s), 30s, true));
    EXPECT_EQ(levels.leaseToRenew(at(10s), 30s, true), 50s) << "the longest of all";
    EXPECT_EQ(levels.leaseToRenew(at(59s), 30s, true), 30s);
}

TEST(HoldLevels, ForgetsEverythingForTheNextHold)
{
    HoldLevels levels;
    levels.granted(levels.add(keepRenewing, EndedBy::thread), at(30s));
    levels.clear();
    EXPECT_EQ(levels.count(), 0U);
    EXPECT_FALSE(levels.isRenewed());
    levels.add(keepRenewing, EndedBy::thread);
    EXPECT_EQ(levels.validUntil(), TimePoint{});
}

TEST(HoldLevels, IsTheMaximumOfItsFixedLevelsInRandomSequences)
{
    Random random(3);
    HoldLevels levels;
    std::map<std::uint32_t, TimePoint> model;
    for (int step = 0; step < 10'000; ++step) {
        if (model.size() < 8 && random.next() % 2 == 0) {
            model.emplace(levels.add(10s, random.next() % 2 == 0 ? EndedBy::thread : EndedBy::guard), TimePoint{});
        } else if (!model.empty()) {
            auto chosen = model.begin();
            std::advance(chosen, random.next() % model.size());
            if (random.next() % 2 == 0) {
                const TimePoint until = at(milliseconds(random.next() % 10'000));
                chosen->second = std::max(chosen->second, until);
                levels.granted(chosen->first, until);
            } else {
                ASSERT_TRUE(levels.remove(chosen->first));
                model.erase(chosen);
            }
        }
        TimePoint until{};
        for (const auto& [id, granted] : model) {
            until = std::max(until, granted);
        }
        ASSERT_EQ(levels.validUntil(), until);
        ASSERT_EQ(levels.count(), model.size());
        ASSERT_FALSE(levels.isRenewed());
    }
}

} // namespace
} // namespace redislock::detail
