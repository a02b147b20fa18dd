// Faults below TCP.
#include "chaos/faults.hpp"
#include "support/packets.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>

namespace redislock::test::chaos {
namespace {

std::size_t withRules(World& world, const std::vector<std::string>& rules)
{
    const PacketFilter filter(rules);
    waitAroundTheLeases(world);
    return filter.hits();
}

/// Some of the connections between clients and the proxy, at least one, as a set of nft.
std::string someConnections(World& world)
{
    auto ports = clientPortsOf(world.proxy().port());
    if (ports.empty()) {
        throw std::runtime_error("no client is connected");
    }
    std::shuffle(ports.begin(), ports.end(), world.random());
    ports.resize(1 + ports.size() / 2);
    std::string set;
    for (const auto port : ports) {
        set += (set.empty() ? "{ " : ", ") + std::to_string(port);
    }
    return set + " }";
}

std::string requests(World& world, const std::string& clients)
{
    return "tcp dport " + std::to_string(world.proxy().port()) + " tcp sport " + clients + " counter drop";
}

std::string replies(World& world, const std::string& clients)
{
    return "tcp sport " + std::to_string(world.proxy().port()) + " tcp dport " + clients + " counter drop";
}

std::size_t dropRequests(World& world)
{
    return withRules(world, {requests(world, someConnections(world))});
}

std::size_t dropReplies(World& world)
{
    return withRules(world, {replies(world, someConnections(world))});
}

std::size_t dropBoth(World& world)
{
    const auto clients = someConnections(world);
    return withRules(world, {requests(world, clients), replies(world, clients)});
}

/// Drops packets of all connections, new ones too.
std::size_t dropSome(World& world)
{
    const auto port = std::to_string(world.proxy().port());
    const std::string some = " numgen random mod 100 < 30 counter drop";
    return withRules(world, {"tcp dport " + port + some, "tcp sport " + port + some});
}

} // namespace

const std::vector<Fault>& packetFaults()
{
    static const std::vector<Fault> faults{
        {"packets: requests dropped", dropRequests},
        {"packets: replies dropped", dropReplies},
        {"packets: half-open both ways", dropBoth},
        {"packets: 30 % lost", dropSome},
    };
    return faults;
}

} // namespace redislock::test::chaos
