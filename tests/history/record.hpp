/// @file
/// One line of a history: a call or an event of a client, a command of Redis, or a fault of either.
#pragma once

#include "history/word.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test::history {

/// Nanoseconds on `CLOCK_BOOTTIME`: one clock for all processes of the host.
using Nanoseconds = std::int64_t;

/// Shorter standstills of the machine are not in a history.
constexpr Nanoseconds leastStarved = 100'000'000;

/// What a line is about.
enum class Op {
    unknown, ///< never in a file: stands for a last line that was cut off
    // calls of a client: invoke, then ok, fail or unknown
    lock,
    unlock,
    countDown,
    await,
    // events of a client
    settings,
    sample,
    acquired,
    renewed,
    renewalFailed,
    atRisk,
    lost,
    released,
    unconfirmed,
    resources,
    // the replication stream of Redis
    attached,
    detached,
    hset,
    hdel,
    del,
    pexpireat,
    publish,
    token,
    mode, ///< of a read/write lock
    queued,
    unqueued,
    freed,   ///< permits whose leases are over
    request, ///< executed, with an effect or without
    // actions and observations of a run's director
    fault,
    killed,
    stopped,
    resumed,
    starved,
    clock,
    member,  ///< of a group
    emptied, ///< a server forgot a key
    leftKey,
    permits,
    latch,
    quiet,
    promoted, ///< a server became the master
    moved,    ///< the slot of a name is on its way from one server to another
};

enum class Phase { invoke, ok, fail, unknown, event };

/// A line of a history. Unused fields are left out in the file.
struct Record {
    Nanoseconds t = 0;
    int pid = 0;
    int thread = 0;
    Word client{}; ///< the client's id
    Word holder{}; ///< `<client id>:<number>`, where it is known
    Word lock{};
    Word kind{}; ///< of the lock; empty: the first of `kinds`
    Op op = Op::unknown;
    Phase phase = Phase::event;
    std::optional<Nanoseconds> deadline{};   ///< `D`: until when the caller may believe, by its own clock
    std::optional<std::int64_t> count{};     ///< hold count; of other lines: how many
    std::optional<std::int64_t> leaseMs{};   ///< of a lock call, or of the watchdog
    std::optional<std::int64_t> waitMs{};    ///< of a lock call; none: waits for ever
    std::optional<std::int64_t> offset{};    ///< in the replication stream, behind the command
    std::optional<std::int64_t> tx{};        ///< the transaction; the commands of a script have the same
    std::optional<std::int64_t> expiresMs{}; ///< the key's expiry, by the server's wall clock
    std::optional<std::int64_t> token{};     ///< a fencing token
    std::optional<std::int64_t> permits{};   ///< of a call of a semaphore; none: 1
    Word error{};                            ///< of a call: its error or outcome; in other lines: the subject
    Word file{};                             ///< where the line stands, set by readHistory()
    int line = 0;

    [[nodiscard]] std::string source() const { return file + ":" + std::to_string(line); }

    /// For a sample: whether the thread had the lock. In the last millisecond this is true with a deadline of now.
    [[nodiscard]] bool saysHeld() const noexcept { return count ? *count > 0 : deadline.value_or(0) > t; }
};

std::string toLine(const Record& record);
/// @throws std::runtime_error when the line is not a record.
Record fromLine(std::string_view line);

/// All records of the files `*.jsonl` of a folder, or of one file, in the order of their time. A last line that is cut
/// off, which a killed process may leave behind, becomes a record of the kind `unknown`.
/// @throws std::runtime_error when a line cannot be read or breaks a rule (record_rules.hpp), with file and line.
std::vector<Record> readHistory(const std::filesystem::path& path);
/// The same from text.
std::vector<Record> parseHistory(std::string_view text, const std::string& source);

/// The words of the file format.
std::string_view nameOf(Op op);
std::string_view nameOf(Phase phase);

} // namespace redislock::test::history
