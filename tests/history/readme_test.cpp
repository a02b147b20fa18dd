// Whether the README of this folder describes the format.
#include "history/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace redislock::test::history {
namespace {

using ::testing::HasSubstr;

class HistoryReadme : public ::testing::Test {
protected:
    [[nodiscard]] std::string example() const
    {
        const std::string fence = "```jsonl\n";
        const auto begin = text.find(fence) + fence.size();
        return text.substr(begin, text.find("```", begin) - begin);
    }

    static std::string brokenBy(const std::string& history)
    {
        const auto report = check(understand(parseHistory(history, "README.md")), {.leastHandOvers = 1});
        return report.violations.empty() ? "none" : report.violations.front().invariant;
    }

    static std::string replaced(std::string history, const std::string& what, const std::string& by)
    {
        const auto at = history.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        return history.replace(at, what.size(), by);
    }

    std::ifstream file{std::filesystem::path(REDISLOCK_HISTORY_DATA).parent_path() / "README.md"};
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
};

TEST_F(HistoryReadme, HasAnExampleThatIsGood)
{
    EXPECT_EQ(brokenBy(example()), "none");
}

TEST_F(HistoryReadme, SaysWhatWouldBeBad)
{
    EXPECT_EQ(brokenBy(replaced(example(), "\"D\":998000000", "\"D\":1010000000")), "S3");
    EXPECT_EQ(brokenBy(replaced(example(), "{\"t\":32000000", "{\"t\":25000000")), "S1");
}

TEST_F(HistoryReadme, NamesEveryKindOfLineEveryFieldAndEveryKindOfLock)
{
    for (int i = 1; i <= static_cast<int>(Op::moved); ++i) {
        EXPECT_THAT(text, HasSubstr("`" + std::string(nameOf(static_cast<Op>(i))) + "`"));
    }
    for (const std::string field : {"t", "op", "phase", "pid", "thread", "client", "holder", "lock", "D", "count",
                                    "lease", "wait", "offset", "tx", "expires", "error", "kind", "token"}) {
        EXPECT_THAT(text, HasSubstr("`" + field + "`"));
    }
    for (const auto& kind : kinds) {
        EXPECT_THAT(text, HasSubstr("`" + std::string(kind.name) + "`"));
    }
}

} // namespace
} // namespace redislock::test::history
