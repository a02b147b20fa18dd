// What a server sends to its replicas, byte by byte and all at once.
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
const std::string release =
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
    stream.feed(snapshot + command({"SELECT", "0"}) + grant + command({"PEXPIREAT", "a", "7"}) + release +
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

TEST(StreamTranslator, CountsTokensOn)
{
    StreamTranslator translator;
    const auto tokenOf = [&](std::vector<std::string> words) {
        return translator.translate({0, std::move(words)}).at(0);
    };
    const auto first = tokenOf({"SET", "redisson_lock_token:{a}", "1795273334545000"});
    EXPECT_EQ(first.op, Op::token);
    EXPECT_EQ(first.lock, "a");
    EXPECT_EQ(first.token, 1795273334545000);
    EXPECT_EQ(tokenOf({"INCR", "redisson_lock_token:{a}"}).token, 1795273334545001);
    EXPECT_EQ(tokenOf({"SET", "redisson_lock_token:{t}:b", "7"}).lock, "{t}:b");
}

} // namespace
} // namespace redislock::test::history
