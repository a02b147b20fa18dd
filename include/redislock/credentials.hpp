/// @file
/// Who a client is to its server.
#pragma once

#include "redislock/endpoint.hpp"
#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace redislock {

/// A user name and a password, or a token in place of the password.
struct REDISLOCK_EXPORT Credentials {
    /// ACL user; empty: the server's default user.
    std::string username{};
    /// Never shown in a message.
    std::string password{};
    /// Until when the server accepts them, and the connections that were made with them; max(): for ever. When a fifth
    /// of the time is left, new connections replace those, and no call fails.
    std::chrono::system_clock::time_point validUntil = std::chrono::system_clock::time_point::max();
};

/// Returns the credentials for a connection to that server; for Config::credentials. Called for each attempt to
/// connect, on a thread of its own: it may take up to Config::credentialsTimeout, and may throw; then only that attempt
/// fails. At most four calls run at a time, and attempts that wait for one server share a call; nothing is cached. A
/// call may still run after the client has been destroyed, so the function must own what it needs. Calls that hang may
/// overlap with others: each has a copy of the function.
using CredentialsProvider = std::function<Credentials(const Endpoint&)>;

} // namespace redislock
