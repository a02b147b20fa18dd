/// @file
/// The parts of a chaos run: a server, the servers of groups, worker processes, and the record of everything.
#pragma once

#include "chaos/backend.hpp"
#include "chaos/groups.hpp"
#include "chaos/heartbeat.hpp"
#include "chaos/progress.hpp"
#include "history/recorder.hpp"
#include "redislock/testing/child_process.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::chaos {

/// An invariant was broken.
class Broken : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The injected faults: how often each, and with how many effects, or fail-overs.
using Injected = std::map<std::string, std::pair<int, std::size_t>>;

/// The options of a run.
struct Plan {
    std::filesystem::path worker;     ///< the program of the workers
    std::filesystem::path folder;     ///< of the histories
    std::filesystem::path redisson{}; ///< the folder of its driver, for a run in a cluster; empty: it takes no part
    std::uint64_t seed = 1;
    std::size_t processes = 4;
    int threads = 4;
};

/// All that the director acts on. Not thread-safe; to be used by the thread that made it.
class World {
public:
    explicit World(const Plan& plan);

    /// Starts a process in a place whose process was killed, or that had none.
    void startWorker(std::size_t slot);
    /// Ends the process of a place as a crash would.
    void killWorker(std::size_t slot);
    void stopWorker(std::size_t slot);
    void resumeWorker(std::size_t slot);
    /// The place of a process whose threads hold a lock, or wait for one, right now.
    std::size_t someHolder();
    std::size_t someWaiter();

    /// Some servers of groups, in random order, each of which has keys right now.
    std::vector<Backend*> someMembers(std::size_t count);
    /// Waits until no hold is left from the time before the last server forgot something, then lets one forget.
    /// @return the result of @p forget.
    std::size_t afterALease(const std::function<std::size_t(Backend&)>& forget);

    /// Waits until every process got and freed a lock, and groups, that it asked for after @p since.
    /// @return the places of the processes that did not.
    [[nodiscard]] std::vector<std::size_t> awaitRecovery(std::chrono::nanoseconds since);
    /// Text: how the process of a place ended, or that it runs.
    [[nodiscard]] std::string stateOf(std::size_t slot);
    [[nodiscard]] std::uint64_t operations() const;
    /// Waits until all processes have ended their work.
    [[nodiscard]] bool awaitQuiet();
    /// Writes down what is left in Redis, and ends the processes and the recording.
    void finish();

    /// The server of the locks that are not groups.
    Backend& backend() noexcept { return *backend_; }
    testing::RedisServer& server() noexcept { return backend_->server(); }
    FaultProxy& proxy() noexcept { return backend_->proxy(); }
    RawRedis& redis() noexcept { return backend_->redis(); }
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
    void recordRest(Backend& backend);

    Plan plan_;
    std::mt19937_64 random_;
    Progress progress_;
    std::shared_ptr<history::Recorder> recorder_;
    Heartbeat heartbeat_;
    std::unique_ptr<Backend> backend_;
    std::vector<std::unique_ptr<Backend>> members_; ///< of groups
    std::chrono::nanoseconds forgot_{0};            ///< when the last of them forgot something
    std::vector<testing::detail::ChildProcess> workers_;
    std::uint64_t started_ = 0;
};

} // namespace redislock::test::chaos
