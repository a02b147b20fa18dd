/// @file
/// Where a server listens.
#pragma once

#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <cstdint>
#include <string>

namespace redislock {

/// The address of one Redis server: a host and port, or the path of a unix socket.
struct REDISLOCK_EXPORT Endpoint {
    /// Host name, IPv4 or IPv6 address (without brackets). Names are looked up again at each connect. Ignored when
    /// `unixSocket` is set. Default: 127.0.0.1.
    std::string host = "127.0.0.1";
    /// TCP port, 1 … 65535. Default: 6379.
    std::uint16_t port = 6379;
    /// Path of a unix socket, at most 107 bytes; empty: TCP.
    std::string unixSocket;

    /// "host:port", "[v6]:port" or "unix:path"; for messages.
    [[nodiscard]] std::string str() const;

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

} // namespace redislock
