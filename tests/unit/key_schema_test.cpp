#include "redislock/detail/protocol/key_schema.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace redislock::detail {
namespace {

using namespace std::string_literals;

TEST(KeySchema, PutsANameInBracesUnlessItHasOne)
{
    struct Case {
        const char* name;
        std::string lock;
        std::string channel;
    };
    const Case cases[] = {
        {"plain", "order", "redisson_lock__channel:{order}"},
        {"hash tag", "{tenant}:order", "redisson_lock__channel:{tenant}:order"},
        {"hash tag at the end", "order:{7}", "redisson_lock__channel:order:{7}"},
        {"only an opening brace", "a{b", "redisson_lock__channel:a{b"},
        {"only a closing brace", "a}b", "redisson_lock__channel:{a}b}"},
        {"space", "a b", "redisson_lock__channel:{a b}"},
        {"NUL", "a\0b"s, "redisson_lock__channel:{a\0b}"s},
        {"not UTF-8", "\xff", "redisson_lock__channel:{\xff}"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(lockChannel(c.lock), c.channel) << c.name;
    }
}

TEST(KeySchema, KeepsNamesApartThatDifferAfterANul)
{
    EXPECT_NE(lockChannel("a\0b"s), lockChannel("a\0c"s));
    EXPECT_NE(lockChannel("a\0"s), lockChannel("a"));
}

TEST(KeySchema, TakesAnyPrefix)
{
    EXPECT_EQ(prefixed("p", "n"), "p:{n}");
    EXPECT_EQ(prefixed("p", "{n}"), "p:{n}");
}

} // namespace
} // namespace redislock::detail
