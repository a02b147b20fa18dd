/// @file
/// A model of a Redis server.
#pragma once

#include "simulation/keyspace.hpp"
#include "simulation/lua_runtime.hpp"
#include "simulation/request.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace redislock::simulation {

using LinkId = std::uint64_t; ///< a connection

/// Keys, the cache of scripts, and the subscriptions. Executes one request after the other; no time, no network.
class ModelServer {
public:
    /// @param push sends a message to a subscriber.
    ModelServer(LuaRuntime& lua, std::function<void(LinkId, const Reply&)> push);

    /// WAIT is the network's affair.
    Reply execute(const Request& request, LinkId from, std::int64_t nowMs);
    /// Called after each request that wrote something; null: nobody follows this server.
    std::function<void(LinkId by)> wrote;

    void disconnected(LinkId link);
    void forgetScripts() noexcept { scripts_.clear(); }
    enum class Data { kept, lost };
    void restart(Data data);
    /// Becomes what the other server was, with its connections.
    void takeOver(ModelServer& other);

    [[nodiscard]] Keyspace& keyspace() noexcept { return keyspace_; }
    [[nodiscard]] const Keyspace& keyspace() const noexcept { return keyspace_; }
    /// How many subscriptions there are.
    [[nodiscard]] std::size_t subscriptions() const noexcept;

private:
    Reply run(const Request& request, LinkId from, std::int64_t nowMs);
    Reply runScript(const Request& request, std::int64_t nowMs);
    Reply subscription(const char* what, const std::string& channel, LinkId link) const;
    std::int64_t publish(const std::string& channel, const std::string& message);

    LuaRuntime& lua_;
    std::function<void(LinkId, const Reply&)> push_;
    Keyspace keyspace_;
    std::unordered_set<std::string_view> scripts_; ///< SHA1s
    std::map<std::string, std::vector<LinkId>> listeners_;
};

} // namespace redislock::simulation
