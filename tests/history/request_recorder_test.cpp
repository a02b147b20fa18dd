// Lines of MONITOR.
#include "history/request_recorder.hpp"

#include "wire/script.hpp"

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
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 127.0.0.1:6000] "EVAL" "-- a\nb")"),
              (Words{"EVAL", "-- a\nb"}));
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 unix:/tmp/a] "PING")"), Words{"PING"});
}

TEST(MonitorLine, OfAScriptsOwnCommandIsLeftOut)
{
    EXPECT_EQ(wordsOfMonitorLine(R"(1795273334.441061 [0 lua] "DEL" "a")"), Words{});
    EXPECT_EQ(wordsOfMonitorLine("OK"), Words{});
    EXPECT_EQ(wordsOfMonitorLine(""), Words{});
}

TEST(Request, IsToldByItsScript)
{
    namespace scripts = redislock::detail::scripts;
    const auto verbOf = [](const Words& words) {
        std::string told;
        for (const auto& request : requestsOf(words)) {
            told += (told.empty() ? "" : ", ") + request.error + " " + request.lock + " " + request.holder;
        }
        return told.empty() ? "none" : told;
    };
    const std::string renew(scripts::redisLockRenew.sha1);
    EXPECT_EQ(verbOf({"EVALSHA", renew, "1", "a", "c:1", "1000"}), "renew a c:1");
    EXPECT_EQ(verbOf({"EVAL", scripts::redisLockLock.text(), "1", "a", "c:1", "1000", "1"}), "lock a c:1");
    EXPECT_EQ(verbOf({"EVALSHA", std::string(scripts::redisLockUnlock.sha1), "1", "a", "c:1", "0", "1", "ch"}),
              "unlock a c:1");
    EXPECT_EQ(verbOf({"EVALSHA", std::string(scripts::fencedLockLock.sha1), "2", "a", "t", "c:1", "1000", "1"}),
              "lock a c:1");
    EXPECT_EQ(verbOf({"EVALSHA", renew, "2", "a", "b", "c:1", "1000", "c:2", "2000"}), "renew a c:1, renew b c:2");
    EXPECT_EQ(verbOf({"EVALSHA", std::string(scripts::readLockRenew.sha1), "4", "a", "{a}", "b", "{b}", "c:1", "1000",
                      "c:2", "2000"}),
              "renew a c:1, renew b c:2");
    EXPECT_EQ(verbOf({"EVALSHA", "redisson's", "1", "a", "1000", "u:7"}), "lock a u:7");
    EXPECT_EQ(verbOf({"EVALSHA", renew, "1", "a"}), "none");
    EXPECT_EQ(verbOf({"PING"}), "none");
    EXPECT_EQ(verbOf({}), "none");
    EXPECT_EQ(verbOf({"EVALSHA", "1f", "1", "a", "c:1", "1000"}), "none");
    EXPECT_EQ(verbOf({"SET", renew, "1", "a", "c:1", "1000"}), "none");
}

} // namespace
} // namespace redislock::test::history
