// The format of a history.
#include "history/record.hpp"
#include "history/recorder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

namespace redislock::test::history {
namespace {

Record full()
{
    return {.t = 123456789012345,
            .pid = 17,
            .thread = 3,
            .client = "c",
            .holder = "c:1",
            .lock = "stock:\"42\"\n",
            .kind = "fenced",
            .op = Op::lock,
            .phase = Phase::ok,
            .deadline = 123456789999999,
            .count = 2,
            .leaseMs = 1000,
            .waitMs = 0,
            .offset = 5,
            .tx = 6,
            .expiresMs = 1795273334545,
            .token = 7,
            .error = "none"};
}

TEST(Record, IsReadAsItWasWritten)
{
    const auto line = toLine(full());
    EXPECT_EQ(line.find('\n'), line.size() - 1) << "one record is one line";
    EXPECT_EQ(toLine(fromLine(line)), line);
    EXPECT_EQ(fromLine(line).lock, full().lock);
    EXPECT_EQ(fromLine(line).deadline, full().deadline);
}

TEST(Record, LeavesOutWhatDoesNotConcernIt)
{
    const auto line = toLine({.t = 1, .op = Op::quiet});
    EXPECT_EQ(line, "{\"t\":1,\"pid\":0,\"thread\":0,\"op\":\"quiet\",\"phase\":\"event\"}\n");
    EXPECT_EQ(fromLine(line).count, std::nullopt);
}

TEST(Record, OfEveryKindHasAName)
{
    for (int i = 1; i <= static_cast<int>(Op::quiet); ++i) {
        const auto op = static_cast<Op>(i);
        EXPECT_EQ(fromLine(toLine({.t = 1, .op = op})).op, op) << nameOf(op);
    }
}

TEST(History, IsSortedByTimeAndKnowsALineThatIsCutOff)
{
    const auto text = toLine({.t = 2, .op = Op::detached}) + "// a remark\n" +
                      toLine({.t = 1, .pid = 7, .op = Op::killed}) + "{\"t\":3,";
    const auto records = parseHistory(text, "here");
    ASSERT_EQ(records.size(), 3U);
    EXPECT_EQ(records[0].op, Op::killed);
    EXPECT_EQ(records[0].source(), "here:3");
    EXPECT_EQ(records[1].op, Op::unknown);
    EXPECT_EQ(records[1].pid, 7);
    EXPECT_EQ(records[1].source(), "here:4");
    EXPECT_EQ(records[2].op, Op::detached);
}

TEST(Recorder, AppendsLinesWithTimeAndProcess)
{
    const auto file = std::filesystem::temp_directory_path() / ("recorder-" + std::to_string(::getpid()) + ".jsonl");
    {
        Recorder recorder(file);
        recorder.write({.op = Op::stopped});
    }
    Recorder(file).write({.op = Op::resumed});
    const auto records = readHistory(file);
    std::filesystem::remove(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].op, Op::stopped);
    EXPECT_EQ(records[0].pid, ::getpid());
    EXPECT_GT(records[1].t, records[0].t);
}

} // namespace
} // namespace redislock::test::history
