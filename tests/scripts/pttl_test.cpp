#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using PttlScript = ScriptTest;

TEST_F(PttlScript, TellsHowLongTheLockStays)
{
    lock(hold17, 30'000);
    EXPECT_THAT(pttl().integer(), JustSet(30'000));
    EXPECT_THAT(pttl().integer(), JustSet(30'000));
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
}

TEST_F(PttlScript, TellsThatTheLockIsFree)
{
    EXPECT_THAT(pttl(), Number(-2));
    lock(hold17, 30'000);
    unlock(hold17);
    EXPECT_THAT(pttl(), Number(-2));
    EXPECT_FALSE(redis.exists(name));
}

TEST_F(PttlScript, TellsThatAForeignKeyHasNoTimeToLive)
{
    writeForeignHash({{javaThread, "1"}});
    EXPECT_THAT(pttl(), Number(-1));
}

TEST_F(PttlScript, WritesNothingAndWorksWhenMemoryIsOut)
{
    lock(hold17, 30'000);
    runOutOfMemory();
    const std::string changes = redis.info("rdb_changes_since_last_save");
    EXPECT_THAT(pttl().integer(), JustSet(30'000));
    EXPECT_EQ(redis.info("rdb_changes_since_last_save"), changes);
}

} // namespace
} // namespace redislock::test
