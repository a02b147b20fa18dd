// The script that checks the token of a user's own writes to Redis.
#include "redislock/fencing.hpp"
#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using ::testing::StartsWith;

class FencedScript : public ScriptTest {
protected:
    /// Writes the value as the holder of this token.
    Value write(const std::string& token, const std::string& value, TokenUse use = TokenUse::manyTimes,
                const std::string& keptMs = "60000")
    {
        const auto script = fencedScript("return redis.call('set', KEYS[2], ARGV[3], 'px', 60000)", use);
        return redis.command({"EVAL", script, "2", "{price}:token", "{price}", token, keptMs, value});
    }
    std::string value() { return redis.command({"GET", "{price}"}).text(); }
};

TEST_F(FencedScript, RefusesWhoComesAfterAGreaterToken)
{
    EXPECT_EQ(write("33", "of the first").text(), "OK");
    EXPECT_EQ(write("33", "of the first again").text(), "OK");
    EXPECT_EQ(write("34", "of the second").text(), "OK");
    EXPECT_THAT(write("33", "of the first, late").text(), StartsWith("FENCED the token 33 is refused: 34"));
    EXPECT_EQ(value(), "of the second");
}

TEST_F(FencedScript, AcceptsATokenOnceWhereThatIsWanted)
{
    EXPECT_EQ(write("33", "once", TokenUse::once).text(), "OK");
    EXPECT_THAT(write("33", "twice", TokenUse::once).text(), StartsWith("FENCED"));
    EXPECT_EQ(write("34", "by another", TokenUse::once).text(), "OK");
    EXPECT_EQ(value(), "by another");
}

TEST_F(FencedScript, OrdersTokensThatNoDoubleCanTellApart)
{
    EXPECT_EQ(write("9007199254740993", "2^53 + 1").text(), "OK");
    EXPECT_THAT(write("9007199254740992", "2^53").text(), StartsWith("FENCED"));
    EXPECT_EQ(write("18446744073709551615", "the greatest").text(), "OK");
    EXPECT_THAT(write("9999999999999999999", "shorter").text(), StartsWith("FENCED"));
}

TEST_F(FencedScript, RefusesATokenThatIsNone)
{
    for (const std::string token : {"", "0", "-1", "1.5", "1e3", "x", "33 "}) {
        EXPECT_THAT(write(token, "of nobody").text(), StartsWith("ERR the token")) << token;
    }
    for (const std::string time : {"", "0", "-1", "soon"}) {
        EXPECT_THAT(write("33", "for no time", TokenUse::manyTimes, time).text(), StartsWith("ERR the token")) << time;
    }
    EXPECT_FALSE(redis.exists("{price}"));
    EXPECT_FALSE(redis.exists("{price}:token"));
}

TEST_F(FencedScript, ForgetsATokenInTime)
{
    write("33", "of the first", TokenUse::manyTimes, "5000");
    EXPECT_GT(redis.pttl("{price}:token"), std::chrono::milliseconds(0));
    EXPECT_LE(redis.pttl("{price}:token"), std::chrono::milliseconds(5000));
}

} // namespace
} // namespace redislock::test
