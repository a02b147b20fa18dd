// Foreign histories: whatever cannot be understood is refused, with its place.
#include "history/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Why the history is refused; "judged" if it is not refused.
std::string refusalOf(const std::string& text)
{
    try {
        const auto history = understand(parseHistory(text, "theirs"));
        (void)summaryOf(history, check(history, {.leastHandOvers = 0}));
        return "judged";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

std::string textOfFile(const fs::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> linesOf(const std::string& text)
{
    static const std::regex line("[^\n]*\n");
    return {std::sregex_token_iterator(text.begin(), text.end(), line), std::sregex_token_iterator()};
}

const std::string quiet = R"({"t":5,"op":"quiet","phase":"event","count":0,"error":"subscriptions"})";

TEST(StrangeHistory, IsRefusedWithFileAndLine)
{
    const std::string begin = "// a remark\n" + quiet + "\n";
    const struct {
        const char* name;
        std::string line;
        const char* reason;
    } cases[] = {
        {"no JSON", "hello", "not a line of a history"},
        {"half a line", R"({"t":5,"op":"qu)", "not a line of a history"},
        {"no object", "[1,2]", "no object"},
        {"nothing in it", "{}", "'t' is missing"},
        {"bytes", std::string("\xff\x00\xfe", 3), "not a line of a history"},
        {"no op", R"({"t":5,"phase":"event"})", "'op' is missing"},
        {"an op of nobody", R"({"t":5,"op":"steal","phase":"event"})", "there is no op 'steal'"},
        {"our own word", R"({"t":5,"op":"unknown","phase":"event"})", "there is no op 'unknown'"},
        {"a phase of nobody", R"({"t":5,"op":"killed","phase":"soon","pid":1})", "there is no phase 'soon'"},
        {"a phase of others", R"({"t":5,"op":"killed","phase":"ok","pid":1})", "no 'killed' with the phase 'ok'"},
        {"a field of nobody", R"({"t":5,"op":"killed","phase":"event","pid":1,"pif":2})", "there is no field 'pif'"},
        {"a number as text", R"({"t":"5","op":"killed","phase":"event","pid":1})", "'t' is no whole number"},
        {"a fraction", R"({"t":5.5,"op":"killed","phase":"event","pid":1})", "'t' is no whole number"},
        {"a text as number", R"({"t":5,"op":"killed","phase":"event","pid":1,"lock":7})", "'lock' is no text"},
        {"a pid too large", R"({"t":5,"op":"killed","phase":"event","pid":5000000000})", "'pid' is out of range"},
        {"a time too large", R"({"t":9000000000000000000,"op":"killed","phase":"event","pid":1})", "'t' is out of"},
        {"more than 63 bits", R"({"t":18446744073709551615,"op":"killed","phase":"event","pid":1})", "'t' is out of"},
        {"a negative time", R"({"t":-5,"op":"killed","phase":"event","pid":1})", "'t' is out of range"},
        {"no process", R"({"t":5,"op":"killed","phase":"event"})", "needs the field 'pid'"},
        {"no deadline", R"({"t":5,"op":"lock","phase":"ok","pid":1,"lock":"a"})", "needs the field 'D'"},
        {"no expiry", R"({"t":5,"op":"pexpireat","phase":"event","lock":"a","tx":1,"offset":1})", "field 'expires'"},
        {"no offset", R"({"t":5,"op":"clock","phase":"event"})", "needs the field 'offset'"},
        {"another outcome", R"({"t":5,"op":"unlock","phase":"ok","pid":1,"lock":"a","error":"done"})", "be 'done'"},
        {"the end of nothing", R"({"t":5,"op":"unlock","phase":"fail","pid":1,"lock":"a"})", "did not begin"},
    };
    for (const auto& each : cases) {
        const auto refusal = refusalOf(begin + each.line + "\n" + quiet + "\n");
        EXPECT_THAT(refusal, HasSubstr(each.reason)) << each.name;
        EXPECT_THAT(refusal, HasSubstr("theirs:3: ")) << each.name;
    }
    EXPECT_EQ(refusalOf(begin), "judged");
}

TEST(StrangeHistory, MustHaveTheLinesOfAThreadAndOfTheStreamInTheirOrder)
{
    const std::string invoke = R"("op":"unlock","phase":"invoke","pid":1,"thread":1,"lock":"a"})";
    const std::string sample = R"("op":"sample","phase":"event","pid":1,"thread":1,"lock":"a","D":9})";
    const std::string later = R"({"t":7,)";
    const std::string earlier = R"({"t":6,)";
    EXPECT_EQ(refusalOf(earlier + invoke + "\n" + later + sample + "\n"), "judged");
    EXPECT_THAT(refusalOf(later + invoke + "\n" + earlier + sample + "\n"), HasSubstr("theirs:2: it is earlier"));

    const std::string del = R"("op":"del","phase":"event","lock":"a","tx":1,"offset":)";
    EXPECT_EQ(refusalOf(earlier + del + "1}\n" + later + del + "2}\n"), "judged");
    EXPECT_THAT(refusalOf(later + del + "1}\n" + earlier + del + "2}\n"), HasSubstr("theirs:2: it is earlier"));
    EXPECT_THAT(refusalOf(later + del + "2}\n" + later + del + "1}\n"), HasSubstr("theirs:2: it is earlier"));
    const std::string again = R"({"t":7,"op":"attached","phase":"event","offset":0})";
    EXPECT_THAT(refusalOf(later + del + "2}\n" + again + "\n" + later + del + "1}\n"), HasSubstr("no clock"))
        << "a server that starts again counts anew";
}

TEST(StrangeHistory, MayEndInTheMiddleOfALineIfItsProcessWasKilled)
{
    const std::string half = R"({"t":9,"pid":7,"op":"renew)";
    const std::string killed = R"({"t":8,"op":"killed","phase":"event","pid":7})";
    const std::string stopped = R"({"t":8,"op":"stopped","phase":"event","pid":7})";
    EXPECT_EQ(refusalOf(killed + "\n" + half), "judged");
    EXPECT_THAT(refusalOf(stopped + "\n" + half), HasSubstr("theirs:2: the line is cut off"));
    EXPECT_EQ(refusalOf(quiet), "judged") << "a whole last line needs no end";
}

TEST(StrangeHistory, OfNothingIsRefused)
{
    EXPECT_THAT(refusalOf(""), HasSubstr("empty"));
    EXPECT_THAT(refusalOf("\n\n// nothing\n"), HasSubstr("empty"));
    EXPECT_THROW(readHistory(fs::path(REDISLOCK_HISTORY_DATA)), std::runtime_error) << "no *.jsonl in it";
    EXPECT_THROW(readHistory(fs::path(REDISLOCK_HISTORY_DATA) / "none.jsonl"), std::runtime_error);
}

/// Each line of each history is left out, doubled, cut and moved, and loses each of its fields: the resulting history
/// is always judged or refused.
TEST(StrangeHistory, NeverEndsTheChecker)
{
    static const std::regex field(R"re("\w+":("[^"]*"|-?\d+),?)re");
    std::size_t judged = 0;
    std::size_t refused = 0;
    const auto tryText = [&](const std::vector<std::string>& lines) {
        std::string text;
        for (const auto& line : lines) {
            text += line;
        }
        ++(refusalOf(text) == "judged" ? judged : refused);
    };
    const auto lines = linesOf(textOfFile(fs::path(REDISLOCK_HISTORY_DATA) / "good" / "renewal_hindered.jsonl"));
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto with = [&](const std::string& line) {
            auto changed = lines;
            changed[i] = line;
            tryText(changed);
        };
        with("");
        with(lines[i] + lines[i]);
        with(lines[i].substr(0, lines[i].size() / 2) + "\n");
        auto moved = lines;
        std::swap(moved[i], moved[(i + lines.size() / 2) % lines.size()]);
        tryText(moved);
        for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), field), end; at != end; ++at) {
            with(std::string(at->prefix()) + std::string(at->suffix()));
        }
    }
    EXPECT_GT(judged, 100U);
    EXPECT_GT(refused, 100U);
}

/// Time and memory grow with the number of lines and not with its square: this takes a quarter of a second.
TEST(StrangeHistory, MayBeLong)
{
    const auto turn = [](std::size_t i) {
        const auto field = [](const char* name, std::size_t value) {
            return ",\"" + std::string(name) + "\":" + std::to_string(value);
        };
        const auto line = [&](std::size_t after, const std::string& rest) {
            return "{\"t\":" + std::to_string(i * 2'000'000 + after) + rest + ",\"lock\":\"a\"}\n";
        };
        const auto call = [&](const char* op, const char* phase) {
            return field("pid", 1 + i % 2) + R"(,"op":")" + op + R"(","phase":")" + phase + '"';
        };
        const auto done = [&](const char* op) {
            return std::string(R"(,"op":")") + op + R"(","phase":"event")" + field("offset", i * 3) + field("tx", i);
        };
        return line(0, call("lock", "invoke") + field("lease", 1000) + R"(,"error":"fixed")") +
               line(1, done("hset") + field("count", 1) + R"(,"holder":"h)" + std::to_string(i) + '"') +
               line(1, done("pexpireat") + field("expires", i * 2 + 1000)) +
               line(2, call("lock", "ok") + field("D", i * 2'000'000 + 900'000'000)) +
               line(3, call("unlock", "invoke")) + line(4, done("del")) +
               line(5, call("unlock", "ok") + R"(,"error":"released")");
    };
    std::string text;
    for (std::size_t i = 0; i < 10'000; ++i) {
        text += turn(i);
    }
    EXPECT_EQ(refusalOf(text), "judged");
}

} // namespace
} // namespace redislock::test::history
