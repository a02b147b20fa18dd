#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using detail::scripts::readLockLock;
using detail::scripts::readLockUnlock;
using detail::scripts::writeLockLock;
using detail::scripts::writeLockUnlock;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

class ReadWriteScripts : public ScriptTest {
protected:
    Value read(const std::string& reader, std::int64_t leaseMs, std::int64_t count = 1, const std::string& writer = {})
    {
        return run(readLockLock, {name, prefix}, {reader, std::to_string(leaseMs), std::to_string(count), writer});
    }
    Value endReading(const std::string& reader, std::int64_t count = 0, std::int64_t leaseMs = 1)
    {
        return run(readLockUnlock, {name, prefix}, {reader, std::to_string(count), std::to_string(leaseMs), channel});
    }
    Value write(const std::string& writer, std::int64_t leaseMs, const std::string& placeMs = "0")
    {
        return run(writeLockLock, {name, prefix}, {writer, std::to_string(leaseMs), "1", placeMs});
    }
    Value endWriting(const std::string& writer)
    {
        return run(writeLockUnlock, {name, prefix}, {writer, "0", "1", channel});
    }

    const std::string prefix = "{" + name + "}";
    const std::string channel = "redisson_rwlock:{" + name + "}";
    const std::string writer17 = hold17 + ":write";
    const std::string writer18 = hold18 + ":write";
    const std::string waiting = prefix + ":redislock_writer";
};

TEST_F(ReadWriteScripts, ReaderIsLetInBesideItsOwnWriterAndNobodyElses)
{
    EXPECT_THAT(write(writer17, 30'000), Nil());
    EXPECT_THAT(read(hold18, 30'000), Refusal(JustSet(30'000), writer17));
    EXPECT_THAT(read(hold18, 30'000, 1, hold18 + ":write"), Refusal(JustSet(30'000), writer17));
    EXPECT_THAT(read(hold18, 30'000, 1, writer17), Nil());
    EXPECT_THAT(read(hold18, 30'000), Nil()) << "sent again, or by a level: it has it";
    EXPECT_EQ(hash(), (Hash{{"mode", "write"}, {writer17, "1"}, {hold18, "1"}}));
}

TEST_F(ReadWriteScripts, WriterIsToldOfTheReaderWhereThatIsOne)
{
    read(hold17, 30'000);
    EXPECT_THAT(write(writer18, 30'000), Refusal(JustSet(30'000), hold17));
    read(hold18, 30'000);
    EXPECT_THAT(write(writer18, 30'000), Refusal(JustSet(30'000), ""));
    endReading(hold17);
    endReading(hold18);
    write(writer17, 30'000);
    read(hold18, 30'000, 1, writer17);
    EXPECT_THAT(read(javaThread, 30'000), Refusal(JustSet(30'000), writer17));
}

TEST_F(ReadWriteScripts, EndOfAnInnerLevelThatComesLateDoesNotCutTheLeaseOfALaterOne)
{
    read(javaThread, 300'000);
    read(hold17, 20'000);
    read(hold17, 60'000, 2);
    endReading(hold17, 1, 20'000);
    read(hold17, 60'000, 2);
    endReading(hold17, 1, 20'000); // once more, on another connection
    EXPECT_THAT(endReading(javaThread), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(60'000)) << "until when the reader counts on it";
}

TEST_F(ReadWriteScripts, LevelThatComesOnceMoreLateDoesNotCutTheLeaseOfThoseAbove)
{
    read(javaThread, 300'000);
    read(hold17, 20'000);
    read(hold17, 10'000, 2);
    read(hold17, 60'000, 3);
    EXPECT_THAT(read(hold17, 10'000, 2), Nil()); // once more, on another connection
    EXPECT_THAT(endReading(javaThread), Number(1));
    EXPECT_THAT(timeToLive(), JustSet(60'000)) << "until when the reader counts on it";
    EXPECT_THAT(endReading(hold17, 1, 20'000), Number(0));
    EXPECT_THAT(endReading(hold17), Number(1));
    EXPECT_EQ(redis.command({"DBSIZE"}).integer(), 0) << "no hold key is left";
}

TEST_F(ReadWriteScripts, ReadHoldOfAWriterThatIsOverKeepsNobodyOutAfterTheWriter)
{
    write(writer17, 30'000);
    read(hold18, 20'000, 1, writer17);
    redis.command({"DEL", prefix + ":" + hold18 + ":rwlock_timeout:1"}); // its lease is over
    EXPECT_THAT(endWriting(writer17), Number(1));
    EXPECT_THAT(redis.command({"EXISTS", name}), Number(0));
}

TEST_F(ReadWriteScripts, WriterThatGoesOnReadingHasTheLockForAsLongAsItReads)
{
    write(writer17, 30'000);
    read(hold18, 20'000, 1, writer17);
    EXPECT_THAT(endWriting(writer17), Number(1));
    EXPECT_EQ(hash(), (Hash{{"mode", "read"}, {hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(20'000));
}

TEST_F(ReadWriteScripts, ClockThatIsSetBackDoesNotMakeAWaitingWriterKeepReadersOutForLonger)
{
    read(hold17, 300'000);
    write(writer18, 30'000, "5000");
    redis.command({"PEXPIRE", waiting, "40000"}); // as if the clock were 30 s earlier
    EXPECT_THAT(read(javaThread, 60'000), Refusal(JustSet(5000), ""));
    EXPECT_THAT(redis.command({"PTTL", waiting}).integer(), JustSet(10'000));
}

TEST_F(ReadWriteScripts, WriterThatWaitsKeepsNewReadersOutForTheTimeThatItGaveAndThenLetsThemInForAsLong)
{
    read(hold17, 300'000);
    EXPECT_THAT(write(writer18, 30'000, "60000"), Refusal(JustSet(300'000), hold17));
    EXPECT_THAT(redis.command({"PTTL", waiting}).integer(), JustSet(120'000));
    EXPECT_THAT(read(javaThread, 60'000), Refusal(JustSet(60'000), ""));
    EXPECT_EQ(hash(), (Hash{{"mode", "read"}, {hold17, "1"}}));
    redis.command({"PEXPIRE", waiting, "60000"});
    EXPECT_THAT(read(javaThread, 60'000), Nil());
    EXPECT_THAT(write(writer18, 30'000, "60000"), Refusal(JustSet(300'000), ""));
    EXPECT_THAT(redis.command({"PTTL", waiting}).integer(), JustSet(60'000))
        << "it does not begin anew before it is over";
}

TEST_F(ReadWriteScripts, WriterThatWaitsKeepsNoReaderOutThatReadsAlready)
{
    read(hold17, 60'000);
    write(writer18, 30'000, "60000");
    EXPECT_THAT(read(hold17, 60'000), Nil()) << "sent again";
    EXPECT_THAT(read(hold17, 60'000, 2), Nil());
    EXPECT_EQ(hash(), (Hash{{"mode", "read"}, {hold17, "2"}}));
}

TEST_F(ReadWriteScripts, ReadersThatTakeTurnsMakeRoomOnceWhereSomebodyListens)
{
    const auto left = [this] { return redis.command({"PTTL", waiting}).integer(); };
    read(hold17, 60'000);
    read(hold18, 60'000);
    endReading(hold17);
    EXPECT_EQ(left(), -2) << "nobody listens";
    RawRedis listener(server());
    EXPECT_FALSE(listener.command({"SUBSCRIBE", channel}).isError());
    read(hold17, 60'000);
    endReading(hold17);
    EXPECT_THAT(left(), AllOf(Le(10'000), Ge(9000)));
    EXPECT_THAT(read(javaThread, 60'000), Refusal(JustSet(1000), ""));
    EXPECT_THAT(read(hold18, 60'000), Nil()) << "reads already";
    redis.command({"PEXPIRE", waiting, "9900"}); // 100 ms later
    endReading(hold18);
    EXPECT_THAT(read(javaThread, 60'000), Refusal(JustSet(20), "")) << "for the writer to come";
    EXPECT_THAT(left(), AllOf(Le(20 + 9 * 1020), Ge(9 * 120)));
    redis.command({"PEXPIRE", waiting, "1080"});
    EXPECT_THAT(read(hold17, 60'000), Nil()) << "nobody came";
    read(hold18, 60'000);
    endReading(hold18);
    EXPECT_THAT(left(), JustSet(1080)) << "not again for nine times as long";
    endReading(hold17);
    redis.command({"HSET", name, "mode", "write"});
    redis.command({"HSET", name, javaThread + ":write", "1"});
    redis.command({"PEXPIRE", name, "30000"});
    EXPECT_THAT(read(hold17, 60'000), Refusal(JustSet(30'000), javaThread + ":write"));
    EXPECT_EQ(left(), -2) << "a writer came: at once again";
}

TEST_F(ReadWriteScripts, WriterOfOursKeepsReadersOutForItsTimeThoughRoomIsMadeForAnother)
{
    read(hold17, 60'000);
    redis.command({"SET", waiting, "20/200", "PX", "220"});
    EXPECT_THAT(write(writer18, 30'000, "60000"), Refusal(JustSet(60'000), hold17));
    EXPECT_THAT(read(javaThread, 60'000), Refusal(JustSet(60'000), ""));
}

TEST_F(ReadWriteScripts, WritersOfTransactionsAreFoundByTheirNames)
{
    const auto field = javaThread + ":write:3f2a";
    redis.command({"HSET", name, "mode", "write"});
    redis.command({"HSET", name, field, "1"});
    redis.command({"PEXPIRE", name, "30000"});
    EXPECT_THAT(read(hold17, 60'000), Refusal(JustSet(30'000), field));
    EXPECT_EQ(run(detail::scripts::writeLockHolder, {name}, {}).text(), field);
    EXPECT_THAT(run(detail::scripts::writeLockForceUnlock, {name}, {field, channel}), Number(1));
}

TEST_F(ReadWriteScripts, LockThatIsFreeIsKeptForTheWriterThatWaits)
{
    read(hold17, 60'000);
    write(writer18, 30'000, "60000");
    endReading(hold17);
    EXPECT_THAT(read(hold17, 60'000), Refusal(JustSet(60'000), ""));
    EXPECT_THAT(redis.command({"EXISTS", name}), Number(0));
    EXPECT_THAT(write(writer18, 30'000, "60000"), Nil());
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(0));
    endWriting(writer18);
    EXPECT_THAT(read(hold17, 60'000), Nil());
}

TEST_F(ReadWriteScripts, WriterThatDoesNotWaitOrWaitsForAWriterKeepsNoReadersOut)
{
    read(hold17, 60'000);
    write(writer18, 30'000);
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(0));
    endReading(hold17);
    write(writer17, 60'000);
    write(writer18, 30'000, "60000");
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(0));
    EXPECT_THAT(read(hold17, 60'000, 1, writer17), Nil()) << "it writes itself";
}

TEST_F(ReadWriteScripts, WriterThatGivesUpLetsTheReadersInAndTellsThem)
{
    RawRedis listener(server());
    listener.command({"SUBSCRIBE", channel});
    read(hold17, 60'000);
    write(writer18, 30'000, "60000");
    EXPECT_THAT(endWriting(writer17), Nil()) << "another one";
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(1));
    EXPECT_THAT(endWriting(writer18), Nil());
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(0));
    EXPECT_THAT(endWriting(writer18), Nil()) << "sent again";
    EXPECT_EQ(messages(listener), Words{channel + " 1"});
    EXPECT_THAT(read(javaThread, 60'000), Nil());
}

TEST_F(ReadWriteScripts, WriterWaitsWithoutAWordWhereMemoryIsFull)
{
    read(hold17, 60'000);
    runOutOfMemory();
    EXPECT_THAT(write(writer18, 30'000, "60000"), Refusal(JustSet(60'000), hold17));
    EXPECT_THAT(redis.command({"EXISTS", waiting}), Number(0));
}

} // namespace
} // namespace redislock::test
