/// @file
/// A server of a chaos run.
#pragma once

#include "history/recorder.hpp"
#include "history/request_recorder.hpp"
#include "history/truth_recorder.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redislock::test::chaos {

/// A server, the proxy before it, and the record of what it does. Not thread-safe; to be used by the thread that made
/// it.
class Backend {
public:
    /// @param folder of the histories. @param number of the server. @param withRequests also those without an effect.
    Backend(const std::filesystem::path& folder, int number, bool withRequests);

    /// The keys that it has.
    [[nodiscard]] std::vector<std::string> keys();
    /// Kills it when it has executed what it got but its answers reach nobody any more, and starts it again after a
    /// while.
    void crash(std::chrono::milliseconds away);
    /// The same, and all that it remembered is gone. @param recorder of what is forgotten. @return how many keys.
    std::size_t crashAndForget(std::chrono::milliseconds away, history::Recorder& recorder);
    /// Empties it as it runs. @return how many keys.
    std::size_t empty(history::Recorder& recorder);
    /// Ends the recording, when all is written down.
    void finish();

    testing::RedisServer& server() noexcept { return server_; }
    FaultProxy& proxy() noexcept { return proxy_; }
    RawRedis& redis() noexcept { return redis_; }

private:
    void attach();
    void detach();
    void settle();
    std::size_t noteForgotten(history::Recorder& recorder);
    void leave(std::chrono::milliseconds away);
    void comeBack();

    testing::RedisServer server_;
    FaultProxy proxy_;
    RawRedis redis_;
    history::TruthRecorder truth_;
    std::optional<history::RequestRecorder> requests_;
};

} // namespace redislock::test::chaos
