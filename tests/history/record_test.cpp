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
            .op = Op::lock,
            .phase = Phase::ok,
            .deadline = 123456789999999,
            .count = 2,
            .leaseMs = 1000,
            .waitMs = 0,
            .offset = 5,
            .tx = 6,
            .expiresMs = 1795273334545,
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
    for (int i = 0; i <= static_cast<int>(Op::quiet); ++i) {
        const auto op = static_cast<Op>(i);
        EXPECT_EQ(fromLine(toLine({.t = 1, .op = op})).op, op) << nameOf(op);
    }
}

TEST(History, IsSortedByTimeAndForgetsALineWithoutEnd)
{
    const auto text =
        toLine({.t = 2, .op = Op::del}) + "// a remark\n" + toLine({.t = 1, .op = Op::hset}) + "{\"t\":3,";
    const auto records = parseHistory(text, "here");
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].op, Op::hset);
    EXPECT_EQ(records[0].source, "here:3");
    EXPECT_THROW(parseHistory("{\"t\":3}\n", "here"), std::runtime_error);
    EXPECT_THROW(parseHistory("no json\n", "here"), std::runtime_error);
}

TEST(Recorder, AppendsLinesWithTimeAndProcess)
{
    const auto file = std::filesystem::temp_directory_path() / ("recorder-" + std::to_string(::getpid()) + ".jsonl");
    {
        Recorder recorder(file);
        recorder.write({.op = Op::lost});
    }
    Recorder(file).write({.op = Op::renewed});
    const auto records = readHistory(file);
    std::filesystem::remove(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].op, Op::lost);
    EXPECT_EQ(records[0].pid, ::getpid());
    EXPECT_GT(records[1].t, records[0].t);
}

} // namespace
} // namespace redislock::test::history
