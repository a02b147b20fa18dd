// The judgement of fail-overs: two believers are excused only if the promoted server lacked a grant, and not for long.
#include "history/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

/// Server 1 is promoted at 100 ms, and named at 150 ms. One caller has the lock, from server 0, from 11 ms on; another
/// has it from server 1 from 201 ms on.
struct FailedOver {
    std::string name = "a";
    std::string streamed{}; ///< the holder that server 1 had
    int firstEnds = 205;    ///< in ms
    int secondAt = 1;       ///< the server that granted it
    int movedUntil = 0;     ///< in ms; the slot was on its way from 50 ms on. 0: it was not

    [[nodiscard]] Judgement judged() const
    {
        std::vector<Record> records;
        const auto add = [&](const std::string& file, std::int64_t ms, Record record) {
            record.t = ms * millisecond;
            record.file = file;
            record.line = 1;
            records.push_back(std::move(record));
        };
        const auto call = [&](int pid, int begin, int end) {
            const auto client = "c" + std::to_string(pid);
            const auto line = [&](Op op, Phase phase) {
                return Record{.pid = pid, .thread = 1, .client = client, .lock = name, .op = op, .phase = phase};
            };
            auto asked = line(Op::lock, Phase::invoke);
            asked.leaseMs = 5000;
            asked.error = "fixed";
            auto got = line(Op::lock, Phase::ok);
            got.count = 1;
            got.deadline = (begin + 4900) * millisecond;
            auto told = line(Op::acquired, Phase::event);
            told.holder = client + ":1";
            auto freed = line(Op::unlock, Phase::ok);
            freed.count = 0;
            freed.error = "released";
            add("client", begin - 2, asked);
            add("client", begin, told);
            add("client", begin, got);
            add("client", end, line(Op::unlock, Phase::invoke));
            add("client", end + 1, freed);
        };
        add("director", 0, {.op = Op::clock, .offset = 0});
        add("truth-1", 1, {.op = Op::attached, .offset = 1});
        add("requests-0", 10, {.holder = "c10:1", .lock = name, .op = Op::request, .error = "lock"});
        if (!streamed.empty()) {
            add("truth-1", 11, {.holder = streamed, .lock = name, .op = Op::hset, .count = 1, .offset = 2, .tx = 1});
        }
        call(10, 11, firstEnds);
        if (movedUntil > 0) {
            add("director", 50, {.lock = name, .op = Op::moved, .phase = Phase::invoke});
            add("director", movedUntil, {.lock = name, .op = Op::moved, .phase = Phase::ok});
        }
        add("truth-1", 100, {.op = Op::detached});
        add("director", 100, {.op = Op::promoted, .phase = Phase::invoke, .count = 1});
        add("director", 150, {.op = Op::promoted, .phase = Phase::ok, .count = 1});
        add("requests-" + std::to_string(secondAt), 200,
            {.holder = "c20:1", .lock = name, .op = Op::request, .error = "lock"});
        call(20, 201, 3000);
        add("director", 4000, {.op = Op::clock, .offset = 0});
        std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.t < b.t; });
        return judge(std::move(records), {.leastHandOvers = 1});
    }

    [[nodiscard]] std::set<std::string> broken() const
    {
        std::set<std::string> names;
        for (const auto& violation : judged().report.violations) {
            names.insert(violation.invariant);
        }
        return names;
    }
};

using Names = std::set<std::string>;

TEST(FailOverJudgement, ExcusesWhatThePromotedServerLacked)
{
    EXPECT_EQ(FailedOver{}.broken(), Names{});
    EXPECT_EQ(FailedOver{}.judged().report.excused, 1U);
}

TEST(FailOverJudgement, DoesNotExcuseAHolderThatWasNotToldInTime)
{
    EXPECT_EQ(FailedOver{.firstEnds = 1649}.broken(), Names{});
    EXPECT_EQ(FailedOver{.firstEnds = 1651}.broken(), Names{"F1"});
}

TEST(FailOverJudgement, DoesNotExcuseWhatThePromotedServerHad)
{
    EXPECT_THAT(FailedOver{.streamed = "c10:1"}.broken(), ::testing::Contains("S1"));
}

TEST(FailOverJudgement, DoesNotExcuseTwoGrantsOfOneServer)
{
    EXPECT_THAT(FailedOver{.secondAt = 0}.broken(), ::testing::Contains("S1"));
}

TEST(FailOverJudgement, ExcusesWhatWasHalfMovedWhenTheServerWasNamed)
{
    EXPECT_EQ((FailedOver{.streamed = "c10:1", .movedUntil = 160}.broken()), Names{});
    EXPECT_EQ((FailedOver{.name = "a:durable:b", .movedUntil = 160}.broken()), Names{});
    EXPECT_THAT((FailedOver{.streamed = "c10:1", .movedUntil = 140}.broken()), ::testing::Contains("S1"));
    EXPECT_EQ((FailedOver{.streamed = "c10:1", .firstEnds = 1651, .movedUntil = 160}.broken()), Names{"F1"});
}

TEST(FailOverJudgement, NeverExcusesALockWithADurability)
{
    EXPECT_THAT(FailedOver{.name = "a:durable:b"}.broken(), ::testing::IsSupersetOf({"S1", "F2"}));
    const FailedOver survived{.name = "a:durable:b", .streamed = "c10:1"};
    EXPECT_THAT(survived.broken(),
                ::testing::AllOf(::testing::Contains("S1"), ::testing::Not(::testing::Contains("F2"))));
    EXPECT_EQ((FailedOver{.name = "a:durable:b", .streamed = "c10:1", .firstEnds = 190}.broken()), Names{});
}

} // namespace
} // namespace redislock::test::history
