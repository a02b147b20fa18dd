// The sequential models, and the search for an order.
#include "history/linearizability.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace redislock::test::history {
namespace {

using Kind = Operation::Kind;
using Verdict = Linearization::Verdict;

TimedOperation acquire(int owner, Nanoseconds from, Nanoseconds to, std::int64_t fence = 0)
{
    return {{Kind::acquire, owner, fence}, from, to};
}
TimedOperation release(int owner, Nanoseconds from, Nanoseconds to = never)
{
    return {{Kind::release, owner}, from, to};
}

template <class Model>
Verdict verdictOf(const Model& model, const std::vector<TimedOperation>& operations)
{
    return linearize(model, operations).verdict;
}

struct Case {
    const char* name;
    std::vector<TimedOperation> operations;
    Verdict verdict;
};

TEST(OwnerMutex, AllowsOrdersOfAMutexAndNoOthers)
{
    const Case cases[] = {
        {"nothing", {}, Verdict::possible},
        {"one after the other", {acquire(1, 0, 1), release(1, 2, 3), acquire(2, 4, 5)}, Verdict::possible},
        {"the release overlaps", {acquire(1, 0, 1), release(1, 2, 5), acquire(2, 3, 4)}, Verdict::possible},
        {"the calls were made in the other order",
         {acquire(2, 0, 9), acquire(1, 1, 2), release(1, 3, 4)},
         Verdict::possible},
        {"held by another", {acquire(1, 0, 1), acquire(2, 2, 3)}, Verdict::impossible},
        {"released too late", {acquire(1, 0, 1), acquire(2, 2, 3), release(1, 4, 5)}, Verdict::impossible},
        {"lost at an unknown time", {acquire(1, 0, 1), release(1, 2), acquire(2, 8, 9)}, Verdict::possible},
        {"lost, but not before", {acquire(1, 0, 1), release(1, 6), acquire(2, 3, 5)}, Verdict::impossible},
        {"an acquire that never returned", {acquire(3, 0, never), acquire(1, 1, 2)}, Verdict::possible},
        {"released by a stranger", {acquire(1, 0, 1), release(2, 2, 3)}, Verdict::impossible},
        {"acquired twice", {acquire(1, 0, 1), acquire(1, 2, 3)}, Verdict::impossible},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(verdictOf(OwnerMutex{}, each.operations), each.verdict) << each.name;
    }
}

TEST(SharedMutex, CountsLevels)
{
    const std::vector<TimedOperation> nested{acquire(1, 0, 1), acquire(1, 2, 3), release(1, 4, 5)};
    EXPECT_EQ(verdictOf(SharedMutex{}, nested), Verdict::possible);
    auto other = nested;
    other.push_back(acquire(2, 6, 7));
    EXPECT_EQ(verdictOf(SharedMutex{}, other), Verdict::impossible) << "one level is left";
    other.insert(other.begin() + 3, release(1, 5, 6));
    EXPECT_EQ(verdictOf(SharedMutex{}, other), Verdict::possible);
}

TEST(SharedMutex, IsOwnedByOneOrSharedByMany)
{
    const auto share = [](int owner, Nanoseconds from, Nanoseconds to) {
        return TimedOperation{{.kind = Kind::acquire, .owner = owner, .shares = true}, from, to};
    };
    const auto unshare = [](int owner, Nanoseconds from, Nanoseconds to) {
        return TimedOperation{{.kind = Kind::release, .owner = owner, .shares = true}, from, to};
    };
    const Case cases[] = {
        {"two share", {share(1, 0, 1), share(2, 2, 3), unshare(1, 4, 5), unshare(2, 6, 7)}, Verdict::possible},
        {"owned while shared", {share(1, 0, 1), acquire(2, 2, 3)}, Verdict::impossible},
        {"owned by one who shares", {share(1, 0, 1), acquire(1, 2, 3)}, Verdict::impossible},
        {"shared while owned", {acquire(1, 0, 1), share(2, 2, 3)}, Verdict::impossible},
        {"the owner shares, and then others",
         {acquire(1, 0, 1), share(1, 2, 3), release(1, 4, 5), share(2, 6, 7), unshare(1, 8, 9)},
         Verdict::possible},
        {"owned while its last owner shares",
         {acquire(1, 0, 1), share(1, 2, 3), release(1, 4, 5), acquire(2, 6, 7)},
         Verdict::impossible},
        {"unshared by a stranger", {share(1, 0, 1), unshare(2, 2, 3)}, Verdict::impossible},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(verdictOf(SharedMutex{}, each.operations), each.verdict) << each.name;
    }
}

TEST(FencedMutex, WantsGrowingFences)
{
    EXPECT_EQ(verdictOf(FencedMutex{}, {acquire(1, 0, 1, 7), release(1, 2, 3), acquire(2, 4, 5, 8)}),
              Verdict::possible);
    EXPECT_EQ(verdictOf(FencedMutex{}, {acquire(1, 0, 1, 7), release(1, 2, 3), acquire(2, 4, 5, 7)}),
              Verdict::impossible);
}

TEST(Permits, AreNeverMoreThanConfigured)
{
    const Permits two{.configured = 2};
    EXPECT_EQ(verdictOf(two, {acquire(1, 0, 1), acquire(2, 0, 1)}), Verdict::possible);
    EXPECT_EQ(verdictOf(two, {acquire(1, 0, 1), acquire(2, 0, 1), acquire(3, 2, 3)}), Verdict::impossible);
    EXPECT_EQ(verdictOf(two, {acquire(1, 0, 1), acquire(2, 0, 1), release(1, 2, 9), acquire(3, 3, 4)}),
              Verdict::possible);
    EXPECT_EQ(verdictOf(two, {release(1, 0, 1)}), Verdict::impossible);
}

TEST(Linearize, NamesTheOperationThatHasNoPlace)
{
    const auto result = linearize(OwnerMutex{}, {acquire(1, 0, 1), acquire(2, 2, 3)});
    EXPECT_EQ(result.failedAt, 1U);
}

TEST(Linearize, GivesUpWhenThereAreTooManyOrders)
{
    std::vector<TimedOperation> operations;
    for (int owner = 1; owner <= 12; ++owner) { // any subset may have happened
        operations.push_back(acquire(owner, 0, never));
    }
    operations.push_back(acquire(99, 1, 2));
    EXPECT_EQ(linearize(Permits{.configured = 20}, operations, 100).verdict, Verdict::undecided);
    EXPECT_EQ(linearize(Permits{.configured = 20}, operations).verdict, Verdict::possible);
}

} // namespace
} // namespace redislock::test::history
