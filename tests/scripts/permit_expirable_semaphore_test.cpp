#include "scripts/counter_script_test.hpp"

#include "support/eventually.hpp"

namespace redislock::test {
namespace {

using namespace std::chrono_literals;

class PermitScript : public CounterScriptTest {
protected:
    PermitScript() { foreign.insert(timeouts); }

    Value acquire(char id, std::int64_t leaseMs)
    {
        return run(detail::scripts::permitExpirableSemaphoreAcquire, all(id),
                   {raw(id), std::to_string(leaseMs), channel});
    }
    Value release(char id, const std::string& keepMs = "0")
    {
        return run(detail::scripts::permitExpirableSemaphoreRelease, all(id), {raw(id), channel, keepMs});
    }
    Value lease(char id, const std::string& leaseMs = "", const std::string& number = "0",
                const std::string& keepMs = "0")
    {
        return run(detail::scripts::permitExpirableSemaphoreLease, all(id), {raw(id), leaseMs, number, keepMs});
    }
    Value set(const std::string& id, std::int64_t permits)
    {
        return run(detail::scripts::permitExpirableSemaphoreSet, {name, timeouts, request(id)},
                   {std::to_string(permits), channel, keep});
    }
    /// Free permits and taken permits.
    std::pair<std::int64_t, std::int64_t> count()
    {
        const Value both = run(detail::scripts::permitExpirableSemaphoreCount, {name, timeouts}, {channel});
        return {both.elements.at(0).integer(), both.elements.at(1).integer()};
    }
    static std::string raw(char id) { return std::string(16, id); }
    [[nodiscard]] Words all(char id) const { return {name, timeouts, request(std::string(32, id))}; }
    /// The lease of a permit ends, as if its time were over.
    void expire(char id) { redis.command({"ZADD", timeouts, "1000", raw(id)}); }

    using Counts = std::pair<std::int64_t, std::int64_t>;
    const std::string timeouts = "{stock:42}:timeout";
    const std::string channel = "redisson_sc:{stock:42}";
};

TEST_F(PermitScript, GivesOnePermitToAnIdHoweverOftenItAsks)
{
    trySet("a", 2);
    EXPECT_THAT(acquire('a', 30'000), Nil());
    EXPECT_THAT(acquire('a', 30'000), Nil());
    EXPECT_EQ(redis.get(name), "1");
    EXPECT_THAT(acquire('b', 0), Nil());
    EXPECT_EQ(redis.command({"ZSCORE", timeouts, raw('b')}).text(), "922337203685477");
    EXPECT_THAT(acquire('c', 30'000).integer(), JustSet(30'000)) << "the first to end";
    EXPECT_EQ(count(), Counts(0, 2));
}

TEST_F(PermitScript, TellsWhenThereIsNothingToWaitFor)
{
    EXPECT_THAT(acquire('a', 30'000), Number(-1));
    trySet("a", 1);
    acquire('a', 0);
    EXPECT_THAT(acquire('b', 30'000), Number(-1));
}

TEST_F(PermitScript, ReleasesOncePerId)
{
    trySet("a", 1);
    acquire('a', 30'000);
    EXPECT_THAT(release('b'), Number(0));
    EXPECT_THAT(release('a'), Number(1));
    EXPECT_THAT(release('a'), Number(0));
    EXPECT_EQ(count(), Counts(1, 0));
}

TEST_F(PermitScript, WithATombstoneALateCopyOfTheAcquireTakesNothing)
{
    trySet("a", 1);
    acquire('a', 30'000);
    EXPECT_THAT(release('a', keep), Number(1));
    EXPECT_THAT(acquire('a', 30'000), Number(-1));
    EXPECT_THAT(release('b', keep), Number(0));
    EXPECT_THAT(acquire('b', 30'000), Number(-1)) << "it was given up before it came";
    EXPECT_EQ(count(), Counts(1, 0));
}

TEST_F(PermitScript, ExpiredPermitsBecomeFreeAllAtOnce)
{
    RawRedis waiter = listenTo(channel);
    trySet("a", 3);
    for (const char id : {'a', 'b', 'c'}) {
        acquire(id, 30'000);
    }
    for (const char id : {'a', 'b', 'c'}) {
        expire(id);
    }
    EXPECT_THAT(acquire('d', 30'000), Nil());
    EXPECT_EQ(redis.get(name), "2");
    EXPECT_EQ(count(), Counts(2, 1));
    EXPECT_EQ(messages(waiter), (Words{channel + " 3", channel + " 2"}));
    expire('d');
    EXPECT_EQ(count(), Counts(3, 0));
    EXPECT_EQ(messages(waiter), Words{channel + " 3"});
}

TEST_F(PermitScript, ReleaseOfAnExpiredPermitGivesItBackAndSaysSo)
{
    trySet("a", 1);
    acquire('a', 30'000);
    expire('a');
    EXPECT_THAT(release('a'), Number(2));
    EXPECT_THAT(release('a'), Number(0));
    EXPECT_EQ(count(), Counts(1, 0));
}

TEST_F(PermitScript, LeasesAreSetAnewWhileTheyLast)
{
    trySet("a", 2);
    acquire('a', 30'000);
    EXPECT_THAT(lease('a').integer(), JustSet(30'000));
    EXPECT_THAT(lease('a', "60000"), Number(60'000));
    EXPECT_THAT(lease('a', "0"), Number(-1));
    EXPECT_THAT(lease('a'), Number(-1));
    EXPECT_THAT(lease('a', "10000"), Number(10'000));
    EXPECT_THAT(lease('b'), Nil());
    EXPECT_THAT(lease('b', "60000"), Nil());
    expire('a');
    EXPECT_THAT(lease('a', "60000"), Nil());
    EXPECT_EQ(count(), Counts(2, 0));
}

TEST_F(PermitScript, LateRequestsLeaveTheLeaseAsTheLatestChangeSetIt)
{
    trySet("a", 1);
    acquire('a', 30'000);
    EXPECT_THAT(lease('a', "20000", "1"), Number(20'000)) << "nothing can be late: nothing is recorded";
    EXPECT_THAT(redis.command({"KEYS", "redislock_request:*"}).elements, ::testing::SizeIs(1)) << "that of trySet";
    EXPECT_THAT(lease('a', "60000", "3", keep), Number(60'000));
    EXPECT_THAT(lease('a', "10", "2", keep).integer(), JustSet(60'000)) << "a change before that";
    EXPECT_THAT(acquire('a', 10), Number(-1)) << "a copy of its acquire";
    EXPECT_THAT(lease('a').integer(), JustSet(60'000));
    EXPECT_THAT(lease('a', "50000", "3", keep), Number(50'000)) << "the same, sent again";
    EXPECT_THAT(lease('a', "40000", "4"), Number(40'000));
    EXPECT_THAT(lease('a', "30000"), Number(30'000)) << "of somebody else";
    EXPECT_EQ(count(), Counts(0, 1));
    EXPECT_THAT(release('a', keep), Number(1));
    EXPECT_THAT(lease('a', "60000", "5", keep), Nil());
}

TEST_F(PermitScript, PermitsAreSetInAllWhoeverHasSome)
{
    set("a", 3);
    EXPECT_EQ(count(), Counts(3, 0));
    acquire('a', 30'000);
    acquire('b', 30'000);
    set("b", 1);
    EXPECT_EQ(count(), Counts(-1, 2));
    release('a');
    EXPECT_EQ(count(), Counts(0, 1));
    set("c", 5);
    set("b", 1); // a late copy
    EXPECT_EQ(count(), Counts(4, 1));
}

TEST_F(PermitScript, TimeToLiveOfTheSemaphoreIsThatOfItsPermits)
{
    trySet("a", 1, 30'000);
    acquire('a', 60'000);
    EXPECT_THAT(redis.pttl(timeouts).count(), JustSet(30'000));
}

TEST_F(PermitScript, ReleasesWhenMemoryIsOut)
{
    trySet("a", 1);
    acquire('a', 30'000);
    runOutOfMemory();
    EXPECT_THAT(acquire('b', 30'000), ::testing::Not(Nil()));
    EXPECT_THAT(release('a', keep), Number(1));
    EXPECT_EQ(redis.get(name), "1");
}

TEST_F(PermitScript, RefusesBadArgumentsAndKeysOfAnotherType)
{
    trySet("a", 1);
    for (const std::string bad : {"", "x", "9", "-1", "1.5", "1e3", "2592000001"}) {
        EXPECT_THAT(run(detail::scripts::permitExpirableSemaphoreAcquire, all('a'), {raw('a'), bad, channel}),
                    ErrorLike("ERR redislock: bad arguments"))
            << bad;
        if (!bad.empty()) {
            EXPECT_THAT(lease('a', bad), ErrorLike("ERR redislock: bad arguments")) << bad;
        }
    }
    EXPECT_THAT(run(detail::scripts::permitExpirableSemaphoreAcquire, all('a'), {"short", "30000", channel}),
                ErrorLike("ERR redislock: bad arguments"));
    EXPECT_EQ(count(), Counts(1, 0));
    redis.command({"SET", timeouts, "text"});
    EXPECT_THAT(acquire('a', 30'000), ErrorLike("WRONGTYPE"));
    EXPECT_THAT(release('a'), ErrorLike("WRONGTYPE"));
    EXPECT_EQ(redis.get(name), "1");
    redis.command({"DEL", timeouts});
    redis.command({"SET", name, "text"});
    EXPECT_THAT(acquire('a', 30'000), ErrorLike("WRONGTYPE"));
    EXPECT_EQ(redis.get(name), "text");
}

} // namespace
} // namespace redislock::test
