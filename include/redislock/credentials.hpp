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

/// A user name and a password, or a token in its place.
struct REDISLOCK_EXPORT Credentials {
    /// ACL user; empty: the server's default user.
    std::string username{};
    /// Never shown in a message.
    std::string password{};
    /// Until when the server takes them, and connections that were made with them; max(): without an end. When a fifth
    /// of the time is left, other connections take the place of those, without a failed call.
    std::chrono::system_clock::time_point validUntil = std::chrono::system_clock::time_point::max();
};

/// Gives the credentials for a connection to that server; for Config::credentials. Called for each attempt to connect,
/// on a thread of its own: it may take its time (Config::credentialsTimeout) and may throw, at the cost of that attempt
/// alone. At most four calls run at a time, and attempts that wait for one server share a call; nothing is cached. A
/// call may still run when the client has been destroyed: what the function needs must belong to it. Calls that hang
/// may overlap with others: each has a copy of the function.
using CredentialsProvider = std::function<Credentials(const Endpoint&)>;

} // namespace redislock
