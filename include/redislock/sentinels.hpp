/// @file
/// Servers that take each other's place, and who knows which of them is the master.
#pragma once

#include "redislock/endpoint.hpp"
#include "redislock/export.hpp"
#include "redislock/requirements.hpp"
#include "redislock/tls.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace redislock {

/// The Redis Sentinels that watch a master and its replicas, for Config::sentinels. The client asks all of them for the
/// master's address, uses the server there if it calls itself master, and listens to all of them: after a fail-over it
/// leaves the old master as soon as the first of them names a new one. One Sentinel that answers is enough; those that
/// are not listed here are found by those that are.
struct REDISLOCK_EXPORT Sentinels {
    /// The name under which they watch the master; at most 253 visible characters.
    std::string name;
    /// At least one; Sentinels listen on port 26379 unless they are told otherwise.
    std::vector<Endpoint> endpoints;
    /// ACL user of the Sentinels themselves; empty: their default user. Needs a password.
    std::string username{};
    /// Password of the Sentinels; empty: none is sent. Never shown in a message.
    std::string password{};
    /// TLS with the Sentinels; empty: none. Config::tls is for the servers.
    std::optional<Tls> tls{};
};

/// Gives the address to connect to in the place of one that a Sentinel, or a node of a cluster, announces: for networks
/// that translate addresses, and for containers. For Config::addressMap. Called on the client's own thread: it must not
/// wait. If it throws, that address is not used, and a call that needs it fails with `Cause::addressNotMapped`.
using AddressMap = std::function<Endpoint(const Endpoint& announced)>;

} // namespace redislock
