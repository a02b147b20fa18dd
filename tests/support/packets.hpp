/// @file
/// Packets that are lost below TCP. A proxy cannot do this, because it acknowledges the packets that it holds back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redislock::test {

/// Moves the process, before it has threads, into a network of its own, with nothing but a loopback device: so dropped
/// packets concern nobody else. Child processes are in that network too.
/// @return why this is not possible here, or why packets could not be dropped in that network; empty: done.
[[nodiscard]] std::string enterNetworkOfItsOwn();

/// The ports on the clients' side of the connections to a port of this host.
std::vector<std::uint16_t> clientPortsOf(std::uint16_t port);

/// Rules of nft for packets from any process of this network, while this object lives. Each rule counts its hits.
class PacketFilter {
public:
    /// @throws std::runtime_error when nft refuses.
    explicit PacketFilter(const std::vector<std::string>& rules);
    PacketFilter(const PacketFilter&) = delete;
    PacketFilter& operator=(const PacketFilter&) = delete;
    ~PacketFilter();

    /// How many packets the rules have hit.
    [[nodiscard]] std::size_t hits() const;
};

} // namespace redislock::test
