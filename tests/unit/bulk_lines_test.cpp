#include "wire/bulk_lines.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {
namespace {

using LinesStatus = BulkLines::Status;

struct ReadLines {
    std::vector<std::string> lines;
    LinesStatus status = LinesStatus::needMore;
    std::string error;
};

ReadLines readLines(std::string_view bytes, std::size_t piece)
{
    ReadLines read;
    BulkLines decoder;
    for (std::size_t at = 0; at < bytes.size() && read.status == LinesStatus::needMore; at += piece) {
        read.status =
            decoder.feed(bytes.substr(at, piece), [&read](std::string_view line) { read.lines.emplace_back(line); });
    }
    read.error = decoder.error();
    return read;
}

TEST(BulkLines, GivesEachLineHoweverTheBytesCome)
{
    const std::string bytes = "$15\r\nid=1 a\nid=22 b\n\r\n";
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
        const auto read = readLines(bytes, piece);
        EXPECT_EQ(read.status, LinesStatus::complete) << piece;
        EXPECT_EQ(read.lines, (std::vector<std::string>{"id=1 a", "id=22 b"})) << piece;
    }
}

TEST(BulkLines, TheLastLineNeedsNoEnd)
{
    EXPECT_EQ(readLines("$3\r\na\nb\r\n", 64).lines, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(readLines("$0\r\n\r\n", 1).status, LinesStatus::complete);
    EXPECT_TRUE(readLines("$0\r\n\r\n", 1).lines.empty());
}

TEST(BulkLines, TellsARefusal)
{
    for (const std::size_t piece : {1U, 100U}) {
        const auto read = readLines("-NOPERM no\r\n", piece);
        EXPECT_EQ(read.status, LinesStatus::refused);
        EXPECT_EQ(read.error, "NOPERM no");
    }
}

TEST(BulkLines, AnythingElseIsBroken)
{
    for (const std::string& bytes :
         {std::string(":1\r\n"), std::string("$-1\r\n"), std::string("$1x\r\n"), std::string("\r\n"),
          std::string("$\r\n"), std::string("*1\r\n"), std::string("$1\r\na\r\nb"),
          std::string("$99999999999999999999999\r\n"), std::string(3 * BulkLines::maxLine, '1')}) {
        EXPECT_EQ(readLines(bytes, 100).status, LinesStatus::broken) << bytes.substr(0, 40);
    }
}

TEST(BulkLines, KeepsNoMoreThanALimitOfALine)
{
    const std::string body = std::string(3 * BulkLines::maxLine, 'x') + "\ny\n";
    const auto read = readLines("$" + std::to_string(body.size()) + "\r\n" + body + "\r\n", 1000);
    EXPECT_EQ(read.status, LinesStatus::complete);
    EXPECT_EQ(read.lines, (std::vector<std::string>{std::string(BulkLines::maxLine, 'x'), "y"}));
}

TEST(ClientLine, HasFields)
{
    const std::string_view line = "id=3 addr=10.0.0.7:50222 laddr=1.1.1.1:1 fd=8 name=orders:x age=1 lib-name=";
    EXPECT_EQ(fieldOf(line, "addr"), "10.0.0.7:50222");
    EXPECT_EQ(fieldOf(line, "name"), "orders:x");
    EXPECT_EQ(fieldOf(line, "id"), "3");
    EXPECT_EQ(fieldOf(line, "lib-name"), "");
    EXPECT_EQ(fieldOf(line, "user"), "");
    EXPECT_EQ(fieldOf("", "id"), "");
}

} // namespace
} // namespace redislock::detail
