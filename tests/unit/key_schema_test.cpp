#include "wire/key_schema.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

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

TEST(KeySchema, NamesWhatBelongsToACounterAsRedissonDoes)
{
    EXPECT_EQ(suffixed("n", "timeout"), "{n}:timeout");
    EXPECT_EQ(suffixed("{t}:n", "timeout"), "{t}:n:timeout");
    EXPECT_EQ(semaphoreChannel("n"), "redisson_sc:{n}");
    EXPECT_EQ(semaphoreChannel("{t}:n"), "redisson_sc:{t}:n");
    EXPECT_EQ(latchChannel("n"), "redisson_countdownlatch__channel__{n}");
    EXPECT_EQ(latchChannel("{t}:n"), "redisson_countdownlatch__channel__{{t}:n}") << "in braces whatever it is";
    EXPECT_EQ(requestKey("n", "id:7"), "redislock_request:{n}:id:7");
    EXPECT_EQ(requestKey("{t}:n", "id:7"), "redislock_request:{t}:n:id:7");
}

TEST(KeySchema, NamesTheKeysOfAllRequestsByOnePattern)
{
    using Keys = std::vector<std::string>;
    EXPECT_EQ(keyPatterns({}), Keys());
    EXPECT_EQ(keyPatterns({"n"}), Keys{"n"});
    EXPECT_EQ(keyPatterns({"n", "redisson_lock_queue:{n}", "{n}:timeout", requestKey("n", "id:7")}),
              (Keys{"n", "redisson_lock_queue:{n}", "{n}*", "redislock_request:{n}*"}));
    EXPECT_EQ(keyPatterns({"{t}:n", "redisson_lock_queue:{t}:n", "{t}:n", requestKey("{t}:n", "id:7")}),
              (Keys{"{t}:n", "redisson_lock_queue:{t}:n", "{t}:n*", "redislock_request:{t}:n*"}));
}

} // namespace
} // namespace redislock::detail
