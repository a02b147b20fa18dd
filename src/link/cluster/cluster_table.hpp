/// @file
/// Which node of a cluster has which slots, as a node tells it.
#pragma once

#include "redislock/endpoint.hpp"
#include "wire/reply.hpp"
#include "wire/slot.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// The answer to CLUSTER SLOTS.
struct ClusterTable {
    struct Node {
        std::string id;                   ///< empty: not told
        Endpoint announced{"", 0, {}};    ///< an empty host: that of the node that was asked
        std::vector<std::string> aliases; ///< other names and addresses of the host
        Endpoint at{"", 0, {}};           ///< where to connect to
        bool isMapped = true;             ///< otherwise nobody knows where to connect to
    };
    struct Range {
        Slot first;
        Slot last;
        std::size_t node; ///< the master
    };

    std::vector<Node> nodes; ///< the replicas too
    std::vector<Range> ranges;
};

/// Nothing for a reply that the command cannot give.
std::optional<ClusterTable> clusterTableOf(const Reply& reply);

/// `MOVED <slot> <host>:<port>`, or the same with `ASK`. The host may be empty, and an IPv6 address has no brackets.
struct Redirection {
    bool isOnce = false; ///< ASK: for one request
    Slot slot = 0;
    std::string_view host; ///< empty: that of the node that answered
    std::uint16_t port = 0;

    /// Nothing for another text.
    static std::optional<Redirection> from(std::string_view text) noexcept;
};

} // namespace redislock::detail
