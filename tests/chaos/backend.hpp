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

/// A server, the proxy in front of it, and the record of what the server does. Not thread-safe; to be used by the
/// thread that made it.
class Backend {
public:
    /// @param folder of the histories. @param number of the server. @param withRequests also records requests without
    /// an effect.
    Backend(const std::filesystem::path& folder, int number, bool withRequests);

    /// The keys on the server.
    [[nodiscard]] std::vector<std::string> keys();
    /// Kills the server when it has executed its requests but its answers no longer reach anybody, and starts it again
    /// after a while.
    void crash(std::chrono::milliseconds away);
    /// The same, and all data of the server is lost. @param recorder records the lost keys. @return how many keys.
    std::size_t crashAndForget(std::chrono::milliseconds away, history::Recorder& recorder);
    /// Empties the running server. @return how many keys.
    std::size_t empty(history::Recorder& recorder);
    /// Ends the recording when everything is written down.
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
