/// @file
/// What a chaos run consists of: a server, a proxy before it, worker processes, and the record of it all.
#pragma once

#include "chaos/heartbeat.hpp"
#include "chaos/progress.hpp"
#include "history/recorder.hpp"
#include "history/request_recorder.hpp"
#include "history/truth_recorder.hpp"
#include "redislock/testing/child_process.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace redislock::test::chaos {

/// What a run is asked for.
struct Plan {
    std::filesystem::path worker; ///< the program
    std::filesystem::path folder; ///< of the histories
    std::uint64_t seed = 1;
    std::size_t processes = 4;
    int threads = 4;
};

/// The director's hands. Not thread-safe; to be used by the thread that made it.
class World {
public:
    explicit World(const Plan& plan);

    /// Starts a process in a place, where one has been killed or there was none.
    void startWorker(std::size_t slot);
    /// Ends it as a crash would.
    void killWorker(std::size_t slot);
    void stopWorker(std::size_t slot);
    void resumeWorker(std::size_t slot);
    /// A process with threads that hold a lock, or wait for one, right now.
    std::size_t someHolder();
    std::size_t someWaiter();

    /// Kills the server when it has executed what it got but its answers reach nobody any more, and starts it again.
    void crashServer();

    /// Waits until every process got and freed a lock that it asked for after @p since. @return who did not.
    [[nodiscard]] std::vector<std::size_t> awaitRecovery(std::chrono::nanoseconds since);
    /// How the process of a place ended, or that it runs.
    [[nodiscard]] std::string stateOf(std::size_t slot);
    [[nodiscard]] std::uint64_t operations() const;
    /// Waits until all processes have ended their work.
    [[nodiscard]] bool awaitQuiet();
    /// Writes down what is left in Redis, and ends the processes and the recording.
    void finish();

    testing::RedisServer& server() noexcept { return server_; }
    FaultProxy& proxy() noexcept { return proxy_; }
    RawRedis& redis() noexcept { return redis_; }
    history::Recorder& recorder() noexcept { return *recorder_; }
    Board& board() noexcept { return *progress_; }
    std::mt19937_64& random() noexcept { return random_; }
    std::size_t processes() const noexcept { return plan_.processes; }

    std::chrono::milliseconds between(int least, int most)
    {
        return std::chrono::milliseconds(std::uniform_int_distribution<int>(least, most)(random_));
    }

private:
    std::size_t someWith(std::atomic<int> Slot::*what);
    void makeShared();
    void recordShared();
    void recordRest();

    Plan plan_;
    std::mt19937_64 random_;
    Progress progress_;
    std::shared_ptr<history::Recorder> recorder_;
    Heartbeat heartbeat_;
    testing::RedisServer server_;
    FaultProxy proxy_;
    RawRedis redis_;
    history::TruthRecorder truth_;
    history::RequestRecorder requests_;
    std::vector<testing::detail::ChildProcess> workers_;
    std::uint64_t started_ = 0;
};

} // namespace redislock::test::chaos
