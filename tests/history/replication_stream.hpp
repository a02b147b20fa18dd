/// @file
/// Reads the data that a Redis server sends to its replicas.
#pragma once

#include "history/record.hpp"
#include "support/resp_framer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test::history {

/// A command of the stream.
struct StreamCommand {
    std::int64_t offset = 0; ///< of the stream, behind the command
    std::vector<std::string> words;
};

/// Cuts the answer to `PSYNC ? -1` into commands: the line `+FULLRESYNC <id> <offset>`, an RDB file of announced
/// length, which is skipped, and the stream itself. Empty lines before the RDB file are signs of life. No sockets, no
/// time.
class ReplicationStream {
public:
    void feed(std::string_view bytes);
    /// The next whole command. @throws std::runtime_error after bytes that are not such an answer.
    std::optional<StreamCommand> next();

    /// Whether the stream itself has begun.
    [[nodiscard]] bool streaming() const noexcept { return state_ == State::stream; }
    /// The latest known offset of the server.
    [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }

private:
    enum class State { header, rdbLength, rdb, stream };

    std::optional<std::string> takeLine();
    /// Skips the bytes before the stream. @return false when bytes are missing.
    bool skipSnapshot();

    State state_ = State::header;
    std::string head_; // bytes before the stream
    std::size_t rdbLeft_ = 0;
    std::int64_t offset_ = 0;
    RespFramer framer_;
};

/// Makes records of the commands that concern locks: HSET, HDEL, DEL, PEXPIREAT, PUBLISH, and SET and INCR of fencing
/// tokens and of readers' hold keys, LPOP, ZREM and HSET of queues, ZADD and ZREM of permits. The commands of one
/// script, which the server wraps in MULTI and EXEC, have one number.
class StreamTranslator {
public:
    /// @param stream the number of this stream if a history has the records of several: it keeps the numbers `tx`
    /// apart.
    explicit StreamTranslator(int stream = 0) : tx_(std::int64_t{stream} << 40U) {}

    /// @return records without time and process; none for a command that does not concern a lock.
    std::vector<Record> translate(const StreamCommand& command);

private:
    Record make(const StreamCommand& command, Op op) const;
    /// The records of a command on the fields of a hash.
    std::vector<Record> fieldsOf(const StreamCommand& command) const;
    /// The record of a command on a string: a counter that is set or raised, the time of a reader's hold.
    std::optional<Record> valueOf(const StreamCommand& command, const std::string& name);
    /// The record of a command on a fair lock's queue: a place that is taken or kept, or given up.
    std::optional<Record> placeOf(const StreamCommand& command, const std::string& name);

    std::int64_t tx_;
    bool inside_ = false; // of MULTI
    /// The records of a command on the leases of a semaphore's permits.
    std::vector<Record> restored(const StreamCommand& command) const;
    std::vector<Record> leasesOf(const StreamCommand& command, const std::string& name) const;

    bool popped_ = false;                        // the first of a queue; its name comes next
    std::map<std::string, std::int64_t> tokens_; // the last, by lock
};

} // namespace redislock::test::history
