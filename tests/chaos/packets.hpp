/// @file
/// Packets that are lost below TCP: what a proxy cannot do, because it acknowledges what it holds back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redislock::test::chaos {

/// Moves the process, before it has threads, into a network of its own, with nothing but a loopback device: what is
/// dropped there concerns nobody else. Children are in it too.
/// @return why that is not possible here, or why packets could not be dropped in it; empty: it is done.
[[nodiscard]] std::string enterNetworkOfItsOwn();

/// The client's ports of the connections to a port of this host.
std::vector<std::uint16_t> clientPortsOf(std::uint16_t port);

/// Rules of nft for what leaves any process of this network, for as long as it lives. Each rule counts.
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

} // namespace redislock::test::chaos
