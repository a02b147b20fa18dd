/// @file
/// The Sentinels that know which of several servers is the master.
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
/// master's address, uses the server there if it says that it is a master, and listens to all of them: after a
/// fail-over it leaves the old master as soon as the first Sentinel names a new one. One Sentinel that answers is
/// enough; the client learns of unlisted Sentinels from the listed ones.
struct REDISLOCK_EXPORT Sentinels {
    /// The name by which they know the master; at most 253 visible characters.
    std::string name;
    /// At least one; the usual port of a Sentinel is 26379.
    std::vector<Endpoint> endpoints;
    /// ACL user of the Sentinels themselves; empty: their default user. Needs a password.
    std::string username{};
    /// Password of the Sentinels; empty: none is sent. Never shown in a message.
    std::string password{};
    /// TLS with the Sentinels; empty: none. Config::tls is for the servers.
    std::optional<Tls> tls{};
};

/// Returns the address to connect to instead of the one that a Sentinel, or a node of a cluster, announces: for
/// networks that translate addresses, and for containers. For Config::addressMap. Called on the client's own thread, so
/// it must not wait. If it throws, that address is not used, and a call that needs it fails with
/// `Cause::addressNotMapped`.
using AddressMap = std::function<Endpoint(const Endpoint& announced)>;

} // namespace redislock
