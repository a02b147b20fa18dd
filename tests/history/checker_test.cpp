// The checker against histories that were made by hand: for every invariant there are histories that break it.
#include "history/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path data = REDISLOCK_HISTORY_DATA;

std::vector<fs::path> filesOf(const std::string& folder)
{
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(data / folder)) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

const Limits few{.leastHandOvers = 1};

std::string violationsOf(const History& history, const Report& report)
{
    std::string text;
    for (const auto& violation : report.violations) {
        text += textOf(history, violation);
    }
    return text;
}

/// All invariants that the checker judges; doc/safety.md describes them.
const std::set<std::string> invariants{"S1",  "S2",  "S3",  "S4",  "S5", "S6", "S7",          "S8", "S9",
                                       "S10", "S11", "S12", "S13", "T1", "T6", "T2",          "T3", "T4",
                                       "T5",  "T7",  "T8",  "T9",  "R1", "R4", "linearizable"};

/// The name of a bad history begins with the invariant that it breaks.
std::string invariantOf(const fs::path& file)
{
    const auto name = file.stem().string();
    return name.substr(0, name.find('-'));
}

TEST(Checker, AcceptsWhatIsGood)
{
    std::set<std::string> judged;
    for (const auto& file : filesOf("good")) {
        const auto history = understand(readHistory(file));
        const auto report = check(history, few);
        EXPECT_EQ(violationsOf(history, report), "") << file;
        for (const auto& [invariant, times] : report.judged) {
            judged.insert(invariant);
        }
    }
    EXPECT_EQ(judged, invariants) << "each invariant needs a good history that could have broken it";
}

TEST(Checker, RejectsEachBrokenInvariantByItsName)
{
    std::set<std::string> broken;
    for (const auto& file : filesOf("bad")) {
        const auto invariant = invariantOf(file);
        broken.insert(invariant);
        const auto history = understand(readHistory(file));
        const auto report = check(history, few);
        const auto found = std::find_if(report.violations.begin(), report.violations.end(),
                                        [&](const Violation& violation) { return violation.invariant == invariant; });
        ASSERT_NE(found, report.violations.end()) << file << " broke only:\n" << violationsOf(history, report);
        EXPECT_THAT(textOf(history, *found), HasSubstr(invariant));
        EXPECT_THAT(timelineSvg(history, *found), HasSubstr("</svg>"));
    }
    EXPECT_EQ(broken, invariants) << "each invariant needs a history that breaks it";
}

TEST(Checker, SaysWhatItHadToJudge)
{
    const auto history = understand(readHistory(data / "good" / "turns.jsonl"));
    const auto report = check(history, few);
    EXPECT_EQ(report.judged.at("S2"), 2U);
    EXPECT_EQ(report.judged.count("T3"), 0U) << "nothing was lost";
    EXPECT_THAT(summaryOf(history, report), HasSubstr("S2 2"));
}

TEST(Checker, RefusesAHistoryWithTooFewChangesOfHolder)
{
    const auto history = understand(readHistory(data / "good" / "turns.jsonl"));
    EXPECT_EQ(history.handOvers(), 1U);
    EXPECT_THROW(check(history, {.leastHandOvers = 2}), Refused);
}

TEST(Checker, RefusesAWallClockThatWasSet)
{
    auto records = readHistory(data / "good" / "turns.jsonl");
    records.back().offset = 2 * millisecond;
    ASSERT_EQ(records.back().op, Op::clock);
    EXPECT_THROW(understand(records), Refused);
}

TEST(Checker, RefusesLinesThatNoProgramCanWrite)
{
    EXPECT_THROW(understand({}), Refused);
    EXPECT_THROW(understand({{.t = 1, .op = Op::unlock, .phase = Phase::ok}}), Refused);
    const Record invoke{.t = 1, .op = Op::lock, .phase = Phase::invoke};
    EXPECT_THROW(understand({invoke, invoke}), Refused);
}

TEST(Checker, DrawsBeliefsGrantsAndFaults)
{
    const auto history = understand(readHistory(data / "good" / "given_back.jsonl"));
    const auto svg = timelineSvg(history, {"S1", "a", 500 * millisecond, "<&>", history.records});
    EXPECT_THAT(svg, HasSubstr("c10:3"));
    EXPECT_THAT(svg, HasSubstr("believes: c10:4"));
    EXPECT_THAT(svg, HasSubstr("replies lost"));
    EXPECT_THAT(svg, HasSubstr("&lt;&amp;>"));
}

} // namespace
} // namespace redislock::test::history
