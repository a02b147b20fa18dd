#include "scripts/counter_script_test.hpp"

namespace redislock::test {
namespace {

class CountDownLatchScript : public CounterScriptTest {
protected:
    Value set(const std::string& id, std::int64_t count)
    {
        return run(detail::scripts::counterTrySet, keys(id), {std::to_string(count), "0", channel, "1", keep});
    }
    Value countDown(const std::string& id)
    {
        return run(detail::scripts::countDownLatchCountDown, keys(id), {channel, keep});
    }

    const std::string channel = "redisson_countdownlatch__channel__{stock:42}";
};

TEST_F(CountDownLatchScript, OpensAtZeroAndItsKeyIsGone)
{
    RawRedis waiter = listenTo(channel);
    EXPECT_THAT(set("a", 2), Number(1));
    EXPECT_THAT(set("b", 5), Number(0));
    EXPECT_THAT(countDown("c"), Number(1));
    EXPECT_EQ(redis.get(name), "1");
    EXPECT_THAT(countDown("d"), Number(0));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_EQ(messages(waiter), (Words{channel + " 1", channel + " 0"}));
}

TEST_F(CountDownLatchScript, CountsEachRequestOnceThoughTheLatchWasSetAgain)
{
    set("a", 2);
    EXPECT_THAT(countDown("b"), Number(1));
    EXPECT_THAT(countDown("b"), Number(1));
    EXPECT_THAT(countDown("c"), Number(0));
    set("d", 5);
    EXPECT_THAT(countDown("b"), Number(1));
    EXPECT_THAT(countDown("c"), Number(0));
    EXPECT_EQ(redis.get(name), "5");
}

TEST_F(CountDownLatchScript, LeavesAnOpenLatchOpenForLateCopiesToo)
{
    RawRedis waiter = listenTo(channel);
    EXPECT_THAT(countDown("a"), Number(0));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_EQ(messages(waiter), Words{});
    set("b", 2);
    EXPECT_THAT(countDown("a"), Number(0));
    EXPECT_EQ(redis.get(name), "2");
}

TEST_F(CountDownLatchScript, UsesOneChannelWhateverBracesTheNameHas)
{
    EXPECT_EQ(detail::latchChannel("x"), "redisson_countdownlatch__channel__{x}");
    EXPECT_EQ(detail::latchChannel("{t}:x"), "redisson_countdownlatch__channel__{{t}:x}");
}

TEST_F(CountDownLatchScript, CountsDownWhenMemoryIsOut)
{
    set("a", 2);
    runOutOfMemory();
    EXPECT_THAT(countDown("b"), Number(1));
    EXPECT_THAT(countDown("c"), Number(0));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(CountDownLatchScript, LeavesAnythingElseAtTheNameAlone)
{
    redis.command({"SET", name, "text"});
    EXPECT_THAT(countDown("a"), ErrorLike("WRONGTYPE"));
    EXPECT_EQ(redis.get(name), "text");
    redis.command({"DEL", name});
    redis.command({"HSET", name, "field", "1"});
    EXPECT_THAT(countDown("a"), ErrorLike("WRONGTYPE"));
    EXPECT_THAT(run(detail::scripts::counterDelete, {name, name, request("b")}, {channel, keep}),
                ErrorLike("WRONGTYPE"));
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
    EXPECT_THAT(run(detail::scripts::countDownLatchCountDown, keys("a"), {channel, "x"}),
                ErrorLike("ERR redislock: bad arguments"));
}

} // namespace
} // namespace redislock::test
