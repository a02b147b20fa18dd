// The stream of a server to its replicas, byte by byte and all at once.
#include "history/replication_stream.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace redislock::test::history {
namespace {

std::string command(std::initializer_list<std::string> words)
{
    auto bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const auto& word : words) {
        bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return bytes;
}

const std::string snapshot = "+FULLRESYNC e95423e7 100\r\n\n\n$9\r\nREDIS\r\n*1";
const std::string grant = command({"MULTI"}) + command({"HSET", "a", "c:1", "1"}) +
                          command({"PEXPIREAT", "a", "1795273334545"}) + command({"EXEC"});
const std::string unlock =
    command({"MULTI"}) + command({"DEL", "a"}) + command({"PUBLISH", "ch", "0"}) + command({"EXEC"});

std::vector<StreamCommand> commandsOf(ReplicationStream& stream)
{
    std::vector<StreamCommand> commands;
    while (auto next = stream.next()) {
        commands.push_back(*next);
    }
    return commands;
}

TEST(ReplicationStream, SkipsTheSnapshotAndCountsTheOffset)
{
    const auto ping = command({"PING"});
    const auto bytes = snapshot + ping + grant;
    ReplicationStream whole;
    whole.feed(bytes);
    const auto commands = commandsOf(whole);
    ASSERT_EQ(commands.size(), 5U);
    EXPECT_EQ(commands[0].words, std::vector<std::string>{"PING"});
    EXPECT_EQ(commands[0].offset, 100 + static_cast<std::int64_t>(ping.size()));
    EXPECT_EQ(whole.offset(), 100 + static_cast<std::int64_t>(ping.size() + grant.size()));
    ReplicationStream pieces;
    std::size_t count = 0;
    for (const char byte : bytes) {
        pieces.feed({&byte, 1});
        count += commandsOf(pieces).size();
    }
    EXPECT_EQ(count, commands.size());
    EXPECT_EQ(pieces.offset(), whole.offset());
}

TEST(ReplicationStream, RefusesWhatIsNone)
{
    for (const auto* bytes : {"-NOAUTH no\r\n", "+OK\r\n", "+FULLRESYNC x y\r\n", "+FULLRESYNC x 1\r\n$EOF:abc\r\n",
                              "+FULLRESYNC x 1\r\n$2\r\nRD\x01garbage\r\n"}) {
        ReplicationStream stream;
        stream.feed(bytes);
        EXPECT_THROW(commandsOf(stream), std::runtime_error) << bytes;
    }
}

TEST(StreamTranslator, GivesTheCommandsOfAScriptOneNumber)
{
    ReplicationStream stream;
    stream.feed(snapshot + command({"SELECT", "0"}) + grant + command({"PEXPIREAT", "a", "7"}) + unlock +
                command({"DEL", "b", "c"}) + command({"SET", "x", "1"}));
    StreamTranslator translator;
    std::vector<Record> records;
    for (const auto& each : commandsOf(stream)) {
        for (auto& record : translator.translate(each)) {
            records.push_back(record);
        }
    }
    ASSERT_EQ(records.size(), 7U);
    EXPECT_EQ(records[0].op, Op::hset);
    EXPECT_EQ(records[0].holder, "c:1");
    EXPECT_EQ(records[0].count, 1);
    EXPECT_EQ(records[1].op, Op::pexpireat);
    EXPECT_EQ(records[1].expiresMs, 1795273334545);
    EXPECT_EQ(records[0].tx, records[1].tx);
    EXPECT_NE(records[1].tx, records[2].tx);
    EXPECT_EQ(records[3].op, Op::del);
    EXPECT_EQ(records[4].op, Op::publish);
    EXPECT_EQ(records[4].lock, "ch");
    EXPECT_EQ(records[3].tx, records[4].tx);
    EXPECT_EQ(records[5].lock, "b");
    EXPECT_EQ(records[6].lock, "c");
}

TEST(StreamTranslator, GivesSeveralStreamsNumbersThatDoNotMeet)
{
    StreamTranslator first(1);
    StreamTranslator second(2);
    const StreamCommand released{0, {"DEL", "a"}};
    EXPECT_LT(first.translate(released).front().tx, second.translate(released).front().tx);
    EXPECT_GT(first.translate(released).front().tx, std::int64_t{1} << 40U);
}

/// The record of a command, as "op lock holder expires word".
std::string translated(StreamTranslator& translator, std::vector<std::string> words)
{
    std::string text;
    for (const auto& record : translator.translate({0, std::move(words)})) {
        text += std::string(nameOf(record.op)) + " " + record.lock + " " + record.holder + " " +
                std::to_string(record.expiresMs.value_or(record.token.value_or(0))) + " " + record.error + record.kind +
                ";";
    }
    return text;
}

TEST(StreamTranslator, CountsTokensOn)
{
    StreamTranslator translator;
    EXPECT_EQ(translated(translator, {"SET", "redisson_lock_token:{a}", "1795273334545000"}),
              "token a  1795273334545000 ;");
    EXPECT_EQ(translated(translator, {"INCR", "redisson_lock_token:{a}"}), "token a  1795273334545001 ;");
    EXPECT_EQ(translated(translator, {"SET", "redisson_lock_token:{t}:b", "7"}), "token {t}:b  7 ;");
    EXPECT_EQ(translated(translator, {"SET", "redislock_request:{a}:c:1", "7", "PXAT", "9"}), "");
}

TEST(StreamTranslator, TellsReadersFromTheirLock)
{
    StreamTranslator translator;
    EXPECT_EQ(translated(translator, {"HSET", "a:b", "mode", "read"}), "mode a:b  0 read;");
    EXPECT_EQ(translated(translator, {"SET", "{a:b}:c:1:rwlock_timeout:2", "1", "PXAT", "9"}), "pexpireat a:b c:1 9 ;");
    EXPECT_EQ(translated(translator, {"SET", "{t}:b:c:1:rwlock_timeout:1", "1", "PXAT", "9"}),
              "pexpireat {t}:b c:1 9 ;");
    EXPECT_EQ(translated(translator, {"DEL", "{a:b}:c:1:rwlock_timeout:2"}), "") << "its field is told of";
}

TEST(StreamTranslator, NamesTheHoldersThatCameWithAKeyOrByRedisson)
{
    StreamTranslator translator(0);
    const std::string holder = "01234567-89ab-cdef-0123-456789abcdef:12";
    const auto came =
        translator.translate({1, {"RESTORE-ASKING", "a", "1795273334545", "\x10\xff" + holder + "'1", "ABSTTL"}});
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].op, Op::hset);
    EXPECT_EQ(came[0].lock, "a");
    EXPECT_EQ(came[0].holder, holder);
    EXPECT_TRUE(translator.translate({2, {"RESTORE", "a", "0", "\x01 a text"}}).empty());
    EXPECT_EQ(translator.translate({3, {"HINCRBY", "a", "u:7", "1"}}).at(0).holder, "u:7");
    EXPECT_TRUE(translator.translate({4, {"HINCRBY", "a", "u:7", "-1"}}).empty());
}

TEST(StreamTranslator, NamesWhoLeavesAQueue)
{
    StreamTranslator translator;
    EXPECT_EQ(translated(translator, {"RPUSH", "redisson_lock_queue:{a}", "c:1"}), "");
    EXPECT_EQ(translated(translator, {"ZADD", "redisson_lock_timeout:{a}", "39", "c:1"}), "");
    EXPECT_EQ(translated(translator, {"HSET", "redislock_places:{a}", "c:1", "9 5"}), "queued a c:1 9 ;");
    EXPECT_EQ(translated(translator, {"HSET", "redislock_places:{a}", "j:1", "redisson 9 5"}), "");
    EXPECT_EQ(translated(translator, {"HSET", "redislock_places:{a}", "redisson", "1"}), "");
    EXPECT_EQ(translated(translator, {"HDEL", "redislock_places:{a}", "c:1"}), "");
    EXPECT_EQ(translated(translator, {"PEXPIREAT", "redisson_lock_queue:{a}", "99"}), "");
    EXPECT_EQ(translated(translator, {"LPOP", "redisson_lock_queue:{a}"}), "");
    EXPECT_EQ(translated(translator, {"ZREM", "redisson_lock_timeout:{a}", "c:1"}), "unqueued a c:1 0 first;");
    EXPECT_EQ(translated(translator, {"ZREM", "redisson_lock_timeout:{a}", "c:2"}), "unqueued a c:2 0 left;");
}

TEST(StreamTranslator, NamesPermitsByTheirIds)
{
    StreamTranslator translator;
    EXPECT_EQ(translated(translator, {"ZADD", "{a}:timeout", "9", "\x01\xff"}), "hset a 01ff 0 ;pexpireat a 01ff 9 ;");
    EXPECT_EQ(translated(translator, {"ZREM", "{a}:timeout", "\x01\xff"}), "hdel a 01ff 0 ;");
    EXPECT_EQ(translated(translator, {"ZREMRANGEBYSCORE", "{a}:timeout", "0", "10"}), "freed a  10 ;");
}

} // namespace
} // namespace redislock::test::history
