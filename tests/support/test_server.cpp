#include "support/test_server.hpp"

#include "support/certificates.hpp"
#include "support/deployments.hpp"

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::test {

namespace {

bool isSet(const char* variable)
{
    const char* const wanted = std::getenv(variable);
    return wanted != nullptr && std::string_view(wanted) == "1";
}

/// By the port of the server that they watch.
std::map<std::uint16_t, Sentinel>& sentinels()
{
    static std::map<std::uint16_t, Sentinel> all;
    return all;
}

} // namespace

bool overTls()
{
    return isSet("REDISLOCK_TEST_TLS");
}

bool overSentinel()
{
    return isSet("REDISLOCK_TEST_SENTINEL");
}

bool overCluster()
{
    return isSet("REDISLOCK_TEST_CLUSTER");
}

testing::RedisServer& sharedNode(std::vector<std::uint16_t>& ports)
{
    static Cluster cluster(3, 1, {.arguments = {"--cluster-node-timeout", "10000"}}); // nothing fails over
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        ports.push_back(cluster.node(i).port());
    }
    return cluster.node(0);
}

testing::RedisServer testServer(testing::RedisServerOptions options)
{
    if (overCluster()) {
        return std::move(Cluster(1, 0, options).node(0));
    }
    if (overTls()) {
        options.tls = serverTls();
    }
    testing::RedisServer server(std::move(options));
    if (overSentinel()) {
        sentinels().erase(server.port()); // of a server that had the port before
        sentinels().try_emplace(server.port(), server.port());
    }
    return server;
}

Config testConfig(const testing::RedisServer& server)
{
    Config config;
    if (const auto own = sentinels().find(server.port()); own != sentinels().end()) {
        config = Config::fromUrl("redis-sentinel://127.0.0.1:" + std::to_string(own->second.server().port()) + "/main");
    }
    config.endpoint.host = server.host();
    config.endpoint.port = server.port();
    if (overCluster()) {
        config.cluster = {config.endpoint};
    }
    config.password = server.password();
    if (const auto& tls = server.tls()) {
        config.tls.emplace().caFile = tls->caFile;
        if (tls->clients != testing::RedisServerTls::Clients::unasked) {
            config.tls->certFile = Authority::trusted().client().certFile;
            config.tls->keyFile = Authority::trusted().client().keyFile;
        }
    }
    return config;
}

} // namespace redislock::test
