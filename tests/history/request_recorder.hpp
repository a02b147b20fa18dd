/// @file
/// Writes down which requests about locks a Redis server executed, including those without an effect.
#pragma once

#include "history/recorder.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/raw_redis.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redislock::test::history {

/// The words of a command in a line of MONITOR, `1795273334.441061 [0 127.0.0.1:6000] "evalsha" "1f" "1" "a"`; none for
/// a command that a script ran, and for any other line.
std::vector<std::string> wordsOfMonitorLine(std::string_view line);

/// The request of the words: the script, the lock and the holder, for each lock of a renewal; nothing for other
/// commands. See doc/keys.md.
std::vector<Record> requestsOf(const std::vector<std::string>& words);

/// A connection that listens with MONITOR. The TruthRecorder is more reliable: these records may end a moment too
/// early. Thread safety: one thread at a time.
class RequestRecorder {
public:
    RequestRecorder(const testing::RedisServer& server, std::shared_ptr<Recorder> recorder);
    RequestRecorder(const RequestRecorder&) = delete;
    RequestRecorder& operator=(const RequestRecorder&) = delete;
    ~RequestRecorder() { detach(); }

    /// Begins to listen to the running server.
    void attach();
    void detach() noexcept;

private:
    void run() noexcept;

    RawRedis redis_;
    std::shared_ptr<Recorder> recorder_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace redislock::test::history
