#include "core/share/local_lock.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using test::at;

struct Held {
    std::uint64_t owner = 0;
    TimePoint until{};

    [[nodiscard]] TimePoint validUntil() const { return until; }
};

std::shared_ptr<Held> holdOf(std::uint64_t owner, TimePoint until)
{
    return std::make_shared<Held>(Held{owner, until});
}

TEST(LocalLock, WithoutHoldsNobodyIsKeptFromAsking)
{
    const LocalLock<Held> local;
    EXPECT_EQ(local.of(1), nullptr);
    EXPECT_EQ(local.validUntil(), TimePoint{});
    EXPECT_TRUE(local.holds().empty());
}

TEST(LocalLock, FindsTheHoldOfAThreadAndOfNoOther)
{
    LocalLock<Held> local;
    const auto hold = holdOf(7, at(1s));
    local.add(hold);
    EXPECT_EQ(local.of(7), hold.get());
    EXPECT_EQ(local.of(8), nullptr);
    EXPECT_EQ(local.validUntil(), at(1s));
}

TEST(LocalLock, AHoldWhoseTimeIsOverMayStayBesideAValidOne)
{
    LocalLock<Held> local;
    const auto over = holdOf(7, at(1s));
    const auto valid = holdOf(8, at(9s));
    local.add(over);
    local.add(valid);
    EXPECT_EQ(local.of(7), over.get());
    EXPECT_EQ(local.of(8), valid.get());
    EXPECT_EQ(local.validUntil(), at(9s));
    EXPECT_EQ(local.holds().size(), 2U);
}

TEST(LocalLock, GivesBackTheHoldThatIsTakenOutOnce)
{
    LocalLock<Held> local;
    const auto hold = holdOf(7, at(1s));
    local.add(hold);
    EXPECT_EQ(local.remove(*hold), hold);
    EXPECT_EQ(local.remove(*hold), nullptr);
    EXPECT_EQ(local.remove(Held{7, at(1s)}), nullptr) << "found by identity, not by value";
    EXPECT_EQ(hold.use_count(), 1);
    EXPECT_EQ(local.validUntil(), TimePoint{});
}

TEST(LocalLock, KeepsTheOthersWhicheverOfSeveralHoldsIsTakenOut)
{
    for (std::uint64_t out = 1; out <= 3; ++out) {
        SCOPED_TRACE(out);
        LocalLock<Held> local;
        for (std::uint64_t owner = 1; owner <= 3; ++owner) {
            local.add(holdOf(owner, at(1s)));
        }
        const std::shared_ptr<Held> taken = local.remove(*local.of(out));
        ASSERT_NE(taken, nullptr);
        EXPECT_EQ(taken->owner, out);
        EXPECT_EQ(taken.use_count(), 1);
        for (std::uint64_t owner = 1; owner <= 3; ++owner) {
            EXPECT_EQ(local.of(owner) != nullptr, owner != out) << owner;
        }
        EXPECT_EQ(local.holds().size(), 2U);
        local.remove(*local.holds()[1]);
        ASSERT_EQ(local.holds().size(), 1U);
        const std::weak_ptr<Held> last = local.holds()[0];
        EXPECT_NE(local.remove(*local.holds()[0]), nullptr);
        EXPECT_TRUE(last.expired());
        EXPECT_TRUE(local.holds().empty());
    }
}

TEST(LocalLock, AThreadThatLostAHoldOwesItsUnlocks)
{
    LocalLock<Held> local;
    local.owe(7, 2);
    EXPECT_FALSE(local.countLateUnlock(8)) << "a stranger owes nothing";
    EXPECT_TRUE(local.countLateUnlock(7));
    EXPECT_TRUE(local.countLateUnlock(7));
    EXPECT_FALSE(local.countLateUnlock(7)) << "all were settled";
}

TEST(LocalLock, DebtsAddUpAndOnesOfNothingAreNone)
{
    LocalLock<Held> local;
    local.owe(7, 0);
    EXPECT_FALSE(local.countLateUnlock(7));
    local.owe(7, 1);
    local.owe(8, 1);
    local.owe(7, 1);
    EXPECT_TRUE(local.countLateUnlock(7));
    EXPECT_TRUE(local.countLateUnlock(7));
    EXPECT_FALSE(local.countLateUnlock(7));
    EXPECT_TRUE(local.countLateUnlock(8));
}

// The standard's guards call unlock() in destructors, where nothing may be thrown.
TEST(LocalLock, TakesNoDebtorForAStrangerHoweverManyThereAre)
{
    LocalLock<Held> local;
    for (std::uint64_t thread = 0; thread < 2500; ++thread) {
        local.owe(thread, 1 + thread % 2);
    }
    for (std::uint64_t thread = 0; thread < 2500; ++thread) {
        for (std::uint64_t level = 0; level < 1 + thread % 2; ++level) {
            ASSERT_TRUE(local.countLateUnlock(thread)) << thread;
        }
    }
    EXPECT_FALSE(local.countLateUnlock(1)) << "all were settled";
    EXPECT_FALSE(local.countLateUnlock(2499));
}

} // namespace
} // namespace redislock::detail
