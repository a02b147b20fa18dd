/// @file
/// Writes down what a Redis server really did to its keys.
#pragma once

#include "history/recorder.hpp"
#include "history/replication_stream.hpp"
#include "redislock/testing/redis_server.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace redislock::test::history {

/// A replica that keeps only the stream: every write of the server, in order, each with the time of its arrival (it was
/// executed before that) and its place in the stream.
///
/// Nothing may change the server's data between its start and attach(): the recorder would miss such changes. It should
/// have `repl-diskless-sync-delay 0`. Thread safety: one thread at a time.
class TruthRecorder {
public:
    /// @param stream a different number for each server if several servers are recorded.
    TruthRecorder(const testing::RedisServer& server, std::shared_ptr<Recorder> recorder, int stream = 0);
    TruthRecorder(const TruthRecorder&) = delete;
    TruthRecorder& operator=(const TruthRecorder&) = delete;
    ~TruthRecorder() { detach(); }

    /// Connects and waits until the stream has begun.
    /// @throws std::runtime_error when the stream has not begun after 10 s.
    void attach();
    /// Waits until everything that the server has done up to now is written down. @return whether it was in time.
    [[nodiscard]] bool awaitCaughtUp(std::chrono::milliseconds timeout = std::chrono::seconds(5));
    /// Ends the recording.
    void detach() noexcept;
    /// Whether the stream broke without detach(): the truth is not complete then.
    [[nodiscard]] bool failed() const noexcept { return failed_; }

    /// Writes down how far the server's wall clock is ahead of `CLOCK_BOOTTIME`, both of this host.
    static void recordClock(Recorder& recorder);

private:
    void run() noexcept;
    void readSome(ReplicationStream& stream);
    void acknowledge();

    const testing::RedisServer& server_;
    std::shared_ptr<Recorder> recorder_;
    StreamTranslator translator_;
    int socket_ = -1;
    std::atomic<bool> ending_{false};
    std::atomic<bool> streaming_{false};
    std::atomic<bool> failed_{false};
    std::atomic<std::int64_t> offset_{0};
    Nanoseconds acknowledged_ = 0; ///< when the server was last told that this lives; of the thread
    std::thread thread_;
};

} // namespace redislock::test::history
