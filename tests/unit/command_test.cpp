#include "wire/command.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace redislock::detail {
namespace {

using namespace std::string_view_literals;

TEST(Command, IsAnArrayOfBulkStrings)
{
    std::string bytes;
    appendCommand(bytes, {"GET", "stock:42"});
    EXPECT_EQ(bytes, "*2\r\n$3\r\nGET\r\n$8\r\nstock:42\r\n");
}

TEST(Command, IsAppendedToWhatIsThere)
{
    std::string bytes = "before";
    appendCommand(bytes, {"PING"});
    appendCommand(bytes, {"PING"});
    EXPECT_EQ(bytes, "before*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
}

TEST(Command, ArgumentsMayHaveAnyBytes)
{
    struct Case {
        const char* name;
        std::string_view argument;
        std::string_view bytes;
    };
    const Case cases[] = {
        {"empty", ""sv, "$0\r\n\r\n"sv},
        {"NUL", "a\0b"sv, "$3\r\na\0b\r\n"sv},
        {"line ends", "\r\n$1\r\n"sv, "$6\r\n\r\n$1\r\n\r\n"sv},
        {"bytes, not characters", "\xc3\xa4\xff"sv, "$3\r\n\xc3\xa4\xff\r\n"sv},
    };
    for (const Case& c : cases) {
        std::string bytes;
        appendArgument(bytes, c.argument);
        EXPECT_EQ(bytes, c.bytes) << c.name;
    }
}

TEST(Command, NumbersAreDecimal)
{
    struct Case {
        std::int64_t number;
        const char* bytes;
    };
    const Case cases[] = {
        {0, "$1\r\n0\r\n"},
        {30000, "$5\r\n30000\r\n"},
        {-1, "$2\r\n-1\r\n"},
        {std::numeric_limits<std::int64_t>::max(), "$19\r\n9223372036854775807\r\n"},
        {std::numeric_limits<std::int64_t>::min(), "$20\r\n-9223372036854775808\r\n"},
    };
    for (const Case& c : cases) {
        std::string bytes;
        appendArgument(bytes, c.number);
        EXPECT_EQ(bytes, c.bytes);
    }
}

TEST(Command, LengthsOfEverySizeAreRight)
{
    for (std::size_t size = 1; size <= 1'000'000; size *= 10) {
        std::string bytes;
        appendArgument(bytes, std::string(size, 'x'));
        EXPECT_EQ(bytes, "$" + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n");
    }
    std::string header;
    appendHeader(header, '*', std::numeric_limits<std::size_t>::max());
    EXPECT_EQ(header, "*18446744073709551615\r\n");
}

} // namespace
} // namespace redislock::detail
