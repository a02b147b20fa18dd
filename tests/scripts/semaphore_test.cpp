#include "scripts/counter_script_test.hpp"

namespace redislock::test {
namespace {

class SemaphoreScript : public CounterScriptTest {
protected:
    Value acquire(const std::string& request, std::int64_t permits = 1)
    {
        return run(detail::scripts::semaphoreAcquire, keys(request), {std::to_string(permits), keep});
    }
    Value add(const std::string& request, std::int64_t permits, const std::string& onlyExisting = "0",
              const Words& settled = {})
    {
        return run(detail::scripts::semaphoreAdd, keys(request, settled),
                   {std::to_string(permits), onlyExisting, channel, keep});
    }
    Value drain(const std::string& request) { return run(detail::scripts::semaphoreDrain, keys(request), {keep}); }
    Value withdraw(const std::string& request)
    {
        return run(detail::scripts::semaphoreWithdraw, keys(request), {channel, keep});
    }

    const std::string channel = "redisson_sc:{stock:42}";
};

TEST_F(SemaphoreScript, GivesAllPermitsOrNone)
{
    trySet("a", 3);
    EXPECT_THAT(acquire("b", 4), Number(-1));
    EXPECT_EQ(redis.get(name), "3");
    EXPECT_THAT(acquire("c", 2), Nil());
    EXPECT_EQ(redis.get(name), "1");
    EXPECT_THAT(acquire("d", 2), Number(-1));
    EXPECT_THAT(acquire("e"), Nil());
    EXPECT_EQ(redis.get(name), "0");
}

TEST_F(SemaphoreScript, GivesNothingWithoutASemaphore)
{
    EXPECT_THAT(acquire("a"), Number(-1));
    EXPECT_THAT(get(), Number(0));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(SemaphoreScript, EachRequestTakesAndGivesOnceHoweverOftenItComes)
{
    trySet("a", 3);
    trySet("a", 3);
    EXPECT_THAT(acquire("b", 2), Nil());
    EXPECT_THAT(acquire("b", 2), Nil());
    EXPECT_EQ(redis.get(name), "1");
    EXPECT_THAT(add("c", 2), Number(1));
    EXPECT_THAT(add("c", 2), Number(1));
    EXPECT_EQ(redis.get(name), "3");
    EXPECT_THAT(drain("d"), Number(3));
    add("e", 1);
    EXPECT_THAT(drain("d"), Number(3));
    EXPECT_EQ(redis.get(name), "1");
}

TEST_F(SemaphoreScript, ARefusedRequestIsGrantedWhenItComesAgain)
{
    EXPECT_THAT(acquire("a"), Number(-1));
    add("b", 1);
    EXPECT_THAT(acquire("a"), Nil());
    EXPECT_EQ(redis.get(name), "0");
}

TEST_F(SemaphoreScript, WithdrawnRequestGivesBackWhatItTookAndNeverTakesAgain)
{
    trySet("a", 5);
    acquire("b", 2);
    EXPECT_THAT(withdraw("b"), Number(2));
    EXPECT_THAT(withdraw("b"), Number(0));
    EXPECT_EQ(redis.get(name), "5");
    EXPECT_THAT(acquire("b", 2), Number(-1)) << "a late copy took permits";
    EXPECT_THAT(withdraw("c"), Number(0));
    EXPECT_THAT(acquire("c", 2), Number(-1));
    drain("d");
    EXPECT_THAT(withdraw("d"), Number(5));
    EXPECT_EQ(redis.get(name), "5");
    acquire("e");
    redis.command({"DEL", name});
    EXPECT_THAT(withdraw("e"), Number(0));
    EXPECT_FALSE(redis.exists(name)) << "a semaphore that was deleted was made again";
}

TEST_F(SemaphoreScript, AnswersAreKeptForATimeAndDeletedWhenTheyAreOfNoUse)
{
    trySet("a", 5);
    acquire("b");
    EXPECT_EQ(redis.get(request("b")), "1");
    EXPECT_THAT(redis.pttl(request("b")).count(), JustSet(60'000));
    EXPECT_THAT(add("c", 1, "0", {request("a"), request("b")}), Number(1));
    EXPECT_FALSE(redis.exists(request("a")));
    EXPECT_FALSE(redis.exists(request("b")));
    EXPECT_TRUE(redis.exists(request("c")));
}

TEST_F(SemaphoreScript, AddsToAndTakesFromWhatThereIs)
{
    EXPECT_THAT(add("a", 2, "1"), Number(0));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_THAT(add("b", 2), Number(1));
    EXPECT_THAT(add("c", 1, "1"), Number(1));
    EXPECT_THAT(add("d", -5), Number(1));
    EXPECT_EQ(redis.get(name), "-2");
    EXPECT_THAT(get(), Number(-2));
    EXPECT_THAT(acquire("e"), Number(-1));
    EXPECT_THAT(drain("f"), Number(0));
    EXPECT_EQ(redis.get(name), "-2");
}

TEST_F(SemaphoreScript, IsMadeOnceAndMayHaveATimeToLiveWhichStays)
{
    EXPECT_THAT(trySet("a", 0), Number(1));
    EXPECT_THAT(trySet("b", 5), Number(0)) << "zero is not absent";
    redis.command({"DEL", name});
    EXPECT_THAT(trySet("c", 5, 30'000), Number(1));
    add("d", 1);
    acquire("e");
    EXPECT_THAT(redis.pttl(name).count(), JustSet(30'000));
}

TEST_F(SemaphoreScript, TellsWaitersOfWhatMayHelpThemAndOfNothingElse)
{
    RawRedis waiter = listenTo(channel);
    trySet("a", 2);
    trySet("b", 3);
    acquire("c", 2);
    add("d", -4);
    add("e", 2);
    add("f", 3);
    add("f", 3);
    drain("g");
    withdraw("g");
    EXPECT_EQ(messages(waiter), (Words{channel + " 2", channel + " 1", channel + " 1"}));
}

TEST_F(SemaphoreScript, ReleasesAndWithdrawsWhenMemoryIsOut)
{
    trySet("a", 5);
    acquire("b", 2);
    acquire("c", 2);
    runOutOfMemory();
    EXPECT_TRUE(acquire("d").isError());
    EXPECT_THAT(add("e", 2), Number(1));
    EXPECT_THAT(withdraw("c"), Number(2));
    EXPECT_EQ(redis.get(name), "5");
}

TEST_F(SemaphoreScript, LeavesAnythingElseAtTheNameAlone)
{
    const std::pair<const char*, Words> values[] = {{"hash", {"HSET", name, "field", "1"}},
                                                    {"list", {"RPUSH", name, "1"}},
                                                    {"text", {"SET", name, "some text"}},
                                                    {"fraction", {"SET", name, "1.5"}}};
    for (const auto& [type, write] : values) {
        redis.command({"DEL", name});
        redis.command(write);
        const Value before = redis.command({"DUMP", name});
        EXPECT_THAT(acquire("a"), ErrorLike("WRONGTYPE")) << type;
        EXPECT_THAT(add("a", 1), ErrorLike("WRONGTYPE")) << type;
        EXPECT_THAT(drain("a"), ErrorLike("WRONGTYPE")) << type;
        EXPECT_THAT(get(), ErrorLike("WRONGTYPE")) << type;
        EXPECT_EQ(redis.command({"DUMP", name}), before) << type;
    }
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
}

TEST_F(SemaphoreScript, RefusesBadArgumentsBeforeItWrites)
{
    trySet("a", 5);
    const auto refused = [&](const detail::Script& script, const Words& arguments) {
        EXPECT_THAT(run(script, keys("b"), arguments), ErrorLike("ERR redislock: bad arguments"))
            << script.name << ::testing::PrintToString(arguments);
        EXPECT_THAT(run(script, {name}, arguments), ErrorLike("ERR redislock: bad arguments")) << script.name;
    };
    for (const std::string bad : {"", "x", "1.5", "01", "1e3", "0x10", " 1", "99999999999999999999"}) {
        refused(detail::scripts::semaphoreAcquire, {bad, keep});
        refused(detail::scripts::semaphoreAcquire, {bad == "01" ? "-1" : "0", keep});
        refused(detail::scripts::semaphoreAdd, {bad, "0", channel, keep});
        refused(detail::scripts::semaphoreAdd, {"1", bad, channel, keep});
    }
    refused(detail::scripts::semaphoreDrain, {"0"});
    refused(detail::scripts::semaphoreDrain, {});
    refused(detail::scripts::semaphoreWithdraw, {channel});
    EXPECT_EQ(redis.get(name), "5");
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(2));
}

TEST_F(SemaphoreScript, IsDeletedOncePerRequest)
{
    trySet("a", 5);
    const auto erase = [&](const std::string& id) {
        return run(detail::scripts::counterDelete, {name, name, request(id)}, {"", keep});
    };
    EXPECT_THAT(erase("b"), Number(1));
    trySet("c", 7);
    EXPECT_THAT(erase("b"), Number(1));
    EXPECT_EQ(redis.get(name), "7") << "a late copy deleted the next one";
    EXPECT_THAT(erase("d"), Number(1));
    EXPECT_THAT(erase("e"), Number(0));
}

TEST_F(SemaphoreScript, LeavesAnotherStringAlone)
{
    foreign.insert(name);
    for (const char* text : {"theirs", "", "1.5", "5 "}) {
        redis.command({"SET", name, text});
        EXPECT_THAT(run(detail::scripts::counterDelete, {name, name, request("a")}, {"", keep}),
                    ErrorLike("WRONGTYPE"));
        EXPECT_EQ(redis.get(name), text);
    }
}

TEST_F(SemaphoreScript, IsFoundByTheSha1ThatTheServerGivesIt)
{
    for (const auto* script :
         {&detail::scripts::counterGet, &detail::scripts::counterTrySet, &detail::scripts::counterDelete,
          &detail::scripts::semaphoreAcquire, &detail::scripts::semaphoreAdd, &detail::scripts::semaphoreDrain,
          &detail::scripts::semaphoreWithdraw, &detail::scripts::permitExpirableSemaphoreAcquire,
          &detail::scripts::permitExpirableSemaphoreRelease, &detail::scripts::permitExpirableSemaphoreCount,
          &detail::scripts::permitExpirableSemaphoreSet, &detail::scripts::permitExpirableSemaphoreLease,
          &detail::scripts::countDownLatchCountDown}) {
        EXPECT_EQ(redis.command({"SCRIPT", "LOAD", script->text()}).text(), script->sha1) << script->name;
        EXPECT_FALSE(script->text().starts_with("#!")) << script->name << ": Redis 6 would refuse it";
    }
}

} // namespace
} // namespace redislock::test
