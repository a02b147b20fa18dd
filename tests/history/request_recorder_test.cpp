// Lines of MONITOR.
#include "history/request_recorder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

using Words = std::vector<std::string>;

TEST(MonitorLine, HasTheWordsOfAClientsCommand)
{
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 127.0.0.1:6000] "GET" "a \"b\" \\ c" "")"),
              (Words{"GET", "a \"b\" \\ c", ""}));
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 unix:/tmp/a] "PING")"), Words{"PING"});
}

TEST(MonitorLine, OfAScriptsOwnCommandIsLeftOut)
{
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 lua] "DEL" "a")"), Words{});
    EXPECT_EQ(wordsOfMonitorLine("OK"), Words{});
    EXPECT_EQ(wordsOfMonitorLine(""), Words{});
}

TEST(Request, IsToldByItsNumberOfArguments)
{
    const auto verbOf = [](const Words& words) {
        const auto request = requestOf(words);
        return request ? request->error + " " + request->lock + " " + request->holder : "none";
    };
    EXPECT_EQ(verbOf({"EVALSHA", "1f", "1", "a", "c:1", "1000"}), "renew a c:1");
    EXPECT_EQ(verbOf({"EVAL", "...", "1", "a", "c:1", "1000", "1"}), "lock a c:1");
    EXPECT_EQ(verbOf({"EVALSHA", "1f", "1", "a", "c:1", "0", "1", "ch"}), "unlock a c:1");
    EXPECT_EQ(verbOf({"EVALSHA", "1f", "1", "a"}), "none");
    EXPECT_EQ(verbOf({"SET", "1", "1", "a", "c:1", "1000"}), "none");
}

} // namespace
} // namespace redislock::test::history
