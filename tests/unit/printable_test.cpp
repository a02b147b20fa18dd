#include "values/printable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace redislock::detail {
namespace {

using namespace std::string_view_literals;

TEST(Printable, EscapesEverythingButPrintableAscii)
{
    struct Case {
        const char* name;
        std::string_view bytes;
        std::string_view text;
    };
    const Case cases[] = {
        {"nothing", "", ""},
        {"a name", "stock:{42} ~!", "stock:{42} ~!"},
        {"NUL in the middle", "a\0b"sv, R"(a\x00b)"},
        {"line breaks", "a\r\nb", R"(a\x0d\x0ab)"},
        {"terminal escape", "\x1b[31m", R"(\x1b[31m)"},
        {"DEL", "\x7f", R"(\x7f)"},
        {"highest byte", "\xff", R"(\xff)"},
        {"UTF-8", "\xc3\xa4", R"(\xc3\xa4)"},
        {"a backslash is told from an escape", R"(\x00)", R"(\\x00)"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(printable(c.bytes), c.text) << c.name;
    }
}

TEST(Printable, CutsWhatIsTooLongAndSaysSo)
{
    EXPECT_EQ(printable("abcdefgh", 8), "abcdefgh");
    EXPECT_EQ(printable("abcdefghi", 8), "abcde...");
    EXPECT_EQ(printable(std::string(1000, 'a')), std::string(77, 'a') + "...");
    EXPECT_EQ(printable("abcdefgh", 3), "...");
    EXPECT_EQ(printable("abcdefgh", 2), "..");
    EXPECT_EQ(printable("abcdefgh", 0), "");
    EXPECT_EQ(printable("", 0), "");
}

TEST(Printable, NeverCutsAnEscapeInTwo)
{
    EXPECT_EQ(printable("\1\2\3", 12), R"(\x01\x02\x03)");
    EXPECT_EQ(printable("\1\2\3", 11), R"(\x01\x02...)");
    EXPECT_EQ(printable("\1\2\3", 10), R"(\x01...)");
    EXPECT_EQ(printable("\\\\\\", 5), R"(\\...)");
}

TEST(Printable, IsShortAndCleanForEveryByteAndEveryLimit)
{
    std::string all;
    for (int byte = 255; byte >= 0; --byte) {
        all.push_back(static_cast<char>(byte));
    }
    for (std::size_t limit = 0; limit < 1100; ++limit) {
        const std::string text = printable(all, limit);
        EXPECT_LE(text.size(), limit);
        EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) << text;
    }
}

} // namespace
} // namespace redislock::detail
