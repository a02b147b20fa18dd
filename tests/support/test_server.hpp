/// @file
/// Servers and settings of suites that run over plain connections, over TLS, and with a Sentinel.
#pragma once

#include "redislock/config.hpp"
#include "redislock/testing/redis_server.hpp"

#include <cstdint>
#include <vector>

namespace redislock::test {

/// Whether this run of the program is the one over TLS: the environment has `REDISLOCK_TEST_TLS=1`.
bool overTls();

/// Whether the clients of this run find each server by a Sentinel, which watches only that one: the environment has
/// `REDISLOCK_TEST_SENTINEL=1`.
bool overSentinel();

/// Whether the locks of this run are in a cluster of three masters with a replica each: the environment has
/// `REDISLOCK_TEST_CLUSTER=1`. Servers beside that one are clusters of one node each.
bool overCluster();

/// The first node of that cluster, which all tests of a program share. @param ports of all nodes
testing::RedisServer& sharedNode(std::vector<std::uint16_t>& ports);

/// A server, which speaks TLS if this run is over TLS, and has a Sentinel if this run is over Sentinel. The Sentinel
/// lives until the program ends; it listens to the channel `__sentinel__:hello` of the server, and publishes there.
testing::RedisServer testServer(testing::RedisServerOptions options = {});

/// The settings of a client that connects to @p server as the server wants it, and checks its certificate. If the
/// server has a Sentinel, the client asks the Sentinel for it.
Config testConfig(const testing::RedisServer& server);

} // namespace redislock::test
