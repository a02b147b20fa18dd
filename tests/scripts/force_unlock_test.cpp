#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using namespace std::string_literals;
using ForceUnlockScript = ScriptTest;

TEST_F(ForceUnlockScript, FreesTheLockOfTheHolderThatIsNamed)
{
    lock(hold17, 30'000);
    lock(hold17, 30'000, 2);
    EXPECT_EQ(holder().text(), hold17);
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
    EXPECT_THAT(holder(), Nil());

    writeForeignHash({{javaThread, "3"}});
    EXPECT_EQ(holder().text(), javaThread);
    EXPECT_THAT(forceUnlock(javaThread), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, SentAgainLeavesTheNextHolderAlone)
{
    EXPECT_THAT(forceUnlock(hold17), Number(0));
    lock(hold17, 30'000);
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    lock(hold18, 30'000);
    EXPECT_THAT(forceUnlock(hold17), Number(0));
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
}

TEST_F(ForceUnlockScript, TellsTheWaitersOnceForEachLock)
{
    RawRedis waiter = subscriber();
    lock(hold17, 30'000);
    forceUnlock(hold17);
    forceUnlock(hold17);
    EXPECT_EQ(messages(waiter), Words{"redisson_lock__channel:{stock:42} 0"});
}

TEST_F(ForceUnlockScript, IsFoundOutByTheHolder)
{
    lock(hold17, 30'000);
    forceUnlock(hold17);
    EXPECT_EQ(renew(hold17, 30'000).text(), "0");
    EXPECT_THAT(lock(hold17, 30'000, 2), Number(-3));
    EXPECT_THAT(unlock(hold17), Nil());
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, WorksWhenMemoryIsOut)
{
    lock(hold17, 30'000);
    runOutOfMemory();
    EXPECT_THAT(forceUnlock(hold17), Number(1));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(ForceUnlockScript, FreesTheLockEvenIfItMayNotTellAnybody)
{
    RawRedis mute = userWithoutChannels();
    lock(hold17, 30'000);
    EXPECT_THAT(run(mute, detail::scripts::redisLockForceUnlock, {name}, {hold17, detail::lockChannel(name)}),
                Number(1));
    EXPECT_FALSE(redis.exists(name));
}

/// The scripts that end a lock of a kind by force, and the holder that they name.
struct Force {
    const detail::Script& holder;
    const detail::Script& end;
    std::string whose;
    std::size_t otherKeys = 0;
};

TEST_F(ForceUnlockScript, LeavesAHashThatIsNoLockAlone)
{
    using namespace detail::scripts;
    const Force plain{redisLockHolder, redisLockForceUnlock, hold17};
    const Force fair{redisLockHolder, fairLockForceUnlock, hold17, 3};
    const Force read{readLockHolder, readLockForceUnlock, hold17};
    const Force write{writeLockHolder, writeLockForceUnlock, hold17 + ":write"};
    const std::string one = "1";
    const std::pair<Hash, std::vector<Force>> hashes[] = {
        {{{hold17, one}, {hold18, one}}, {plain, fair, read, write}},
        {{{hold17, "0"}}, {plain, fair, read, write}},
        {{{hold17, "-1"}}, {plain, fair, read, write}},
        {{{hold17, "1.5"}}, {plain, fair, read, write}},
        {{{hold17, ""}}, {plain, fair, read, write}},
        {{{hold17, "1 "}}, {plain, fair, read, write}},
        {{{hold17, "1\n"}}, {plain, fair, read, write}},
        {{{hold17, "one"}}, {plain, fair, read, write}},
        {{{hold17, one}}, {read, write}},
        {{{"mode", one}}, {plain, fair, read, write}},
        {{{"mode", "read"}, {hold17, one}}, {plain, fair}},
        {{{"mode", "write"}, {hold17 + ":write", one}}, {plain, fair}},
        {{{"mode", "dark"}, {hold17, one}, {hold17 + ":write", one}}, {plain, fair, read, write}},
        {{{"mode", "read"}, {hold17, "0"}}, {plain, fair, read, write}},
        {{{"mode", "read"}, {hold17, one}, {"colour", "red"}}, {plain, fair, read, write}},
        {{{"mode", "write"}, {hold17 + ":write", one}, {"colour", ""}}, {plain, fair, read, write}},
    };
    for (const auto& [fields, forces] : hashes) {
        redis.command({"DEL", name});
        writeForeignHash(fields);
        for (const Force& force : forces) {
            SCOPED_TRACE(::testing::PrintToString(fields) + std::string(force.end.name));
            Words keys{name};
            for (std::size_t i = 0; i < force.otherKeys; ++i) {
                keys.push_back(name + std::to_string(i));
            }
            EXPECT_THAT(run(force.holder, {name}, {}), ErrorLike("WRONGTYPE"));
            EXPECT_THAT(run(force.end, keys, {force.whose, "channel"}), ErrorLike("WRONGTYPE"));
            EXPECT_EQ(hash(), fields);
        }
    }
}

TEST_F(ForceUnlockScript, JudgesNoHoldersNameNorHowOftenItHolds)
{
    using namespace detail::scripts;
    for (const std::string& count : {"1"s, "10"s, "2147483648"s, std::string(30, '9')}) {
        for (const std::string& whose : {"x"s, ""s + '\xff' + "\r\n", "modes"s}) {
            writeForeignHash({{whose, count}});
            EXPECT_EQ(holder().text(), whose);
            EXPECT_THAT(forceUnlock(whose), Number(1));
            writeForeignHash({{"mode", "read"}, {whose, count}, {javaThread, "1"}});
            EXPECT_FALSE(run(readLockHolder, {name}, {}).isError());
            EXPECT_THAT(run(readLockForceUnlock, {name}, {whose, "channel"}), Number(1));
            writeForeignHash({{"mode", "write"}, {whose, "1"}, {whose + ":write", count}});
            EXPECT_EQ(run(writeLockHolder, {name}, {}).text(), whose + ":write");
            EXPECT_THAT(run(writeLockForceUnlock, {name}, {whose + ":write", "channel"}), Number(1));
            EXPECT_FALSE(redis.exists(name));
        }
    }
}

TEST_F(ForceUnlockScript, OfTheOtherHalfOfAReadWriteLockEndsNothing)
{
    using namespace detail::scripts;
    writeForeignHash({{"mode", "write"}, {hold17, "1"}, {hold17 + ":write", "1"}});
    EXPECT_THAT(run(readLockHolder, {name}, {}), Nil());
    EXPECT_THAT(run(readLockForceUnlock, {name}, {hold17, "channel"}), Number(0));
    redis.command({"HSET", name, "mode", "read"});
    EXPECT_THAT(run(writeLockHolder, {name}, {}), Nil());
    EXPECT_THAT(run(writeLockForceUnlock, {name}, {hold17 + ":write", "channel"}), Number(0));
    EXPECT_TRUE(redis.exists(name));
}

TEST_F(ForceUnlockScript, DoesNotListAHashThatIsLarge)
{
    Words fields{"HSET", name};
    for (int i = 0; i < 2000; ++i) {
        fields.push_back(std::to_string(i));
        fields.emplace_back("1");
    }
    redis.command(fields);
    foreign.insert(name);
    redis.command({"CONFIG", "RESETSTAT"});
    for (const auto* script :
         {&detail::scripts::redisLockHolder, &detail::scripts::readLockHolder, &detail::scripts::writeLockHolder}) {
        EXPECT_THAT(run(*script, {name}, {}), ErrorLike("WRONGTYPE"));
    }
    const std::string called = redis.command({"INFO", "commandstats"}).text();
    EXPECT_THAT(called, ::testing::HasSubstr("cmdstat_hlen"));
    EXPECT_THAT(called, ::testing::Not(::testing::HasSubstr("cmdstat_hkeys")));
    EXPECT_THAT(called, ::testing::Not(::testing::HasSubstr("cmdstat_hgetall")));
}

} // namespace
} // namespace redislock::test
